"""Opening a store: who may, what it brings up to date, and what it refuses."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store import (
    Store,
    append,
    close,
    migrate,
    open_holdout,
    open_store,
    read,
)
from schemas.task import TaskManifest
from tests.factories import START, make_manifest


def clock() -> float:
    return START


def now() -> datetime:
    return datetime(2023, 11, 14)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "main.duckdb", clock=clock)
    yield opened
    close(opened)


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    return {name for (name,) in found} - {"schema_migrations"}


def write_migrations(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, sql in files.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(sql)
    return folder


def test_a_python_variable_is_never_taken_for_a_table(store: Store) -> None:
    rows = make_manifest()  # noqa: F841
    with pytest.raises(duckdb.CatalogException):
        store.connection.execute("SELECT * FROM rows")


def test_another_process_is_told_who_holds_the_store(store: Store) -> None:
    program = (
        "import pathlib, sys\n"
        "from flywheel.errors import StoreError\n"
        "from flywheel.store import open_store\n"
        "try:\n"
        "    open_store(pathlib.Path(sys.argv[1]), clock=lambda: 0.0)\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", program, str(store.path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"{store.path} is locked by process {os.getpid()}:" in said
    assert "another cycle is running on this store" in said


def test_records_are_still_there_after_closing_and_opening(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "main.duckdb"
    first = open_store(path, clock=clock)
    append(first, [make_manifest()])
    close(first)
    second = open_store(path, clock=clock)
    assert read(second, TaskManifest) == (make_manifest(),)
    close(second)


def test_a_file_of_one_kind_is_not_opened_as_the_other(tmp_path: Path) -> None:
    close(open_store(tmp_path / "main.duckdb", clock=clock))
    close(open_holdout(tmp_path / "holdout.duckdb", clock=clock))
    with pytest.raises(HoldoutViolation):
        open_holdout(tmp_path / "main.duckdb", clock=clock)
    with pytest.raises(HoldoutViolation):
        open_store(tmp_path / "holdout.duckdb", clock=clock)


def test_migrations_are_applied_once_in_order(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    folder = write_migrations(tmp_path / "m", m0001_a="CREATE TABLE a (x INT)")
    assert migrate(database, now, folder) == (1,)
    write_migrations(folder, m0002_b="ALTER TABLE a ADD COLUMN y INT; CREATE TABLE b (x INT)")
    assert migrate(database, now, folder) == (2,)
    assert migrate(database, now, folder) == ()
    assert tables(database) == {"a", "b"}
    ledger = "SELECT version, name, length(sha256), applied_at FROM schema_migrations"
    assert database.execute(ledger).fetchall() == [(1, "a", 64, now()), (2, "b", 64, now())]


def test_a_failing_migration_leaves_what_the_one_before_it_made(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    folder = write_migrations(
        tmp_path / "m",
        m0001_a="CREATE TABLE a (x INT)",
        m0002_b="CREATE TABLE b (x INT); INSERT INTO nowhere VALUES (1)",
    )
    with pytest.raises(StoreError, match=r"0002_b failed: .*nowhere"):
        migrate(database, now, folder)
    assert tables(database) == {"a"}
    write_migrations(folder, m0002_b="CREATE TABLE b (x INT)")
    assert migrate(database, now, folder) == (2,)


def test_a_migration_changed_after_it_was_applied_is_refused(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    folder = write_migrations(tmp_path / "m", m0001_a="CREATE TABLE a (x INT)")
    migrate(database, now, folder)
    write_migrations(
        folder, m0001_a="CREATE TABLE a (x INT, y INT)", m0002_b="CREATE TABLE b (x INT)"
    )
    with pytest.raises(StoreError, match=r"0001_a was changed after it was applied"):
        migrate(database, now, folder)
    assert tables(database) == {"a"}


def test_a_store_that_is_newer_than_the_program_is_refused(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    newer = write_migrations(
        tmp_path / "newer", m0001_a="CREATE TABLE a (x INT)", m0002_b="CREATE TABLE b (x INT)"
    )
    migrate(database, now, newer)
    older = write_migrations(tmp_path / "older", m0001_a="CREATE TABLE a (x INT)")
    with pytest.raises(StoreError, match=r"newer than this program .*0002_b"):
        migrate(database, now, older)


def test_a_gap_is_refused_among_the_files_and_among_the_applied(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    gap = write_migrations(tmp_path / "gap", m0001_a="SELECT 1", m0003_c="SELECT 3")
    with pytest.raises(StoreError, match=r"0003_c\.sql: expected number 0002"):
        migrate(database, now, gap)
    twice = write_migrations(tmp_path / "twice", m0001_a="SELECT 1", m0001_b="SELECT 1")
    with pytest.raises(StoreError, match=r"0001_b\.sql: expected number 0002"):
        migrate(database, now, twice)
    whole = write_migrations(tmp_path / "whole", m0001_a="SELECT 1", m0002_b="SELECT 2")
    migrate(database, now, whole)
    database.execute("DELETE FROM schema_migrations WHERE version = 1")
    with pytest.raises(StoreError, match="lacks migration 0001 but has 0002"):
        migrate(database, now, whole)


def test_a_migration_with_an_unreadable_name_is_refused(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    folder = write_migrations(tmp_path / "m", first="SELECT 1")
    with pytest.raises(StoreError, match=r"first\.sql: name it like"):
        migrate(database, now, folder)


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign, junk = tmp_path / "foreign.duckdb", tmp_path / "junk.duckdb"
    with duckdb.connect(str(foreign)) as connection:
        connection.execute("CREATE TABLE theirs (x INT)")
    junk.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match="another program") as refusal:
        open_store(foreign, clock=clock)
    with pytest.raises(StoreError, match=f"{junk} can't be opened"):
        open_store(junk, clock=clock)
    with duckdb.connect(str(foreign)) as connection:
        assert tables(connection) == {"theirs"}
    assert refusal.tb is not None, "kept until here: the file was closed, not left to the collector"
