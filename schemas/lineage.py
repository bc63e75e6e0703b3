"""What a task resembles, what it descends from, and which split that puts it in."""

from enum import StrEnum

from schemas.base import Name, Record


class Split(StrEnum):
    """Train to optimise, dev to tune, steer and promote, holdout only for acceptance."""

    TRAIN = "train"
    DEV = "dev"
    HOLDOUT = "holdout"


class Fingerprint(Record):
    """What duplicates and relatives of a task are recognised by."""

    version_id: str
    task_id: str
    prompt_hash: str
    combination: str
    """`family:rule+rule`: the cell of the task space."""
    operands: tuple[str, ...]


class EdgeKind(StrEnum):
    """How a child came from a parent."""

    PARENT = "parent"
    HYPOTHESIS = "hypothesis"
    COMBINATION = "combination"
    """Same cell of the task space: one component."""


class LineageEdge(Record):
    """A child descends from, or is tied to, a parent."""

    child: str
    parent: str
    kind: EdgeKind


class SplitAssignment(Record):
    """An event, never overwritten: this task belongs to this split."""

    cycle_id: str
    task_id: str
    version_id: str
    component: str
    split: Split
    admitted: bool
    reason: Name
    """`assigned`, or why the task is kept out (duplicate, operands-overlap, …)."""
