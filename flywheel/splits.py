"""Which split a task belongs to, decided by what it is related to and by nothing else.

A component is a cell of the task space (a family with a set of rules) with everything derived from
its tasks. It goes whole to train, dev or holdout, by a salted hash. A variant inherits its parent's
component. A task that would tie two splits together is kept out, with the reason.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from flywheel.errors import HoldoutViolation, SplitViolation
from schemas.lineage import EdgeKind, Fingerprint, LineageEdge, Split, SplitAssignment
from schemas.task import UNTRUSTED, TaskManifest

SHARES = {Split.TRAIN: 0.60, Split.DEV: 0.25, Split.HOLDOUT: 0.15}
SALT = "flywheel-splits-1"
"""Changing it moves every component to another split: never within the life of a store."""
ASSIGNED = "assigned"


def combination(family: str, rules: Iterable[str]) -> str:
    """Return the cell of the task space: `family:rule+rule`."""
    return f"{family}:{'+'.join(sorted(rules))}"


def cell_of(task: TaskManifest) -> str:
    """Return a task's cell: its rule combination; without rules, what else makes tasks relatives.

    For an imported task that is where it comes from (a repository, a named task), for a walk over
    the tool graph its sequence of tools.
    """
    if task.rules:
        return combination(task.family, task.rules)
    if task.source.kind in UNTRUSTED:
        return f"{task.family}:{task.source.uri}"
    return f"{task.family}:{'>'.join(call.tool for call in task.sealed.reference)}"


def split_of(component: str) -> Split:
    """Return a component's split by salted hash, in the proportions of SHARES."""
    digest = hashlib.sha256(f"{SALT}\0{component}".encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64
    for split, share in SHARES.items():
        point -= share
        if point < 0:
            return split
    return Split.HOLDOUT


def fingerprint(task: TaskManifest) -> Fingerprint:
    """Return what duplicates and relatives of a task are recognised by."""
    return Fingerprint(
        version_id=task.version_id,
        task_id=task.task_id,
        prompt_hash=task.prompt_hash,
        combination=cell_of(task),
        operands=task.operands,
    )


def lineage(task: TaskManifest) -> tuple[LineageEdge, ...]:
    """Return the edges that a task brings: its cell, its parent, its hypothesis."""
    edges = [(cell_of(task), EdgeKind.COMBINATION)]
    if task.source.parent is not None:
        edges.append((task.source.parent, EdgeKind.PARENT))
    if task.source.hypothesis is not None:
        edges.append((task.source.hypothesis, EdgeKind.HYPOTHESIS))
    return tuple(LineageEdge(child=task.task_id, parent=to, kind=kind) for to, kind in edges)


def assign_splits(
    tasks: Sequence[TaskManifest],
    known: Sequence[SplitAssignment],
    fingerprints: Mapping[str, Fingerprint],
    cycle_id: str,
) -> tuple[SplitAssignment, ...]:
    """Assign each new task to a split, or keep it out.

    Args:
        tasks: new tasks.
        known: every assignment made before, in order.
        fingerprints: of new and known tasks, by task id.
        cycle_id: the cycle that assigns.

    Returns:
        One event a task. `admitted` is False for a duplicate, for a task whose operands already
        belong to another split, and for one whose cell does.
    """
    taken = {event.task_id: event for event in known if event.admitted}
    cells = {fingerprints[task_id].combination: event.split for task_id, event in taken.items()}
    owners = {
        operand: event.split
        for task_id, event in taken.items()
        for operand in fingerprints[task_id].operands
    }
    events = []
    for task in tasks:
        mark = fingerprints[task.task_id]
        parent = taken.get(task.source.parent) if task.source.parent else None
        component = parent.component if parent else mark.combination
        split = parent.split if parent else split_of(component)
        reason = _objection(mark, split, taken, cells, owners)
        event = SplitAssignment(
            cycle_id=cycle_id,
            task_id=task.task_id,
            version_id=task.version_id,
            component=component,
            split=split,
            admitted=reason == ASSIGNED,
            reason=reason,
        )
        events.append(event)
        if event.admitted:
            taken[task.task_id] = event
            cells[mark.combination] = split
            owners |= dict.fromkeys(mark.operands, split)
    return tuple(events)


def _objection(
    mark: Fingerprint,
    split: Split,
    taken: Mapping[str, SplitAssignment],
    cells: Mapping[str, Split],
    owners: Mapping[str, Split],
) -> str:
    """Return ASSIGNED, or why the task can't join this split."""
    if mark.task_id in taken:
        return "duplicate"
    if cells.get(mark.combination, split) is not split:
        return "combination-in-other-split"
    if any(owners.get(operand, split) is not split for operand in mark.operands):
        return "operands-in-other-split"
    return ASSIGNED


def require_train(splits: Mapping[str, Split], task_ids: Iterable[str], consumer: str) -> None:
    """The guard that generation, drawing, conversion and training call.

    Raises:
        HoldoutViolation: a holdout task is among them.
        SplitViolation: a dev task, or one without a split, is among them.
    """
    for task_id in task_ids:
        split = splits.get(task_id)
        if split is Split.HOLDOUT:
            raise HoldoutViolation(f"{consumer}: {task_id} is a holdout task")
        if split is not Split.TRAIN:
            found = split.value if split else "in no split"
            raise SplitViolation(f"{consumer}: {task_id} is {found}, not train")
