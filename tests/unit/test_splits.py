"""Splits: whole components, no shared operand, and one guard for every consumer."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import HoldoutViolation, SplitViolation
from flywheel.splits import (
    SHARES,
    assign_splits,
    combination,
    fingerprint,
    lineage,
    require_train,
    split_of,
)
from schemas.lineage import EdgeKind, Split, SplitAssignment
from schemas.task import Source, SourceKind, TaskManifest
from tests.factories import make_manifest

CELLS = [(family, rule) for family in ("orders", "logs") for rule in "abcdefghijkl"]


def assign(
    tasks: list[TaskManifest], known: tuple[SplitAssignment, ...] = ()
) -> tuple[SplitAssignment, ...]:
    marks = {task.task_id: fingerprint(task) for task in tasks}
    return assign_splits(tasks, known, marks, "cycle-0001")


def cell_in(split: Split) -> tuple[str, str]:
    return next(cell for cell in CELLS if split_of(combination(cell[0], [cell[1]])) is split)


def task_in(
    cell: tuple[str, str], seed: int, source: Source | None = None, operand: str | None = None
) -> TaskManifest:
    """A task in a cell of the task space, with one operand, by default its own."""
    made = make_manifest(seed, family=cell[0], rules=(cell[1],), source=source)
    fields = {name: getattr(made, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, "operands": (operand or f"{cell}-{seed}",)})


def test_the_proportions_of_the_splits_are_as_stated() -> None:
    drawn = Counter(split_of(f"family:{number}") for number in range(20_000))
    for split, share in SHARES.items():
        assert drawn[split] / 20_000 == pytest.approx(share, abs=0.012)


@given(
    st.lists(st.tuples(st.sampled_from(CELLS), st.integers(0, 30)), max_size=30),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_a_component_never_straddles_splits_whatever_the_order_of_arrival(
    wanted: list[tuple[tuple[str, str], int]], data: st.DataObject
) -> None:
    tasks = [task_in(cell, seed, operand="xyz"[seed % 3]) for cell, seed in wanted]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(tasks)), max_size=3)))
    known: tuple[SplitAssignment, ...] = ()
    for start, end in pairwise([0, *cuts, len(tasks)]):
        marks = {task.task_id: fingerprint(task) for task in tasks}
        known += assign_splits(tasks[start:end], known, marks, "cycle-0001")
    splits: dict[str, set[Split]] = {}
    owners: dict[str, set[Split]] = {}
    for event, task in zip(known, tasks, strict=True):
        if event.admitted:
            splits.setdefault(event.component, set()).add(event.split)
            for operand in task.operands:
                owners.setdefault(operand, set()).add(event.split)
    assert all(len(found) == 1 for found in (*splits.values(), *owners.values()))
    admitted = Counter(event.task_id for event in known if event.admitted)
    assert set(admitted.values()) <= {1}


def test_a_task_seen_before_is_kept_out_as_a_duplicate_also_in_other_words() -> None:
    cell = cell_in(Split.TRAIN)
    task = task_in(cell, 1)
    brief = task.brief.model_copy(update={"goal": "In other words."})
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    reworded = TaskManifest(**{**fields, "brief": brief})
    assert reworded.task_id == task.task_id
    known = assign([task])
    assert [event.reason for event in assign([reworded], known)] == ["duplicate"]


def test_an_operand_belongs_to_one_split() -> None:
    train = task_in(cell_in(Split.TRAIN), 5, operand="acorn")
    dev = task_in(cell_in(Split.DEV), 6, operand="acorn")
    other = task_in(cell_in(Split.DEV), 7, operand="birch")
    reasons = [event.reason for event in assign([train, dev, other])]
    assert reasons == ["assigned", "operands-in-other-split", "assigned"]


def test_a_variant_inherits_its_parents_split_and_never_joins_two() -> None:
    parent = task_in(cell_in(Split.TRAIN), 1)
    source = Source(
        kind=SourceKind.HYPOTHESIS, uri="x", licence="MIT", parent=parent.task_id, hypothesis="hyp"
    )
    near = task_in(cell_in(Split.TRAIN), 2, source)
    across = task_in(cell_in(Split.DEV), 3, source)
    dev = task_in(cell_in(Split.DEV), 4)
    events = assign([parent, dev, near, across])
    assert events[2].component == events[0].component
    assert [event.reason for event in events] == [
        "assigned",
        "assigned",
        "assigned",
        "combination-in-other-split",
    ]
    kinds = {edge.kind for edge in lineage(near)}
    assert kinds == {EdgeKind.COMBINATION, EdgeKind.PARENT, EdgeKind.HYPOTHESIS}


def test_the_guard_lets_train_through_and_nothing_else() -> None:
    splits = {"t": Split.TRAIN, "d": Split.DEV, "h": Split.HOLDOUT}
    require_train(splits, ["t"], "test")
    with pytest.raises(HoldoutViolation, match="h is a holdout task"):
        require_train(splits, ["t", "h"], "test")
    for stranger in ("d", "unknown"):
        with pytest.raises(SplitViolation, match="not train"):
            require_train(splits, [stranger], "test")
