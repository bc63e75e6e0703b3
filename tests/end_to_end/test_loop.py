"""The loop as a person runs it: twice from nothing, and killed in the middle."""

import random
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pytest
from nbclient import NotebookClient

from flywheel.sandbox.choose import open_backend
from tests.end_to_end.conftest import SMALL, Run, command

pytestmark = pytest.mark.slow


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(home / "flywheel.duckdb"), read_only=True) as connection:
        return connection.execute(query).fetchall()


def page(home: Path, number: int) -> str:
    return (home / "reports" / f"cycle-{number:04d}.html").read_text("utf-8")


def test_the_second_cycle_judges_what_the_first_one_wrote(two_cycles: Path) -> None:
    assert "None: no earlier cycle left an open one." in page(two_cycles, 1)
    written = rows(two_cycles, "SELECT hypothesis_id FROM hypotheses WHERE cycle_id = 'cycle-0001'")
    assert written
    verdicts = dict(rows(two_cycles, "SELECT hypothesis_id, judgement FROM hypothesis_verdicts"))
    assert set(verdicts) == {hypothesis for (hypothesis,) in written}
    for hypothesis, judgement in verdicts.items():
        assert hypothesis in page(two_cycles, 2)
        assert judgement in page(two_cycles, 2)
    tested = rows(
        two_cycles,
        "SELECT DISTINCT source ->> 'hypothesis' FROM tasks WHERE source ->> 'kind' = 'hypothesis'",
    )
    assert {hypothesis for (hypothesis,) in tested} <= set(verdicts)


def test_a_page_fetches_nothing_and_runs_nothing(two_cycles: Path) -> None:
    assert not re.search(r"<(script|link|iframe|img)\b|@import|url\(", page(two_cycles, 2))


def test_counts_add_up_and_arms_are_equal(two_cycles: Path) -> None:
    funnel = rows(
        two_cycles,
        "SELECT drawn, pending, not_returned, returned, infrastructure, ungraded, graded, accepted,"
        " trained_rows FROM dispatch_funnel",
    )
    assert len(funnel) == 6
    for drawn, pending, lost, returned, infra, ungraded, graded, accepted, trained in funnel:
        assert drawn == trained == 20 == pending + lost + returned
        assert returned == infra + ungraded + graded
        assert accepted == graded
    trained = rows(two_cycles, "SELECT cycle_id, own_rows, teacher_rows, parent FROM arm_trainings")
    assert len(trained) == 6
    assert len(set(trained)) == 2


def test_nothing_of_the_holdout_is_in_the_store_or_in_what_is_published(two_cycles: Path) -> None:
    holdout = "SELECT count(*) FROM attempts WHERE purpose = 'holdout'"
    assert rows(two_cycles, holdout) == [(0,)]
    with duckdb.connect(str(two_cycles / "snapshot.duckdb"), read_only=True) as snapshot:
        for table in ("tasks", "attempts", "screen_reports"):
            (left,) = snapshot.execute(
                f"SELECT count(*) FROM {table} JOIN task_splits USING (version_id) "
                "WHERE split = 'holdout'"
            ).fetchone()
            assert left == 0, table
        orphans = snapshot.execute(
            "SELECT count(*) FROM trajectories ANTI JOIN attempts USING (attempt_id)"
        ).fetchone()
    assert orphans == (0,)
    assert rows(two_cycles, "SELECT count(*) FROM task_splits WHERE split = 'holdout'") == [(8,)]


def test_the_notebook_tells_a_tasks_story_from_the_snapshot(
    two_cycles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYWHEEL_HOME", str(two_cycles))
    path = Path(__file__).parents[2] / "notebooks" / "01_follow_one_task.ipynb"
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert "accepted" in str(outputs[3])
    assert "reference@" in str(outputs[-1])


def test_two_cycles_at_once_on_one_store_are_told_apart(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    home = tmp_path / "home"
    first = subprocess.Popen(
        command(home, SMALL), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (home / "flywheel.duckdb").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        second = subprocess.run(
            command(home, SMALL), env=environment, capture_output=True, text=True, check=False
        )
        assert second.returncode != 0
        assert "another cycle is running on this store" in second.stderr
        assert "Traceback" not in second.stderr
    finally:
        first.kill()
        first.wait()


def test_stopped_at_random_moments_a_cycle_ends_as_if_it_had_not_been(
    tmp_path: Path,
    two_cycles: Path,
    run_cycle: Run,
    environment: dict[str, str],
) -> None:
    """Nothing is lost, nothing is made or counted twice, nothing is left behind."""
    torn, rng, owners = tmp_path / "torn", random.Random(11), list[int]()
    marked = {**environment, MARK: str(torn)}
    for stop in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGINT):
        process = subprocess.Popen(
            command(torn, SMALL),
            env=marked,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        owners.append(process.pid)
        time.sleep(rng.uniform(4, 16))
        process.send_signal(stop)
        process.wait(timeout=60)
    if not (torn / "reports" / "cycle-0001.html").exists():
        run_cycle(torn)
    first = "WHERE {} = 'cycle-0001' ORDER BY 1"
    for query in (
        "SELECT attempt_id, verdict, termination FROM attempts " + first.format("run_id"),
        "SELECT draw_id, probability, reason FROM draws " + first.format("cycle_id"),
        "SELECT draw_id, attempt_id FROM acceptances " + first.format("cycle_id"),
        "SELECT attempt_id, layer, code FROM failures " + first.format("cycle_id"),
        "SELECT row_id FROM sft_examples " + first.format("cycle_id"),
        "SELECT arm, version, row_ids FROM arm_trainings " + first.format("cycle_id"),
        "SELECT hypothesis_id, claim FROM hypotheses " + first.format("cycle_id"),
        "SELECT decision, next_parent, reason FROM promotions " + first.format("cycle_id"),
    ):
        assert rows(torn, query) == rows(two_cycles, query), query
    assert_nothing_left(torn, owners)


def assert_nothing_left(home: Path, owners: list[int]) -> None:
    """What the kernel does not end at once is what the next run removes first."""
    open_backend("bubblewrap").reap()
    deadline = time.monotonic() + 10
    while (left := processes_of(home, owners)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    assert not list(home.rglob("*.tmp"))
    assert not list(home.rglob(".making-*"))


HOST = socket.gethostname()
MARK = "FLYWHEEL_TEST_HOME"
"""What the processes of one test carry in their environment; other tests run at the same time."""


def processes_of(home: Path, owners: list[int]) -> list[str]:
    """Processes that carry the mark, name the folder, or are sandboxes of these owners."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            named = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            carried = (entry / "environ").read_bytes()
        except OSError:
            continue  # it has ended
        ours = f"{MARK}={home}".encode() in carried or str(home) in named
        if ours or any(named.startswith(f"bwrap of {HOST} {owner} ") for owner in owners):
            found.append(named)
    return found
