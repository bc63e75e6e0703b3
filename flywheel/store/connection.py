"""A store: one DuckDB file, one writer. Opening brings its tables and views up to date."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import duckdb

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store.migrate import create_views, migrate

Clock = Callable[[], float]
"""Returns seconds since the epoch."""


class StoreKind(StrEnum):
    """Which attempts a file may hold."""

    MAIN = "main"
    """All but the holdout's."""
    HOLDOUT = "holdout"
    """The holdout's and no other."""


@dataclass(slots=True)
class Store:
    """An open store. It belongs to one thread: DuckDB has one writer."""

    connection: duckdb.DuckDBPyConnection
    path: Path
    clock: Clock
    kind: StoreKind
    in_transaction: bool = False

    def now(self) -> datetime:
        """Return the clock's time in UTC, without a zone: DuckDB's TIMESTAMP."""
        return datetime.fromtimestamp(self.clock(), UTC).replace(tzinfo=None)


def open_store(path: Path, *, clock: Clock) -> Store:
    """Open the main store at `path`, which is made if there is none, and migrate it.

    Raises StoreError where the file is locked, foreign, or of another version of the program,
    and HoldoutViolation where it is a holdout file.
    """
    return _open(path, clock, StoreKind.MAIN)


def open_holdout(path: Path, *, clock: Clock) -> Store:
    """Open the holdout's own file: as `open_store`, but it takes holdout attempts alone."""
    return _open(path, clock, StoreKind.HOLDOUT)


def close(store: Store) -> None:
    """Close the file, so that another process can open it."""
    store.connection.close()


@contextmanager
def transaction(store: Store) -> Iterator[None]:
    """Commit everything inside together, or nothing where an error leaves the block.

    A transaction inside another is part of it: the outermost commits.
    """
    if store.in_transaction:
        yield
        return
    store.connection.begin()
    store.in_transaction = True
    completed = False
    try:
        yield
        completed = True
    finally:
        store.in_transaction = False
        if not completed:
            store.connection.rollback()
    store.connection.commit()


def _open(path: Path, clock: Clock, kind: StoreKind) -> Store:
    path.parent.mkdir(parents=True, exist_ok=True)
    store = Store(_connect(path), path, clock, kind)
    with ExitStack() as on_error:
        on_error.callback(close, store)
        with transaction(store):
            _claim(store)
        migrate(store.connection, store.now)
        with transaction(store):
            create_views(store.connection)
        on_error.pop_all()
    return store


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        # Otherwise a misspelt table would be read from a Python variable of that name.
        return duckdb.connect(str(path), config={"python_enable_replacements": "false"})
    except duckdb.Error as error:
        holder = re.search(r"Conflicting lock.*\(PID (\d+)\)", str(error))
        if holder is None:
            raise StoreError(f"{path} can't be opened as a store: {error}") from error
        raise StoreError(
            f"{path} is locked by process {holder[1]}: another cycle is running on this store. "
            "Wait for it, or read the published snapshot instead"
        ) from error


def _claim(store: Store) -> None:
    """Write the kind into a new file; refuse a file of another kind or of another program."""
    run = store.connection.execute
    tables = {name for (name,) in run("SELECT table_name FROM duckdb_tables()").fetchall()}
    if not tables:
        run("CREATE TABLE store_kind (kind VARCHAR PRIMARY KEY)")
        run("INSERT INTO store_kind VALUES (?)", [store.kind.value])
    elif "store_kind" not in tables:
        raise StoreError(f"{store.path} is a DuckDB file of another program: name another file")
    row = run("SELECT kind FROM store_kind").fetchone()
    if row != (store.kind.value,):
        raise HoldoutViolation(f"{store.path} is not a {store.kind.value} store: it says {row}")
