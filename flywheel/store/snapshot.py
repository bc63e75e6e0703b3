"""A published copy of the store, for notebooks and people to read while a cycle writes."""

from pathlib import Path

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store.connection import Store, StoreKind
from flywheel.store.shards import sync_folder


def publish_snapshot(store: Store, target: Path) -> Path:
    """Put a copy of everything committed at `target`, replacing the one before it at once.

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
    run = store.connection.execute
    (source,) = run("SELECT current_database()").fetchone()
    quoted = str(target).replace("'", "''")
    run(f"ATTACH '{quoted}' AS published")
    try:
        run(f"COPY FROM DATABASE {_identifier(source)} TO published")
    finally:
        # Detaching writes the log into the file, which is whole from then on.
        run("DETACH published")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
