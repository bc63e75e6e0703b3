"""Records in and out of their tables: one record type, one table, one column a field.

Writing is append-only and idempotent: a record whose key is already there is left out, so the
first one wins and a stage that runs again changes nothing. Reading gives records back as they
were, ordered by key, so that the order never depends on which thread wrote first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from flywheel.errors import HoldoutViolation, StoreError
from flywheel.store.columns import Column, columns_of, from_arrow, to_arrow
from flywheel.store.connection import Store, StoreKind, transaction
from schemas.attempt import Attempt, Purpose, Setting
from schemas.base import Record
from schemas.config import Cycle
from schemas.curriculum import Acceptance, Draw
from schemas.difficulty import Posterior
from schemas.evaluation import EvalReport, HoldoutRead, Promotion
from schemas.failure import AuditItem, Failure, FailureCluster
from schemas.hypothesis import Hypothesis, HypothesisVerdict
from schemas.lineage import Fingerprint, LineageEdge, Split, SplitAssignment
from schemas.screening import (
    ControlReport,
    Proposal,
    ReviewDecision,
    ReviewItem,
    ScreenReport,
)
from schemas.task import TaskManifest
from schemas.training import (
    ArmTraining,
    PolicyVersion,
    PreferencePair,
    Rejected,
    RlTrajectory,
    SftExample,
)

R = TypeVar("R", bound=Record)
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Where records of one type are kept, and what makes two of them the same."""

    name: str
    key: tuple[str, ...]


TABLES: Mapping[type[Record], Table] = {
    Cycle: Table("cycles", ("number",)),
    TaskManifest: Table("tasks", ("version_id",)),
    Fingerprint: Table("fingerprints", ("version_id",)),
    LineageEdge: Table("lineage", ("child", "parent", "kind")),
    # Two wordings of one task are two versions, each with an assignment of its own.
    SplitAssignment: Table("split_assignments", ("cycle_id", "version_id")),
    # The verdict is part of the key: `unscreened` must not keep the later verdict out.
    ScreenReport: Table(
        "screen_reports",
        ("version_id", "environment_digest", "harness_version", "grader_version", "verdict"),
    ),
    ControlReport: Table("control_reports", ("control_id",)),
    ReviewItem: Table("review_items", ("item_id",)),
    ReviewDecision: Table("review_decisions", ("item_id", "decided_at")),
    Proposal: Table("proposals", ("proposal_id",)),
    Setting: Table("settings", ("setting_id",)),
    Attempt: Table("attempts", ("attempt_id",)),
    Posterior: Table("posteriors", ("posterior_id",)),
    Draw: Table("draws", ("draw_id",)),
    Acceptance: Table("acceptances", ("draw_id",)),
    Failure: Table("failures", ("attempt_id",)),
    FailureCluster: Table("failure_clusters", ("cluster_id",)),
    AuditItem: Table("audit_items", ("cycle_id", "attempt_id")),
    SftExample: Table("sft_examples", ("row_id",)),
    PreferencePair: Table("preference_pairs", ("row_id",)),
    RlTrajectory: Table("rl_trajectories", ("row_id",)),
    Rejected: Table("rejected", ("row_id",)),
    PolicyVersion: Table("policy_versions", ("version",)),
    ArmTraining: Table("arm_trainings", ("cycle_id", "arm")),
    EvalReport: Table("eval_reports", ("report_id",)),
    Promotion: Table("promotions", ("cycle_id",)),
    HoldoutRead: Table("holdout_reads", ("read_id",)),
    Hypothesis: Table("hypotheses", ("hypothesis_id",)),
    HypothesisVerdict: Table("hypothesis_verdicts", ("hypothesis_id", "cycle_id")),
}

TRAJECTORIES = Table("trajectories", ("attempt_id",))
"""The bytes of an attempt, apart from its summary: few queries want them."""


def append(store: Store, records: Sequence[Record]) -> int:
    """Write `records`, all of one type, and return how many were not there before.

    Raises StoreError for a type without a table or a mixture of types, and HoldoutViolation for
    a record on the wrong side of the holdout's wall.
    """
    if not records:
        return 0
    types = {type(record) for record in records}
    if len(types) > 1 or not types <= TABLES.keys():
        names = ", ".join(sorted(found.__name__ for found in types))
        raise StoreError(f"append takes records of one type that has a table, got {names}")
    record_type = types.pop()
    rows = to_arrow(records, columns_of(record_type))
    if record_type is Attempt:
        return append_attempt_rows(store, rows)
    _check_side(store, record_type, records)
    return _insert(store, TABLES[record_type], rows)


def append_attempt_rows(store: Store, rows: pa.Table) -> int:
    """Write attempts that are Arrow rows already, one column a field; see `append`."""
    is_holdout = pc.equal(rows["purpose"], Purpose.HOLDOUT.value)
    if pc.any(pc.not_equal(is_holdout, store.kind is StoreKind.HOLDOUT)).as_py():
        raise HoldoutViolation(
            f"{store.path} is a {store.kind.value} store: attempts with purpose 'holdout' go to "
            "the holdout's file, and no others do"
        )
    apart = {column.name for column in _trajectory_columns()}
    summary = [name for name in rows.column_names if name not in apart]
    with transaction(store):
        _insert(store, TRAJECTORIES, rows.select(["attempt_id", *sorted(apart)]))
        return _insert(store, TABLES[Attempt], rows.select(summary))


def read(
    store: Store, record_type: type[R], where: str = "", parameters: Sequence[Scalar] = ()
) -> tuple[R, ...]:
    """Return the records of one type for which the SQL condition `where` holds, by key.

    `parameters` fill the condition's question marks.
    """
    table = TABLES[record_type]
    filtered = f"SELECT * FROM {table.name} WHERE {where or 'true'}"
    if record_type is Attempt:
        filtered = _with_trajectories(filtered)
    return _fetch(store, record_type, filtered, parameters)


def read_attempts(
    store: Store, where: str = "", parameters: Sequence[Scalar] = (), *, trajectories: bool
) -> tuple[Attempt, ...]:
    """Return attempts by id; without `trajectories` each has an empty one, which is faster."""
    if trajectories:
        return read(store, Attempt, where, parameters)
    empty = ", ".join(f"'[]' AS {column.name}" for column in _trajectory_columns())
    filtered = f"SELECT *, {empty} FROM attempts WHERE {where or 'true'}"
    return _fetch(store, Attempt, filtered, parameters)


@dataclass(frozen=True, slots=True)
class ReferenceRuns:
    """How often a task's reference ran under the same conditions, and passed."""

    version_id: str
    environment_digest: str
    harness_version: str
    grader_version: str
    runs: int
    passed: int


def reference_runs(store: Store) -> list[ReferenceRuns]:
    """Return the reference's runs at screening and ever after."""
    names = ", ".join(ReferenceRuns.__slots__)
    rows = store.connection.execute(f"SELECT {names} FROM reference_runs ORDER BY ALL").fetchall()
    return [ReferenceRuns(*row) for row in rows]


def _fetch(
    store: Store, record_type: type[R], source: str, parameters: Sequence[Scalar]
) -> tuple[R, ...]:
    names = _quoted(column.name for column in columns_of(record_type) if not column.derived)
    order = _quoted(TABLES[record_type].key)
    sql = f"SELECT {names} FROM ({source}) ORDER BY {order}"
    return from_arrow(store.connection.execute(sql, list(parameters)).to_arrow_table(), record_type)


def _with_trajectories(attempts: str) -> str:
    names = _quoted(column.name for column in _trajectory_columns())
    return f"({attempts}) JOIN (SELECT attempt_id, {names} FROM trajectories) USING (attempt_id)"


def _trajectory_columns() -> list[Column]:
    return [column for column in columns_of(Attempt) if column.path[0] == "trajectory"]


def _insert(store: Store, table: Table, rows: pa.Table) -> int:
    """Insert the rows whose key is new, each key once, and return how many they were."""
    rows = _first_of_each(rows, table.key)
    names, key = _quoted(rows.column_names), _quoted(table.key)
    sql = (
        f"INSERT INTO {table.name} ({names}, recorded_at) "
        f"SELECT {names}, ?::TIMESTAMP FROM incoming ANTI JOIN {table.name} USING ({key})"
    )
    store.connection.register("incoming", rows)
    try:
        (inserted,) = store.connection.execute(sql, [store.now()]).fetchone()
    finally:
        store.connection.unregister("incoming")
    return int(inserted)


def _first_of_each(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    first: dict[tuple[Scalar, ...], int] = {}
    for position, values in enumerate(zip(*(rows[name].to_pylist() for name in key), strict=True)):
        first.setdefault(values, position)
    return rows if len(first) == rows.num_rows else rows.take(list(first.values()))


def _check_side(store: Store, record_type: type[Record], records: Sequence[Record]) -> None:
    if store.kind is StoreKind.HOLDOUT:
        raise HoldoutViolation(
            f"{store.path} holds holdout attempts alone: {record_type.__name__} goes to the "
            "main store"
        )
    for record in records:
        if isinstance(record, EvalReport) and record.split is Split.HOLDOUT:
            raise HoldoutViolation("what leaves the holdout is a HoldoutRead, not an EvalReport")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
