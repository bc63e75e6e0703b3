"""Shards and snapshots: how attempts get into the store, and how people read it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store import (
    Store,
    append,
    close,
    ingest_shards,
    open_holdout,
    open_store,
    publish_snapshot,
    read,
    read_shard,
    sweep,
    transaction,
    write_shard,
)
from schemas.attempt import Attempt, Purpose
from tests.factories import START, make_attempt, make_draw
from tests.strategies import records


def clock() -> float:
    return START


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "main.duckdb", clock=clock)
    yield opened
    close(opened)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(attempts=st.lists(records(Attempt), max_size=4))
def test_a_shard_gives_back_the_attempts_written(tmp_path: Path, attempts: list[Attempt]) -> None:
    path = tmp_path / "shard.parquet"
    path.unlink(missing_ok=True)
    assert read_shard(write_shard(path, attempts)) == tuple(attempts)


def test_shards_are_ingested_once_whatever_they_share(store: Store, tmp_path: Path) -> None:
    attempts = [make_attempt(index) for index in range(5)]
    first = write_shard(tmp_path / "shards" / "a.parquet", attempts[:3])
    second = write_shard(tmp_path / "shards" / "b.parquet", attempts[2:])
    assert ingest_shards(store, [first, second]) == 5
    assert ingest_shards(store, [second, first]) == 0
    assert ingest_shards(store, []) == 0
    assert {a.attempt_id for a in read(store, Attempt)} == {a.attempt_id for a in attempts}
    assert all(attempt in attempts for attempt in read(store, Attempt))


def test_a_shard_is_never_changed_and_no_temporary_is_left(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.parquet", [make_attempt(0)])
    with pytest.raises(StoreError, match=r"a\.parquet exists and is immutable"):
        write_shard(path, [make_attempt(1)])
    assert read_shard(path) == (make_attempt(0),)
    assert list(tmp_path.iterdir()) == [path]


def test_sweep_removes_what_a_killed_step_left_and_nothing_else(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.parquet", [make_attempt()])
    (tmp_path / "b.parquet.123.tmp").write_bytes(path.read_bytes()[:100])
    assert sweep(tmp_path) == 1
    assert sweep(tmp_path) == 0
    assert list(tmp_path.iterdir()) == [path]


def write_foreign(path: Path, version: bytes | None) -> None:
    metadata = None if version is None else {b"flywheel.shard_version": version}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(metadata), path)


@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        (None, "no shard version"),
        (b"999", r"unknown \(999\) shard version"),
        (b"1", "columns of an attempt"),
    ],
)
def test_a_foreign_shard_is_refused_by_name_and_nothing_is_loaded(
    store: Store, tmp_path: Path, version: bytes | None, complaint: str
) -> None:
    good = write_shard(tmp_path / "good.parquet", [make_attempt()])
    write_foreign(tmp_path / "bad.parquet", version)
    with pytest.raises(StoreError, match=rf"bad\.parquet .*{complaint}"):
        ingest_shards(store, [good, tmp_path / "bad.parquet"])
    assert read(store, Attempt) == ()


def test_a_shard_truncated_anywhere_is_refused_and_nothing_is_loaded(
    store: Store, tmp_path: Path
) -> None:
    good = write_shard(tmp_path / "good.parquet", [make_attempt(0)])
    whole = write_shard(tmp_path / "whole.parquet", [make_attempt(1)]).read_bytes()
    cut = tmp_path / "cut.parquet"
    for size in [*range(0, len(whole), 997), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(StoreError, match=r"cut\.parquet is truncated or not Parquet"):
            ingest_shards(store, [good, cut])
    with pytest.raises(StoreError, match=r"gone\.parquet does not exist"):
        ingest_shards(store, [good, tmp_path / "gone.parquet"])
    assert read(store, Attempt) == ()


def test_holdout_shards_enter_the_holdouts_file_alone(store: Store, tmp_path: Path) -> None:
    secret = write_shard(tmp_path / "h.parquet", [make_attempt(purpose=Purpose.HOLDOUT)])
    open_one = write_shard(tmp_path / "o.parquet", [make_attempt()])
    with pytest.raises(HoldoutViolation):
        ingest_shards(store, [open_one, secret])
    assert read(store, Attempt) == ()
    holdout = open_holdout(tmp_path / "holdout.duckdb", clock=clock)
    with pytest.raises(HoldoutViolation):
        ingest_shards(holdout, [open_one])
    assert ingest_shards(holdout, [secret]) == 1
    close(holdout)


def test_a_snapshot_has_what_is_committed_though_only_in_the_log(
    store: Store, tmp_path: Path
) -> None:
    append(store, [make_draw(0)])
    append(store, [make_attempt(0)])
    assert store.path.with_name("main.duckdb.wal").stat().st_size > 0
    copied = shutil.copy(store.path, tmp_path / "copied.duckdb")

    target = publish_snapshot(store, tmp_path / "published" / "it's.duckdb")

    with duckdb.connect(copied, read_only=True) as reader, pytest.raises(duckdb.CatalogException):
        reader.execute("FROM draws")
    with duckdb.connect(str(target), read_only=True) as reader:
        assert reader.execute("SELECT slot FROM draws").fetchall() == [(0,)]
        assert reader.execute("SELECT verdict FROM attempt_outcomes").fetchall() == [("passed",)]
    assert list(target.parent.iterdir()) == [target]


def test_a_snapshot_replaces_the_one_before_it_under_a_reader(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "published.duckdb"
    publish_snapshot(store, target)
    with duckdb.connect(str(target), read_only=True) as reader:
        append(store, [make_draw()])
        target.with_name("published.duckdb.tmp").write_bytes(b"left by a kill")
        publish_snapshot(store, target)
        assert reader.execute("SELECT count(*) FROM draws").fetchone() == (0,)
    with duckdb.connect(str(target), read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM draws").fetchone() == (1,)
    append(store, [make_draw(1)])


def test_neither_the_holdout_nor_half_a_transaction_is_published(
    store: Store, tmp_path: Path
) -> None:
    target = tmp_path / "published.duckdb"
    holdout = open_holdout(tmp_path / "holdout.duckdb", clock=clock)
    with pytest.raises(HoldoutViolation):
        publish_snapshot(holdout, target)
    close(holdout)
    with transaction(store), pytest.raises(StoreError, match="after the transaction"):
        publish_snapshot(store, target)
    assert not target.exists()
