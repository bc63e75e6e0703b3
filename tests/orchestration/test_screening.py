"""Screening many tasks: what one of them brings about is its own, and what a receipt hangs on."""

from pathlib import Path

import pytest

from flows.attempts import CircuitBreaker
from flows.cycle import begin
from flows.folders import page_of, screen_folder
from flows.pool import receipts_in_force
from flows.runtime import Room
from flows.screening import control_families, control_shard, screen_all
from flows.steps.tasks import propose
from flywheel.errors import ConfigError, ManifestError
from flywheel.formats import Imported
from flywheel.generate import as_imported
from flywheel.sandbox import Backend
from flywheel.store import (
    close,
    completed_stages,
    read,
)
from schemas.config import ProposeConfig
from schemas.screening import (
    ControlReport,
    ScreenCheck,
    ScreenReport,
    ScreenVerdict,
)
from schemas.task import TaskManifest
from tests.orchestration.conftest import once
from tests.orchestration.test_cycle import Engine
from tests.real_tasks import real_task

PLUGIN = "mine.py:CHECK"
IMAGE = f"no-such-image@sha256:{'0' * 64}"


def check(task: TaskManifest) -> ScreenCheck:
    return ScreenCheck(kind="mine", passed=True, evidence="looked")


def reports(room: Room) -> dict[str, ScreenReport]:
    return {report.version_id: report for report in read(room.store, ScreenReport)}


def test_an_image_that_is_missing_is_the_tasks_own_matter(room: Room) -> None:
    """It stays unscreened, with its reason; page and receipts are there, and nothing stops."""
    task = real_task()
    pinned = task.brief.environment.model_copy(update={"image": IMAGE})
    brief = task.brief.model_copy(update={"environment": pinned})
    lost = as_imported(task.model_copy(update={"brief": brief}))
    page = page_of(room, room.home / "tasks", Imported((lost,), ()), "screening")
    (report,) = receipts_in_force(room, [lost], unscreened=True).values()
    assert (report.verdict, report.reason) == (ScreenVerdict.UNSCREENED, "not-boots")
    assert "not-boots" in page.read_text("utf-8")
    assert receipts_in_force(room, [lost]) == {}


def test_an_engine_that_is_down_stops_screening_after_the_page_is_written(
    room: Room, bubblewrap: Backend
) -> None:
    room.backend = Engine(bubblewrap, down=True)
    task = real_task()
    with pytest.raises(CircuitBreaker, match=r"1 of 1.*engine-unreachable"):
        page_of(room, room.home / "tasks", Imported((task,), ()), "screening")
    (page,) = (room.home / "reports").glob("*.html")
    (lines,) = (room.home / "reports").glob("*.receipts.jsonl")
    assert "not-boots" in page.read_text("utf-8")
    assert ScreenReport.model_validate_json(lines.read_text("utf-8")).reason == "not-boots"


def test_a_task_that_breaks_screening_leaves_the_others_screened(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = real_task("keep-last"), real_task("at-least")

    def breaks(task: TaskManifest) -> ScreenCheck:
        if task == bad:
            raise ManifestError("grader: planted")
        return check(task)

    monkeypatch.setattr(Room, "own_checks", (breaks,))
    assert screen_all(room, "screening", [bad, good]) == []
    assert receipts_in_force(room, [bad, good]).keys() == {good.version_id}
    found = reports(room)
    assert found[good.version_id].verdict is ScreenVerdict.ACCEPTED
    assert found[bad.version_id].verdict is ScreenVerdict.UNSCREENED
    assert "ManifestError: grader: planted" in found[bad.version_id].checks[0].evidence


def test_controls_are_recorded_as_they_are_made(
    room: Room, bubblewrap: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever presses Ctrl-C at the second family keeps the first one's."""
    seen: list[None] = []

    def advance() -> None:
        seen.append(None)
        raise KeyboardInterrupt

    room.config = room.config.model_copy(update={"workers": 1})
    tasks = [real_task(), real_task("first-line", family="permissions")]
    wanted = [(task, room.environment_digest(task.brief.tools)) for task in tasks]
    with pytest.raises(KeyboardInterrupt):
        control_shard(room, wanted, advance)
    (kept,) = read(room.store, ControlReport)
    assert kept.family == "orders"
    assert control_families(room, tasks[:1]) == {kept.control_id: kept}
    page = page_of(room, room.home / "other", Imported((), ()), "screening").read_text("utf-8")
    assert "shadows-the-graders" not in page


def test_imports_that_can_not_be_read_are_named_and_all_of_them_listed(room: Room) -> None:
    folder = room.home / "imports"
    for number in range(5):
        (folder / f"task-{number}").mkdir(parents=True)
    few = ProposeConfig(
        seed_tasks=1, new_tasks=1, dev_tasks=1, holdout_tasks=1, folders=(str(folder),)
    )
    room.config = room.config.model_copy(update={"propose": few})
    cycle = begin(room)
    once(propose, room, cycle)
    ((_, said, _),) = completed_stages(room.store, cycle.cycle_id)
    assert "5 in folders not read: task-0: no task of a known format" in said
    assert "task-2: " in said
    assert "task-3: " not in said
    assert "2 more" in said
    listed = (room.home / "reports" / f"refused-{cycle.cycle_id}.txt").read_text("utf-8")
    assert [line.split(": ")[0] for line in listed.splitlines()] == [f"task-{n}" for n in range(5)]


def test_options_that_an_unfinished_cycle_would_overrule_are_refused(room: Room) -> None:
    begin(room)
    close(room.store)
    asked = room.config.model_copy(update={"sandbox": "docker"})
    with pytest.raises(ConfigError, match=r"cycle-0001 is unfinished.*leave out --sandbox"):
        screen_folder.fn(str(room.home), asked)
    asked = room.config.model_copy(update={"propose": ProposeConfig(plugins=(PLUGIN,))})
    with pytest.raises(ConfigError, match=r"cycle-0001 is unfinished.*leave out --plugin"):
        screen_folder.fn(str(room.home), asked)


def test_folders_of_one_name_have_pages_of_their_own(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = set()
    for parent in ("a", "b"):
        folder = room.home / parent / "tasks"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        pages.add(page_of(room, Path(), Imported((), ()), "screening"))
        pages.add(page_of(room, folder, Imported((), ()), "screening"))
    assert len(pages) == 2
    assert {page.name.rpartition("-")[0] for page in pages} == {"tasks"}
