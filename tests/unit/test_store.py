"""The store keeps every record as it was, once, on its own side of the holdout's wall."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store import (
    TABLES,
    Store,
    append,
    close,
    open_holdout,
    open_store,
    read,
    read_attempts,
)
from schemas.attempt import Attempt, AttemptKey, Purpose, Trajectory
from schemas.base import Record, canonical_json
from schemas.curriculum import Draw
from schemas.evaluation import EvalReport
from schemas.lineage import Split
from schemas.task import Budget
from tests.factories import START, make_attempt, make_draw, make_manifest
from tests.strategies import records


def clock() -> float:
    return START


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "main.duckdb", clock=clock)
    yield opened
    close(opened)


@pytest.fixture
def holdout(tmp_path: Path) -> Iterator[Store]:
    opened = open_holdout(tmp_path / "holdout.duckdb", clock=clock)
    yield opened
    close(opened)


def count(store: Store, table: str) -> int:
    return store.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def columns(store: Store, table: str) -> list[str]:
    found = store.connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
        [table],
    )
    return [name for (name,) in found.fetchall()]


@pytest.mark.parametrize("record_type", TABLES, ids=lambda record_type: record_type.__name__)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_every_record_comes_back_exactly_as_it_went_in(
    store: Store, record_type: type[Record], data: st.DataObject
) -> None:
    record = data.draw(records(record_type))
    if isinstance(record, EvalReport):
        record = record.model_copy(update={"split": Split.DEV})
    if isinstance(record, Attempt):
        key = record.key.model_copy(update={"purpose": Purpose.PROBE})
        record = record.model_copy(update={"key": key})
    for table in (TABLES[record_type].name, "trajectories"):
        store.connection.execute(f"DELETE FROM {table}")

    assert append(store, [record]) == 1

    (found,) = read(store, record_type)
    assert found == record
    assert canonical_json(found) == canonical_json(record)


@pytest.mark.parametrize(
    "record_type", [t for t in TABLES if t is not Attempt], ids=lambda t: t.__name__
)
def test_a_table_has_the_fields_of_its_record_and_when_it_was_recorded(
    store: Store, record_type: type[Record]
) -> None:
    fields = [*record_type.model_fields, *record_type.model_computed_fields, "recorded_at"]
    assert sorted(columns(store, TABLES[record_type].name)) == sorted(fields)


@pytest.mark.parametrize("record_type", TABLES, ids=lambda record_type: record_type.__name__)
def test_the_key_that_makes_records_the_same_is_the_primary_key(
    store: Store, record_type: type[Record]
) -> None:
    table = TABLES[record_type]
    (key,) = store.connection.execute(
        "SELECT constraint_column_names FROM duckdb_constraints() "
        "WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'",
        [table.name],
    ).fetchone()
    assert tuple(key) == table.key


def test_the_attempt_tables_have_the_keys_fields_and_keep_trajectories_apart(
    store: Store,
) -> None:
    key = ["attempt_index" if name == "index" else name for name in AttemptKey.model_fields]
    rest = [name for name in Attempt.model_fields if name not in ("key", "trajectory")]
    derived = list(Attempt.model_computed_fields)
    assert columns(store, "attempts") == [*key, *rest, *derived, "recorded_at"]
    apart = ["attempt_id", *Trajectory.model_fields, "recorded_at"]
    assert columns(store, "trajectories") == apart


def test_no_table_is_without_a_record_but_the_ledgers(store: Store) -> None:
    found = store.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    of_records = {table.name for table in TABLES.values()} | {"trajectories"}
    assert {name for (name,) in found} - of_records == {
        "stages",
        "schema_migrations",
        "store_kind",
    }


def test_computed_fields_and_the_clocks_utc_time_are_columns(store: Store) -> None:
    attempts = [make_attempt(0), make_attempt(1, passed=None)]
    append(store, attempts)
    rows = store.connection.execute(
        "SELECT attempt_id, verdict, reward, recorded_at FROM attempts ORDER BY attempt_index"
    ).fetchall()
    when = datetime(2023, 11, 14, 22, 13, 20)
    assert rows == [
        (attempts[0].attempt_id, "passed", 1.0, when),
        (attempts[1].attempt_id, "ungraded", None, when),
    ]


def test_a_record_is_stored_once_and_the_first_one_wins(store: Store) -> None:
    first, again = make_draw(0, probability=0.5), make_draw(0, probability=0.9)
    assert append(store, [first, again, make_draw(1)]) == 2
    assert append(store, [again, make_draw(2)]) == 1
    assert read(store, Draw, "slot = ?", (0,)) == (first,)
    assert count(store, "draws") == 3
    assert append(store, []) == 0


def test_records_are_read_in_the_order_of_their_key_whatever_order_they_came_in(
    store: Store,
) -> None:
    draws = [make_draw(slot) for slot in range(20)]
    append(store, draws[10:])
    append(store, draws[:10])
    assert read(store, Draw) == tuple(sorted(draws, key=lambda draw: draw.draw_id))


def test_attempts_are_read_with_or_without_their_trajectories(store: Store) -> None:
    attempts = [make_attempt(index, passed=index > 0) for index in range(3)]
    append(store, attempts)
    where = ("verdict = ? AND attempt_index > ?", ("passed", 1))
    assert read_attempts(store, *where, trajectories=True) == (attempts[2],)
    (bare,) = read_attempts(store, *where, trajectories=False)
    assert bare.trajectory == Trajectory(turns=(), artifacts=())
    assert bare.model_copy(update={"trajectory": attempts[2].trajectory}) == attempts[2]


def test_an_attempt_is_never_stored_without_its_trajectory_nor_the_other_way(
    store: Store,
) -> None:
    store.connection.execute("ALTER TABLE attempts RENAME TO gone")
    with pytest.raises(duckdb.CatalogException):
        append(store, [make_attempt()])
    assert count(store, "trajectories") == 0


def test_append_refuses_a_mixture_and_a_type_without_a_table(store: Store) -> None:
    with pytest.raises(StoreError, match="got Draw, TaskManifest"):
        append(store, [make_draw(), make_manifest()])
    with pytest.raises(StoreError, match="got Budget"):
        append(store, [Budget()])


def test_a_whole_number_beyond_64_bits_is_refused_by_the_name_of_its_field(store: Store) -> None:
    with pytest.raises(StoreError, match="slot"):
        append(store, [make_draw(2**63)])


def test_a_stored_row_that_no_longer_fits_its_schema_is_an_error_naming_the_field(
    store: Store,
) -> None:
    append(store, [make_draw()])
    store.connection.execute("UPDATE draws SET probability = 2")
    with pytest.raises(StoreError, match=r"Draw does not fit its schema(.|\n)*probability"):
        read(store, Draw)


def test_holdout_attempts_go_to_their_own_file_and_no_other_record_does(
    store: Store, holdout: Store
) -> None:
    secret = make_attempt(purpose=Purpose.HOLDOUT)
    with pytest.raises(HoldoutViolation, match="main store"):
        append(store, [make_attempt(), secret])
    assert count(store, "attempts") == 0
    with pytest.raises(HoldoutViolation, match="holdout store"):
        append(holdout, [secret, make_attempt()])
    with pytest.raises(HoldoutViolation, match="Draw goes to the main store"):
        append(holdout, [make_draw()])
    assert append(holdout, [secret]) == 1
    assert read(holdout, Attempt) == (secret,)


def test_a_report_on_the_holdout_is_refused(store: Store) -> None:
    report = EvalReport(
        cycle_id="cycle-0001",
        split=Split.HOLDOUT,
        tasks_digest="d",
        arms=(),
        comparisons=(),
        unanswered=(),
    )
    with pytest.raises(HoldoutViolation, match="HoldoutRead"):
        append(store, [report])
    assert append(store, [report.model_copy(update={"split": Split.DEV})]) == 1
