"""Screening a folder of tasks: read what can be read, screen it, write receipts and a page."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from os import fsencode
from pathlib import Path
from time import perf_counter

from prefect import flow

from flows.endings import one_line
from flows.pool import receipts_in_force
from flows.progress import Progress, terminal
from flows.runtime import Room, open_room, unfinished
from flows.screening import screen_all, stop_at_faults
from flywheel.errors import ConfigError
from flywheel.formats import Imported, read_folder
from flywheel.formats.collection import shown
from flywheel.generate import as_imported, is_generated
from flywheel.screen.exploits import control_id
from flywheel.screen.page import Screened, render_screening
from flywheel.store import append, read
from schemas.config import CycleConfig
from schemas.screening import CheckKind, ControlReport, ScreenVerdict

MOST_NAMED = 20
"""Tasks that are named on the terminal; the page names all."""


@flow(name="screen-folder", validate_parameters=True)
def screen_folder(folder: str, config: CycleConfig) -> str:
    """Screen all tasks of a folder; return the path of the page.

    A run that was interrupted goes on where it was: a receipt that is in force is not made again.
    """
    with open_room(config, Progress(terminal())) as room:
        _refuse_options(room)
        room.backend.reap()
        began = perf_counter()
        imported = known(read_folder(Path(folder)), room)
        if not imported.tasks and not imported.refused:
            raise ConfigError(f"{folder}: there is nothing in it; `flywheel generate` makes tasks")
        append(room.store, imported.tasks)
        said = f"{len(imported.tasks)} tasks read, {len(imported.refused)} refused"
        room.progress.line("read", said, began)
        return str(page_of(room, Path(folder), imported, "screening"))


def _refuse_options(room: Room) -> None:
    """Refuse options that would not be heeded: an unfinished cycle keeps its own.

    Raises:
        ConfigError: the home has an unfinished cycle, and it began with other options.
    """
    cycle, asked = unfinished(room.store), room.config
    if cycle is None:
        return
    options = {
        "--sandbox": asked.sandbox not in ("auto", cycle.sandbox),
        "--plugin": asked.propose.plugins not in ((), cycle.config.propose.plugins),
    }
    if given := [name for name, differs in options.items() if differs]:
        raise ConfigError(
            f"{room.home}: {cycle.cycle_id} is unfinished and keeps its sandbox and plug-ins: "
            f"leave out {' and '.join(given)}, finish it with `flywheel run`, or name another "
            "--home"
        )


def page_of(room: Room, folder: Path, imported: Imported, run_id: str) -> Path:
    """Screen the tasks that have no receipt in force, and write receipts and the page.

    Raises:
        CircuitBreaker: too many sandboxes failed; receipts and page are there all the same.
    """
    began = perf_counter()
    held = receipts_in_force(room, imported.tasks)
    new = [task for task in imported.tasks if task.version_id not in held]
    faults = screen_all(room, run_id, new)
    screened = _screened(room, imported)
    room.progress.line("screen", _said(screened), began)
    _name_the_others(room, screened, imported)
    page = _written(room, folder.resolve(), screened, imported)
    stop_at_faults(room, faults, len(new))
    return page


def known(imported: Imported, room: Room) -> Imported:
    """Take a task's word for where it comes from only where our own families make it."""
    tasks = (t if is_generated(room.families, t) else as_imported(t) for t in imported.tasks)
    return replace(imported, tasks=tuple(tasks))


def _screened(room: Room, imported: Imported) -> list[Screened]:
    reports = receipts_in_force(room, imported.tasks, unscreened=True)
    places = imported.places or [task.source.uri for task in imported.tasks]
    return [
        Screened(name=place, task=task, report=reports[task.version_id])
        for place, task in zip(places, imported.tasks, strict=True)
    ]


def _name_the_others(room: Room, screened: Sequence[Screened], imported: Imported) -> None:
    """Tell on the terminal what was not accepted or not read, and why; the page has all of it."""
    reports = [(item.name, item.report) for item in screened]
    lines = [
        f"    {report.verdict.value} {name}: {report.reason}: {report.evidence[:160]}"
        for name, report in reports
        if report.verdict is not ScreenVerdict.ACCEPTED
    ]
    lines += [
        f"    not read {item.path}: {item.field + ': ' if item.field else ''}{item.reason[:160]}"
        for item in imported.refused
    ]
    for line in lines[:MOST_NAMED]:
        room.progress.say(one_line(line))
    if len(lines) > MOST_NAMED:
        room.progress.say(f"    and {len(lines) - MOST_NAMED} more, on the page")


def _cited(room: Room, screened: Sequence[Screened]) -> list[ControlReport]:
    """Return the exploit controls that these receipts cite."""
    cited = {
        control_id(item.task, room.environment_digest(item.task.brief.tools))
        for item in screened
        if any(check.kind == CheckKind.EXPLOITS_FAIL for check in item.report.checks)
    }
    return [made for made in read(room.store, ControlReport) if made.control_id in cited]


def _said(screened: list[Screened]) -> str:
    verdicts = Counter(item.report.verdict for item in screened)
    reasons = Counter(
        item.report.reason for item in screened if item.report.verdict != ScreenVerdict.ACCEPTED
    )
    trust = Counter(
        item.report.trust.value
        for item in screened
        if item.report.verdict is ScreenVerdict.ACCEPTED
    )
    tiers = ", ".join(f"{count} {tier}" for tier, count in sorted(trust.items()))
    counts = ", ".join(
        f"{count} {verdict.value}" + (f" [{tiers}]" if verdict is ScreenVerdict.ACCEPTED else "")
        for verdict, count in verdicts.items()
    )
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    killed = sum(item.report.mutants_killed for item in screened)
    mutants = sum(item.report.mutants for item in screened)
    said = f"{counts or 'nothing'}{f' ({why})' if why else ''}"
    return f"{said}; {killed} of {mutants} wrong solutions failed"


def _written(room: Room, folder: Path, screened: list[Screened], imported: Imported) -> Path:
    """Write the receipts as JSON lines, and the page; return the page's path.

    Folders of one name have pages of their own.
    """
    out = room.home / "reports"
    out.mkdir(parents=True, exist_ok=True)
    lines = "".join(item.report.model_dump_json() + "\n" for item in screened)
    digest = sha256(fsencode(folder)).hexdigest()[:8]
    name = f"{shown(folder.name.lstrip('.'), 50)}-{digest}"
    (out / f"{name}.receipts.jsonl").write_text(lines, "utf-8")
    page = out / f"{name}.html"
    text = render_screening(
        folder,
        screened,
        imported.refused,
        _cited(room, screened),
        {"sandbox": room.backend.name, "environment": room.environment},
    )
    page.write_text(text, "utf-8")
    return page
