"""The loop as a person runs it: twice from nothing, and killed in the middle."""

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pytest
from nbclient import NotebookClient

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


def test_killed_at_random_moments_a_cycle_ends_as_if_it_had_not_been(
    tmp_path: Path, run_cycle: Run, environment: dict[str, str]
) -> None:
    """Nothing is lost, nothing is made or counted twice, nothing is left behind."""
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    began = time.monotonic()
    run_cycle(whole)
    length = time.monotonic() - began
    rng = random.Random(11)
    for _ in range(6):
        process = subprocess.Popen(
            command(torn, SMALL),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.25, 0.9) * length)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    run_cycle(torn)
    for query in (
        "SELECT attempt_id, verdict, termination FROM attempts ORDER BY 1",
        "SELECT draw_id, probability, reason FROM draws ORDER BY 1",
        "SELECT draw_id, attempt_id FROM acceptances ORDER BY 1",
        "SELECT attempt_id, layer, code FROM failures ORDER BY 1",
        "SELECT arm, version, row_ids FROM arm_trainings ORDER BY 1",
        "SELECT posterior_id, passed, graded FROM posteriors ORDER BY 1",
        "SELECT hypothesis_id, claim FROM hypotheses ORDER BY 1",
        "SELECT decision, next_parent, reason FROM promotions",
    ):
        assert rows(torn, query) == rows(whole, query), query
    time.sleep(1)
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    running = listing.stdout.splitlines()
    left = [line for line in running if str(torn) in line or "bwrap" in line]
    assert left == []
    assert not list(torn.rglob("*.tmp"))
