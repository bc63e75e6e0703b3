"""The command line."""

import os
import platform
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.screening import __doc__ as about
from benchmarks.screening import agreement as agree
from benchmarks.screening import soundness as sound
from benchmarks.screening import speed as fast
from benchmarks.screening.harbor import Harbor
from flywheel.errors import FlywheelError
from flywheel.families.catalogue import FAMILIES
from flywheel.sandbox.choose import open_backend
from schemas.config import SandboxKind

BACKENDS: tuple[SandboxKind, ...] = ("docker", "bubblewrap")
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=about)

Command = Annotated[
    str, typer.Option("--harbor", help="A command line that runs Harbor 0.26.", show_default=False)
]
Folder = Annotated[
    Path,
    typer.Option(
        help="A folder that Harbor and the Docker engine see under the same absolute path; task "
        "folders and jobs are written below it, and removed.",
        show_default=False,
    ),
]
Families = Annotated[
    list[str], typer.Option("--family", help="Repeatable.  [default: all that ship]")
]


def _conditions() -> str:
    day, load = time.strftime("%Y-%m-%d"), os.getloadavg()[0]
    return (
        f"{day}, {os.cpu_count()} CPUs, {platform.platform()}, Python "
        f"{platform.python_version()}, load {load:.1f} at the start"
    )


@app.command()
def speed(
    harbor: Command,
    folder: Folder,
    tasks: Annotated[int, typer.Option(min=1, help="Tasks that the product screens.")] = 40,
    harbor_tasks: Annotated[int, typer.Option(min=1, help="Tasks that Harbor runs.")] = 2,
    seed: Annotated[int, typer.Option(help="The first task's seed.")] = 0,
) -> None:
    """Tasks screened an hour: the product in both sandboxes, and Harbor on the same solutions.

    Every task is a fresh seed of the family orders with three rules. The product makes all its
    checks; Harbor runs each script that the product runs as a trial with a separate verifier, from
    images that were built before the clock starts.
    """
    runner = Harbor(harbor, folder.absolute())
    runner.check()
    print(f"Screening, family {fast.FAMILY}, rules {', '.join(sorted(fast.RULES))}")
    print(f"{_conditions()}\n")
    products = []
    for kind in BACKENDS:
        made = fast.time_product(open_backend(kind), tasks, seed)
        products.append(made)
        print(_product_line(made), flush=True)
    peer = fast.time_harbor(runner, open_backend("docker"), harbor_tasks, seed)
    for concurrent, job in peer.jobs.items():
        print(
            f"Harbor {peer.version}, n={concurrent:<11} {peer.tasks_per_hour(concurrent):7.1f} "
            f"tasks/hour: {peer.tasks} tasks, {peer.trials} trials in {job.seconds:.1f} s, "
            f"{job.seconds / peer.trials:.2f} s a trial"
        )
    for made in products:
        ratio = made.tasks_per_hour / peer.tasks_per_hour(peer.best)
        print(f"{made.backend} / Harbor n={peer.best}: {ratio:.1f} times as many tasks an hour")
    print(_explained(peer))
    wrong = [f"n={n} {line}" for n in peer.jobs for line in peer.disagreements(n)]
    compared = peer.trials * len(peer.jobs)
    print(
        f"rewards that agree with the product: {compared - len(wrong)} of {compared}",
        *wrong,
        sep="\n  ",
    )
    raise typer.Exit(bool(wrong))


def _product_line(made: fast.Product) -> str:
    return (
        f"product, {made.backend:<12} {made.tasks_per_hour:7.1f} tasks/hour: {made.tasks} tasks "
        f"({made.accepted} accepted) in {made.seconds:.1f} s with {fast.WORKERS} workers, of "
        f"which exploit controls, once for all of them, {made.controls_seconds:.1f} s"
    )


def _explained(peer: fast.Peer) -> str:
    prefixes = sum(judged.prefixes for judged in peer.judged)
    perturbed = sum(judged.perturbed for judged in peer.judged)
    return (
        f"In Harbor's favour: of what the product judges on these {peer.tasks} tasks, {prefixes} "
        f"prefixes, {perturbed} perturbed artifacts and all exploits are no trials; the clock is "
        "its own job's (without the command's start); image builds are not counted.\n"
        f"In the product's favour: {peer.distinct} of the {peer.trials} scripts are different, "
        "and it grades equal artifacts once; its reference runs under shifted conditions, which "
        "Harbor has no way to ask for, so it repeats them as they are."
    )


@app.command()
def agreement(
    harbor: Command,
    folder: Folder,
    family: Families = list(FAMILIES),  # noqa: B006 (typer copies it)
    sandbox: SandboxKind = "auto",
) -> None:
    """Harbor's oracle and nop on one exported task of each family, against the receipt.

    Folders are run as they are exported: Harbor builds both images of each.
    """
    backend = open_backend(sandbox)
    found = agree.compare(Harbor(harbor, folder.absolute()), family, backend, fast.WORKERS)
    print(f"Harbor {found.version} against the product ({backend.name}); {_conditions()}\n")
    print(f"{'family':<14} {'oracle':>8} {'nop':>8}  {'receipt':<12} agrees  rules")
    for each in found.compared:
        print(
            f"{each.family:<14} {each.oracle:>8} {each.nop:>8}  {each.verdict:<12} "
            f"{'yes' if each.agrees else 'NO':<6}  {', '.join(each.rules)}"
        )
    agreeing = sum(each.agrees for each in found.compared)
    print(f"\n{agreeing} of {len(found.compared)} families agree; of {len(family)} families")
    print("Harbor can't hold:", *(found.left_out or ["none"]), sep="\n  ")
    raise typer.Exit(agreeing < len(found.compared))


@app.command()
def soundness(
    seeds: Annotated[int, typer.Option(min=1, help="Tasks of each family.")] = 50,
    first: Annotated[int, typer.Option(help="The first seed.")] = 1_000_000,
    family: Families = list(FAMILIES),  # noqa: B006 (typer copies it)
    sandbox: SandboxKind = "bubblewrap",
) -> None:
    """How many wrong solutions the graders fail, and right ones they pass, over fresh seeds.

    A rate stands with its denominator and its 95 % Clopper-Pearson interval, which takes each
    wrong solution as a draw of its own, although those of one task are related.
    """
    backend = open_backend(sandbox)
    print(f"Screening on {backend.name}, {fast.WORKERS} workers; {_conditions()}\n")
    print("family: rule combinations | accepted | references passed | wrong answers failed")
    rows = []
    for name in family:
        rows.append(sound.measure(name, seeds, first, backend, fast.WORKERS))
        _print_row(rows[-1])
    print()
    _print_row(sound.total(rows))
    raise typer.Exit(any(row.faults for row in rows))


def _print_row(row: sound.Row) -> None:
    told = f"{row.combinations.count}/{row.combinations.of}"
    print(
        f"{row.family:<12} {told:>8} | {row.accepted} | {row.references} | {row.wrong} | "
        f"exploits {row.exploits} | {row.seconds:.0f} s",
        *row.faults,
        sep="\n    ",
        flush=True,
    )


if __name__ == "__main__":
    try:
        app()
    except FlywheelError as problem:
        raise SystemExit(str(problem)) from None
