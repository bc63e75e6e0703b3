"""Transactions and the stage ledger: outputs and their mark commit together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flywheel.store import (
    Store,
    append,
    close,
    completed_stages,
    mark_stage,
    open_store,
    stage_done,
    transaction,
)
from tests.factories import START, make_attempt, make_draw


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "main.duckdb", clock=lambda: START)
    yield opened
    close(opened)


def count(store: Store, table: str) -> int:
    return store.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_a_transaction_commits_everything_or_nothing(store: Store) -> None:
    def stage(*, fails: bool) -> None:
        with transaction(store):
            append(store, [make_draw()])
            with transaction(store):
                append(store, [make_attempt()])
            mark_stage(store, "cycle-0001", "draw", "d1", 1.0, "said")
            if fails:
                raise KeyError("before the end")

    def counts() -> list[int]:
        return [count(store, table) for table in ("draws", "attempts", "trajectories", "stages")]

    with pytest.raises(KeyError):
        stage(fails=True)
    assert counts() == [0, 0, 0, 0]
    stage(fails=False)
    assert counts() == [1, 1, 1, 1]


def test_a_stage_is_done_for_the_input_that_it_was_marked_for(store: Store) -> None:
    assert not stage_done(store, "cycle-0001", "screen", "d1")
    mark_stage(store, "cycle-0001", "screen", "d1", 2.0, "said")
    mark_stage(store, "cycle-0001", "screen", "d1", 9.0, "said")
    assert stage_done(store, "cycle-0001", "screen", "d1")
    assert not stage_done(store, "cycle-0001", "screen", "d2")
    assert not stage_done(store, "cycle-0001", "probe", "d1")
    assert not stage_done(store, "cycle-0002", "screen", "d1")
    assert store.connection.execute("SELECT seconds FROM stages").fetchall() == [(2.0,)]


def test_what_the_stages_of_a_cycle_came_to_is_listed_in_their_order(store: Store) -> None:
    mark_stage(store, "cycle-0001", "screen", "d1", 2.0, "3 of 4 accepted")
    mark_stage(store, "cycle-0001", "draw", "d1", 1.0, "2 arms")
    mark_stage(store, "cycle-0002", "draw", "d1", 1.0, "another cycle")
    listed = completed_stages(store, "cycle-0001")
    assert sorted(listed) == [("draw", "2 arms", 1.0), ("screen", "3 of 4 accepted", 2.0)]
