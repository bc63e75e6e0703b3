"""Commands that make task folders: generate, history, solicit, export."""

import os
from collections.abc import Iterator
from itertools import count as counting
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from flows.endings import one_line, plain_errors
from flows.server import serving
from flows.task_cli import SCREENING_HOME, PluginPaths, ScreeningHome
from flywheel.errors import ConfigError
from schemas.base import seed_from
from schemas.config import CycleConfig
from schemas.task import Budget, Source, SourceKind, TaskManifest

Families = Annotated[
    str, typer.Option(help="Names with commas between, or `all`: `flywheel coverage` lists them.")
]


def generate(
    folder: Annotated[Path, typer.Argument(help="Where the task folders go; made if need be.")],
    count: Annotated[int, typer.Option(min=1, help="How many tasks.")] = 20,
    families: Families = "all",
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same tasks.")] = 7,
    pair: Annotated[
        str | None,
        typer.Option(help="FAMILY:RULE: matched pairs, the same case with and without the rule."),
    ] = None,
    walk: Annotated[
        bool, typer.Option("--walk", help="Walk the graph of tools, in a sandbox, instead.")
    ] = False,
    plugin: PluginPaths = None,
) -> None:
    """Generate tasks as native task folders, least covered rule pairs first."""
    from flywheel.families.catalogue import FAMILIES
    from flywheel.formats.manifest import write_manifest
    from flywheel.generate import generated, paired
    from flywheel.plugins import load
    from flywheel.propose import LICENCE
    from flywheel.sandbox.choose import open_backend
    from flywheel.walk import walked

    with plain_errors():
        known = {**FAMILIES, **load(tuple(plugin or ())).families}
        tasks: Iterator[TaskManifest]
        if walk:
            ways = (seed_from(seed, number) >> 32 for number in counting())
            source = Source(kind=SourceKind.COVERAGE, uri=f"walk-{seed}", licence=LICENCE)
            tasks = walked(ways, open_backend("auto").open, Budget(), source)
        elif pair is not None:
            family, _, rule = pair.partition(":")
            tasks = paired(known, family, rule, seed)
        else:
            names = tuple(known) if families == "all" else tuple(families.split(","))
            tasks = generated(known, names, seed)
        written = 0
        for number, task in enumerate(islice(tasks, count)):
            write_manifest(task, folder / f"{number:04d}-{task.family}")
            written += 1
        typer.echo(f"{written} tasks in {folder}")


def history(
    clone: Annotated[Path, typer.Argument(help="A local git repository; nothing is fetched.")],
    folder: Annotated[Path, typer.Argument(help="Where the task folders go.")],
    url: Annotated[str, typer.Option(help="What people call the repository.")],
    licence: Annotated[str, typer.Option(help="Its licence.")],
    commits: Annotated[int, typer.Option(min=1, help="Most commits to look at.")] = 50,
    pytest: Annotated[
        bool, typer.Option("--pytest", help="Run tests by pytest, which the sandbox must have.")
    ] = False,
    sandbox: Annotated[str, typer.Option(help="auto, bubblewrap or docker.")] = "auto",
) -> None:
    """Make tasks from commits whose tests go from failing to passing, measured by execution.

    The tests are run in a sandbox, before and after. A commit that makes none pass is skipped, and
    the reason is printed.
    """
    from flywheel.formats.history import Origin, Skipped, tasks_from_history
    from flywheel.formats.manifest import write_manifest
    from flywheel.formats.measure import pytest_command, unittest_command
    from flywheel.sandbox.choose import open_backend

    with plain_errors():
        kind = CycleConfig.model_validate({"sandbox": sandbox}).sandbox
        command = pytest_command() if pytest else unittest_command()
        labels = {"run": "history", "attempt": f"history-{os.getpid()}"}
        origin = Origin(clone, url, licence)
        made = 0
        for found in tasks_from_history(origin, command, open_backend(kind).open, labels, commits):
            if isinstance(found, Skipped):
                why = one_line(found.evidence, 300)
                typer.echo(f"skipped {found.commit[:12]}: {found.reason}: {why}")
                continue
            write_manifest(found, folder / f"{made:04d}-history")
            made += 1
        typer.echo(f"{made} tasks in {folder}")


def solicit(
    folder: Annotated[Path, typer.Argument(help="Where the answers go; a new one for each run.")],
    requirements: Annotated[
        Path, typer.Option(help="Folder of texts (.md, .txt): each asks for one task.")
    ],
    url: Annotated[str, typer.Option(help="An OpenAI-compatible endpoint, as …/v1.")],
    model: Annotated[str, typer.Option(help="The model's name there.")],
    key_variable: Annotated[
        str, typer.Option(help="The environment variable that holds the key.")
    ] = "FLYWHEEL_API_KEY",
    issues: Annotated[
        bool, typer.Option("--issues", help="The texts are public issues, not requirements.")
    ] = False,
    licence: Annotated[str, typer.Option(help="Of the texts.")] = "unknown",
    proposals: Annotated[int, typer.Option(min=1, help="Most tasks to ask for.")] = 20,
    tokens: Annotated[int, typer.Option(min=1, help="Most tokens, prompts included.")] = 200_000,
    cost: Annotated[float, typer.Option(min=0, help="Most US dollars.")] = 1.0,
    prompt_price: Annotated[float, typer.Option(min=0, help="US dollars a million tokens.")] = 0.0,
    answer_price: Annotated[float, typer.Option(min=0, help="US dollars a million tokens.")] = 0.0,
    home: ScreeningHome = SCREENING_HOME,
    sandbox: Annotated[str, typer.Option(help="auto, bubblewrap or docker.")] = "auto",
) -> None:
    """Ask a model for tasks, screen them like anybody's, and say what an accepted one cost.

    It stops before it would go over a cap. No trust comes with a proposal: what is sound but can't
    be measured waits in `flywheel review list`.
    """
    from flywheel.endpoint import Endpoint, Prices
    from flywheel.solicit import Allowance
    from flywheel.solicit.ideas import from_issue, from_requirement

    with plain_errors():
        texts = sorted(p for p in requirements.glob("*") if p.suffix in (".md", ".txt"))
        if not texts:
            raise ConfigError(f"{requirements}: no .md or .txt file to ask about")
        make = from_issue if issues else from_requirement
        ideas = [make(path.read_text("utf-8"), path.name, licence) for path in texts]
        endpoint = Endpoint(url, model, key_variable, 120.0, Prices(prompt_price, answer_price))
        allowance = Allowance(proposals, tokens, cost, answer_tokens=4_000)
        config = CycleConfig.model_validate({"home": home, "sandbox": sandbox})
        with serving(Path(home)) as server:
            from flows.proposals import solicit_tasks

            server.wait()
            page = solicit_tasks(endpoint, ideas, allowance, folder, config)
            typer.echo(f"page: {page}")


def export(
    folder: Annotated[Path, typer.Argument(help="A folder of task folders.")],
    out: Annotated[Path, typer.Argument(help="Where the Harbor task folders go.")],
    image: Annotated[str, typer.Option(help="Base image of the exported tasks, by digest.")],
) -> None:
    """Export tasks as Harbor task folders (schema 1.4), with reference and separate verifier.

    Nothing is screened here: export what `flywheel screen` accepted. The image needs bash and
    python3.
    """
    from flywheel.formats import read_folder
    from flywheel.formats.harbor_export import write_harbor

    with plain_errors():
        if "@sha256:" not in image:
            raise ConfigError(f"--image {image}: name it by digest, as NAME@sha256:…")
        imported = read_folder(folder)
        for number, task in enumerate(imported.tasks):
            write_harbor(task, out / f"{number:04d}-{task.family.replace('/', '-')}", image)
        for refusal in imported.refused:
            typer.echo(f"not read: {refusal.path}: {refusal.field}: {refusal.reason}", err=True)
        typer.echo(f"{len(imported.tasks)} tasks in {out}, not screened here")
        if imported.refused:
            raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    for command in (generate, history, solicit, export):
        app.command()(command)
