"""Which tasks a stage may use: what a receipt, a ruling and later runs are worth."""

import pytest

from flows.attempts import fulfil, orders
from flows.cycle import begin
from flows.pool import holdout_in_force, load_pool, receipts_in_force
from flows.runtime import Room, screening_version
from flows.steps.practice import probe
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.store import (
    append,
    completed_stages,
    read,
    read_attempts,
    reference_runs,
)
from schemas.attempt import Purpose, Sampling
from schemas.config import ProbeConfig
from schemas.difficulty import Posterior
from schemas.lineage import Split
from schemas.screening import (
    ReviewDecision,
    ReviewItem,
    Ruling,
    ScreenReport,
    ScreenVerdict,
)
from schemas.task import Source, SourceKind, TaskManifest
from tests.factories import make_assignment, make_screen_report
from tests.orchestration.conftest import once
from tests.real_tasks import real_task


def receipt_of(room: Room, task: TaskManifest) -> ScreenReport:
    """A receipt in force that accepts a task, without screening it."""
    return make_screen_report(
        task,
        environment_digest=room.environment_digest(task.brief.tools),
        harness_version=screening_version(room.plugins),
        grader_version=task.sealed.grader.version,
    )


def ruled(report: ScreenReport, author: str) -> ReviewDecision:
    return ReviewDecision(
        item_id=report.item_id,
        version_id=report.version_id,
        ruling=Ruling.ACCEPT,
        author=author,
        note="",
        decided_at=1.0,
    )


def test_a_ruling_holds_for_the_reason_that_was_looked_at_alone(room: Room) -> None:
    task = real_task()
    sound = receipt_of(room, task)
    old, new = (
        sound.model_copy(update={"verdict": ScreenVerdict.QUARANTINED, "reason": reason})
        for reason in ("not-mutants-fail", "not-no-leak")
    )
    append(room.store, [task])
    append(room.store, [new])
    append(room.store, [ruled(old, "Ada")])
    assert load_pool(room).trust == {}
    append(room.store, [ruled(new, "Ada")])
    assert load_pool(room).trust.keys() == {task.version_id}
    item = ReviewItem(
        version_id=task.version_id, name="", reason="not-no-leak", evidence="", raised_at=0.0
    )
    assert item.item_id == new.item_id


@pytest.mark.parametrize("split", [Split.DEV, Split.HOLDOUT])
def test_a_strangers_task_judges_no_policy_whatever_its_source_says(
    room: Room, split: Split
) -> None:
    """Its uri is that of the holdout in force, and its operands may fall into any split."""
    ours = SourceKind.EVALUATION if split is Split.DEV else SourceKind.HOLDOUT
    made = [
        real_task(seed=seed, source=Source(kind=kind, uri="holdout-1", licence="x"))
        for seed, kind in enumerate((ours, SourceKind.IMPORTED, SourceKind.PROPOSED))
    ]
    append(room.store, [receipt_of(room, task) for task in made])
    append(room.store, made)
    append(room.store, [make_assignment(task, split=split) for task in made])
    pool = load_pool(room)
    assert len(pool.trust) == 3
    assert [t.source.kind for t in pool.accepted(split)] == [ours]
    in_force = holdout_in_force(pool, room.config)
    wanted = [made[0].version_id] if split is Split.HOLDOUT else []
    assert [event.version_id for event in in_force] == wanted


def test_references_of_accepted_tasks_run_again_each_cycle_and_enter_no_posterior(
    room: Room,
) -> None:
    settings = ProbeConfig(tasks=1, attempts=1, canaries=2)
    room.config = room.config.model_copy(update={"probe": settings})
    tasks = [real_task(rule) for rule in ("keep-last", "at-least", "half-up")]
    append(room.store, tasks)
    append(room.store, [receipt_of(room, task) for task in tasks])
    append(room.store, [make_assignment(task) for task in tasks])
    before = {found.version_id: found.runs for found in reference_runs(room.store)}
    cycle = begin(room)
    once(probe, room, cycle)
    after = {found.version_id: (found.runs, found.passed) for found in reference_runs(room.store)}
    assert sorted(runs - before[task] for task, (runs, _) in after.items()) == [0, 1, 1]
    assert all(runs == passed for runs, passed in after.values())
    made = read_attempts(room.store, trajectories=False)
    assert {a.key.purpose for a in made} == {Purpose.PROBE}
    assert {p.policy_version for p in read(room.store, Posterior)} == {cycle.parent}
    ((_, said, _),) = completed_stages(room.store, cycle.cycle_id)
    assert said.endswith("2 of 2 references run again passed")


def test_a_reference_that_later_fails_too_often_takes_its_task_out_of_the_pool(room: Room) -> None:
    """The receipt names the version of screening, later runs do not: both count."""
    task = real_task()
    append(room.store, [task])
    append(room.store, [receipt_of(room, task)])
    cycle = begin(room)
    assert load_pool(room).trust.keys() == {task.version_id}
    wrong = ScriptedPolicy("reference", ())
    indexed = [(task, n) for n in range(8)]
    wanted = orders(room, cycle, Purpose.PROBE, "none", wrong.version, Sampling(), indexed)
    policies = {wrong.version: wrong}
    fulfil(room, cycle, "probe", wanted, policies, room.store, room.shards(cycle))
    assert load_pool(room).trust == {}


def test_a_receipt_is_void_when_screening_a_check_or_the_grader_is_another_one(room: Room) -> None:
    task = real_task()
    report = receipt_of(room, task)
    append(room.store, [report])
    assert receipts_in_force(room, [task]).keys() == {task.version_id}
    room.plugins.versions["tool/mine"] = "mine@1"
    assert receipts_in_force(room, [task])
    room.plugins.versions["check/mine"] = "mine@1"
    assert receipts_in_force(room, [task]) == {}
    room.plugins.versions.clear()
    grader = task.sealed.grader.model_copy(update={"version": "compare@old"})
    sealed = task.sealed.model_copy(update={"grader": grader})
    older = task.model_copy(update={"sealed": sealed})
    changes = {"version_id": older.version_id, "grader_version": "compare@old"}
    append(room.store, [report.model_copy(update=changes)])
    assert receipts_in_force(room, [older]) == {}
