"""The store: the only SQL. Records in, records out; see `views/` for the numbers derived."""

from flywheel.store.connection import (
    Store,
    StoreKind,
    close,
    open_holdout,
    open_store,
    transaction,
)
from flywheel.store.migrate import migrate
from flywheel.store.records import (
    TABLES,
    ReferenceRuns,
    append,
    read,
    read_attempts,
    reference_runs,
)
from flywheel.store.shards import ingest_shards, read_shard, sweep, write_shard
from flywheel.store.snapshot import publish_snapshot
from flywheel.store.stages import completed_stages, mark_stage, stage_done

__all__ = [
    "TABLES",
    "ReferenceRuns",
    "Store",
    "StoreKind",
    "append",
    "close",
    "completed_stages",
    "ingest_shards",
    "mark_stage",
    "migrate",
    "open_holdout",
    "open_store",
    "publish_snapshot",
    "read",
    "read_attempts",
    "read_shard",
    "reference_runs",
    "stage_done",
    "sweep",
    "transaction",
    "write_shard",
]
