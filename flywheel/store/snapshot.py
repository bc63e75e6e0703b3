"""A published copy of the store, for notebooks and people to read while a cycle writes."""

from collections.abc import Sequence
from pathlib import Path

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store.connection import Store, StoreKind
from flywheel.store.shards import sync_folder

KNOWN_BY_ALL = frozenset({"split_assignments"})
"""Tables whose rows about holdout tasks tell no more than that there are such tasks."""


def publish_snapshot(store: Store, target: Path) -> Path:
    """Put a copy of everything committed at `target`, replacing the one before it at once.

    Rows about holdout tasks (manifests, answers, reference attempts) stay behind.

    DuckDB copies, not the file system: a copied file lacks what is still in the write-ahead log.
    Raises HoldoutViolation for a holdout store, and StoreError inside a transaction.
    """
    if store.kind is StoreKind.HOLDOUT:
        raise HoldoutViolation(f"{store.path}: the holdout is never published")
    if store.in_transaction:
        raise StoreError("publish_snapshot copies what is committed: call it after the transaction")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.tmp")
    # A killed copy leaves both, and its log must not be replayed into the new file.
    temporary.unlink(missing_ok=True)
    temporary.with_name(f"{temporary.name}.wal").unlink(missing_ok=True)
    _copy(store, temporary)
    temporary.replace(target)
    sync_folder(target.parent)
    return target


def _copy(store: Store, target: Path) -> None:
    """Copy the schema, then the rows of each table but those that tell about the holdout."""
    run = store.connection.execute
    (source,) = run("SELECT current_database()").fetchone()
    quoted = str(target).replace("'", "''")
    run(f"ATTACH '{quoted}' AS published")
    try:
        run(f"COPY FROM DATABASE {_identifier(source)} TO published (SCHEMA)")
        tables = run(
            "SELECT table_name, list(column_name) FROM duckdb_columns() "
            "WHERE database_name = current_database() AND table_name IN "
            "(SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()) "
            "GROUP BY table_name"
        ).fetchall()
        for table, columns in tables:
            run(
                f"INSERT INTO published.{_identifier(table)} "
                f"SELECT * FROM {_identifier(table)} WHERE {_published(table, columns)}"
            )
    finally:
        # Detaching writes the log into the file, which is whole from then on.
        run("DETACH published")


def _published(table: str, columns: Sequence[str]) -> str:
    """Return which rows of a table may be read by anybody: a holdout task's answer may not."""
    if table in KNOWN_BY_ALL:
        return "true"
    for column in ("version_id", "task_id"):
        if column in columns:
            return f"{column} NOT IN (SELECT {column} FROM task_splits WHERE split = 'holdout')"
    if table == "trajectories":
        return (
            f"attempt_id IN (SELECT attempt_id FROM attempts WHERE {_published('', ['task_id'])})"
        )
    return "true"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
