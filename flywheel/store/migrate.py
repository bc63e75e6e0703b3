"""Bring a store's tables and views up to date.

Migrations are files named `0001_words.sql`, numbered without gaps, one transaction each. An
applied one is never edited: what it says is compared by checksum at every opening.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from flywheel.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
VIEWS = Path(__file__).parent / "views"

LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY,
    name VARCHAR,
    sha256 VARCHAR,
    applied_at TIMESTAMP
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Checksum of its text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrate(
    connection: duckdb.DuckDBPyConnection,
    now: Callable[[], datetime],
    folder: Path = MIGRATIONS,
) -> tuple[int, ...]:
    """Apply what is missing, in order, and return the versions applied.

    Raises StoreError, having applied nothing, where files and store disagree about the past;
    and where a migration fails, which leaves the store as the one before it did.
    """
    migrations = _load(folder)
    connection.execute(LEDGER)
    applied = connection.execute(
        "SELECT version, name, sha256 FROM schema_migrations ORDER BY version"
    ).fetchall()
    _check_past(migrations, applied)
    missing = migrations[len(applied) :]
    for migration in missing:
        _apply(connection, migration, now())
    return tuple(migration.version for migration in missing)


def create_views(connection: duckdb.DuckDBPyConnection, folder: Path = VIEWS) -> None:
    """Create every view anew, in the order of the file names; the caller commits."""
    for path in sorted(folder.glob("*.sql")):
        connection.execute(path.read_text(encoding="utf-8"))


def _load(folder: Path) -> list[Migration]:
    """Read the files, whose numbers must run from 1 without a gap."""
    migrations = []
    for number, path in enumerate(sorted(folder.glob("*.sql")), start=1):
        match = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
        if match is None:
            raise StoreError(f"migration {path.name}: name it like 0002_add_labels.sql")
        if int(match[1]) != number:
            raise StoreError(
                f"migration {path.name}: expected number {number:04d}, without gap or repetition"
            )
        migrations.append(Migration(number, match[2], path.read_text(encoding="utf-8")))
    return migrations


def _check_past(migrations: list[Migration], applied: list[tuple[int, str, str]]) -> None:
    for position, (version, name, sha256) in enumerate(applied, start=1):
        if version != position:
            raise StoreError(
                f"the store lacks migration {position:04d} but has {version:04d}: "
                "restore it from a snapshot"
            )
        if version > len(migrations):
            raise StoreError(
                f"the store is newer than this program (migration {version:04d}_{name} is "
                "unknown): install the version that wrote it"
            )
        if migrations[position - 1].sha256 != sha256:
            raise StoreError(
                f"migration {version:04d}_{name} was changed after it was applied: "
                "restore the file and put the change into a new migration"
            )


def _apply(connection: duckdb.DuckDBPyConnection, migration: Migration, now: datetime) -> None:
    connection.begin()
    try:
        connection.execute(migration.sql)
        connection.execute(
            "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
            [migration.version, migration.name, migration.sha256, now],
        )
    except duckdb.Error as error:
        connection.rollback()
        raise StoreError(
            f"migration {migration.version:04d}_{migration.name} failed: {error}"
        ) from error
    connection.commit()
