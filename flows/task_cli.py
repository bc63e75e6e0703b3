"""Commands on tasks that exist: screen, coverage, review, schema."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from time import time
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from flows.endings import one_line, plain_errors
from flows.server import serving
from flywheel.coverage import Coverage
from flywheel.errors import ConfigError
from schemas.config import CycleConfig, ProposeConfig
from schemas.screening import ReviewDecision, ReviewItem, Ruling

T = TypeVar("T", bound=StrEnum)
SCREENING_HOME = ".flywheel/screening"
ScreeningHome = Annotated[
    str, typer.Option(help="Folder of the store that keeps receipts and of the pages.")
]
PluginPaths = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="A family, check, tool or proposer of yours, as file.py:NAME."),
]


def screen(
    folder: Annotated[Path, typer.Argument(help="A folder of task folders, or one of them.")],
    home: ScreeningHome = SCREENING_HOME,
    sandbox: Annotated[str, typer.Option(help="auto, bubblewrap or docker.")] = "auto",
    workers: Annotated[int, typer.Option(min=1, help="Tasks screened at once.")] = 4,
    plugin: PluginPaths = None,
) -> None:
    """Screen the tasks of a folder by execution, and say which can be trusted and why not.

    Reads native task folders (`flywheel generate`), Harbor task folders and SWE-bench task
    repositories. Writes receipts (JSON lines) and a page, whose path it prints. Run it again after
    an interruption: receipts that are in force are not made again.
    """
    with plain_errors():
        if not folder.exists():
            raise ConfigError(f"{folder}: there is no such folder")
        config = CycleConfig.model_validate(
            {
                "home": home,
                "sandbox": sandbox,
                "workers": workers,
                "propose": ProposeConfig(plugins=tuple(plugin or ())),
            }
        )
        with serving(Path(home)) as server:
            from flows.folders import screen_folder

            server.wait()
            typer.echo(f"page: {screen_folder(str(folder), config)}")


def coverage(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder of task folders; none: the store's tasks.")
    ] = None,
    home: Annotated[str, typer.Option(help="Folder of the store.")] = ".flywheel",
) -> None:
    """Say what tasks cover, per capability and kind of rule, and what they do not."""
    from flows.reading import tasks_of
    from flywheel.coverage import coverage as cover
    from flywheel.families.catalogue import FAMILIES

    with plain_errors():
        _show(cover(tasks_of(folder, home), FAMILIES.values()))


def schema() -> None:
    """Print the JSON Schema of a task manifest."""
    from flywheel.formats.manifest import task_schema

    typer.echo(task_schema(), nl=False)


review = typer.Typer(no_args_is_help=True, help="What waits for a person, and what was decided.")


@review.command("list")
def list_items(home: ScreeningHome = SCREENING_HOME) -> None:
    """List the tasks that wait for a person: quarantined by screening, and not yet decided."""
    from flows.reading import opened
    from flywheel.store import read

    with plain_errors(), opened(home) as store:
        decided = {made.item_id: made for made in read(store, ReviewDecision)}
        items = read(store, ReviewItem)
        if not items:
            typer.echo(f"nothing waits in {home}")
        for item in items:
            made = decided.get(item.item_id)
            state = f"{made.ruling.value} by {made.author}: {made.note}" if made else "waits"
            name, state = one_line(item.name, 400), one_line(state, 400)
            typer.echo(f"{item.item_id}  {item.reason}  {name}  [{state}]")
            typer.echo(f"    {one_line(item.evidence, 400)}")


@review.command()
def accept(
    item: Annotated[str, typer.Argument(help="As `flywheel review list` shows it.")],
    author: Annotated[str, typer.Option(help="Who decides.")],
    note: Annotated[str, typer.Option(help="Why.")] = "",
    home: ScreeningHome = SCREENING_HOME,
) -> None:
    """Let a quarantined task in; it stays out of the holdout and gives no reward."""
    _decide(item, Ruling.ACCEPT, author, note, home)


@review.command()
def reject(
    item: Annotated[str, typer.Argument(help="As `flywheel review list` shows it.")],
    author: Annotated[str, typer.Option(help="Who decides.")],
    note: Annotated[str, typer.Option(help="Why.")] = "",
    home: ScreeningHome = SCREENING_HOME,
) -> None:
    """Keep a quarantined task out."""
    _decide(item, Ruling.REJECT, author, note, home)


def _decide(item_id: str, ruling: Ruling, author: str, note: str, home: str) -> None:
    from flows.reading import opened
    from flywheel.store import append, read

    with plain_errors(), opened(home) as store:
        items = {item.item_id: item for item in read(store, ReviewItem)}
        if item_id not in items:
            raise ConfigError(f"{item_id}: no such item in {home}; see `flywheel review list`")
        decision = ReviewDecision(
            item_id=item_id,
            version_id=items[item_id].version_id,
            ruling=ruling,
            author=author,
            note=note,
            decided_at=time(),
        )
        append(store, [decision])
        typer.echo(f"{item_id}: {ruling.value} by {author}")


def _show(found: Coverage) -> None:
    """Print coverage as tables and gaps; a task counts in every row that it asks for."""
    console = Console()
    _grid(console, "capability", found.capabilities)
    _grid(console, "rules about", found.axes)
    pairs = ", ".join(f"{name} {got}/{of}" for name, (got, of) in sorted(found.pairs.items()))
    console.print(f"pairs of rules live together: {pairs}", highlight=False)
    for gap in found.gaps:
        console.print(f"not covered: {gap}", highlight=False, markup=False)


def _grid(console: Console, title: str, counts: Mapping[tuple[T, str], int]) -> None:
    table = Table(title, "tasks", "families")
    for row in sorted({row for row, _ in counts}):
        by_family = {name: count for (other, name), count in counts.items() if other is row}
        families = ", ".join(f"{name} {count}" for name, count in sorted(by_family.items()))
        table.add_row(row.value, str(sum(by_family.values())), families)
    console.print(table)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    for command in (screen, coverage, schema):
        app.command()(command)
    app.add_typer(review, name="review")
