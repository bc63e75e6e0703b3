"""Shards: how steps that make attempts hand them over without opening the store.

In: attempts. Out: one immutable Parquet file a step, complete or absent, which one ingest loads.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flywheel.errors import StoreError
from flywheel.store.columns import columns_of, from_arrow, to_arrow
from flywheel.store.connection import Store, transaction
from flywheel.store.records import append_attempt_rows
from schemas.attempt import Attempt

SHARD_VERSION = b"1"
"""Raise it when the columns of an attempt change."""

VERSION_KEY = b"flywheel.shard_version"
TEMPORARY = ".tmp"


def write_shard(path: Path, attempts: Sequence[Attempt]) -> Path:
    """Write `attempts` to the new file `path`, which appears complete or not at all.

    Raises StoreError where `path` exists: a shard is never changed.
    """
    if path.exists():
        raise StoreError(f"shard {path} exists and is immutable: ingest it, or choose a new name")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = to_arrow(attempts, columns_of(Attempt))
    rows = rows.replace_schema_metadata({VERSION_KEY: SHARD_VERSION})
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")
    with temporary.open("wb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)
    return path


def read_shard(path: Path) -> tuple[Attempt, ...]:
    """Return a shard's attempts in the order written; raise StoreError as `ingest_shards` does."""
    return from_arrow(_load(path), Attempt)


def ingest_shards(store: Store, paths: Sequence[Path]) -> int:
    """Load all of `paths`, or none, and return how many attempts were not there before.

    Raises StoreError naming a file that is truncated, foreign or of an unknown shard version,
    and HoldoutViolation for attempts on the wrong side of the holdout's wall.
    """
    loaded = [_load(path) for path in paths]
    if not loaded:
        return 0
    with transaction(store):
        return append_attempt_rows(store, pa.concat_tables(loaded))


def sweep(folder: Path) -> int:
    """Remove the temporary files that a killed step left in `folder`; return how many.

    Call it while no step writes to the folder.
    """
    leftovers = list(folder.glob(f"*{TEMPORARY}"))
    for leftover in leftovers:
        leftover.unlink()
    return len(leftovers)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load(path: Path) -> pa.Table:
    try:
        rows = pq.read_table(path, partitioning=None)
    except FileNotFoundError as error:
        raise StoreError(f"shard {path} does not exist") from error
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"shard {path} is truncated or not Parquet: {error}") from error
    version = (rows.schema.metadata or {}).get(VERSION_KEY)
    if version != SHARD_VERSION:
        found = "no" if version is None else f"unknown ({version.decode(errors='replace')})"
        raise StoreError(
            f"shard {path} has {found} shard version: expected {SHARD_VERSION.decode()}"
        )
    expected = to_arrow((), columns_of(Attempt)).schema
    if not rows.schema.equals(expected):
        raise StoreError(f"shard {path} does not have the columns of an attempt")
    return rows
