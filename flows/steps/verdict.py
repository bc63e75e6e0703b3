"""Rows 12 and 13 of the loop: evaluate every arm on dev, then promote by the rule."""

from collections.abc import Mapping, Sequence

from flows.attempts import fulfil, orders
from flows.pool import Pool, holdout_in_force, load_pool
from flows.runtime import Room
from flows.step import Records, step
from flywheel.compare import compare
from flywheel.errors import ConfigError
from flywheel.evaluate import PARENT, EvalTask, compare_arms
from flywheel.promote import Grandparent, holdout_read
from flywheel.promote import promote as decide
from flywheel.store import read, read_attempts
from flywheel.train import load_policy
from schemas.attempt import Attempt, Purpose, Sampling
from schemas.base import content_id
from schemas.config import Cycle
from schemas.evaluation import Comparison, EvalReport, HoldoutRead
from schemas.lineage import Split
from schemas.task import TaskManifest
from schemas.training import ArmTraining, PolicyVersion


@step("evaluate")
def evaluate(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Every arm and the parent in, attempted on the dev tasks; differences with intervals out."""
    pool = load_pool(room)
    tasks = pool.accepted(Split.DEV)
    if not tasks:
        raise ConfigError("evaluate: no dev task passed screening; raise propose.dev_tasks")
    trained = {
        record.arm: record.version
        for record in read(room.store, ArmTraining, "cycle_id = ?", [cycle.cycle_id])
    }
    policy_of = {PARENT: cycle.parent}
    policy_of |= {arm.value: trained[arm.value] for arm in cycle.config.draw.arms}
    indexed = [(task, n) for task in tasks for n in range(cycle.config.evaluate.attempts)]
    sampling = Sampling(temperature=cycle.config.evaluate.temperature)
    wanted = [
        order
        for arm, version in policy_of.items()
        for order in orders(room, cycle, Purpose.EVALUATE, arm, version, sampling, indexed)
    ]
    policies = {version: load_policy(room.policies, version) for version in policy_of.values()}
    made = fulfil(room, cycle, "evaluate", wanted, policies, room.store, room.shards(cycle))
    by_arm = {arm: [a for a in made if a.key.arm == arm] for arm in policy_of}
    with room.timed("statistics"):
        report = compare_arms(
            cycle.cycle_id,
            Split.DEV,
            [_eval_task(task, pool) for task in tasks],
            by_arm,
            policy_of,
            level=cycle.config.evaluate.level,
        )
    rates = ", ".join(f"{arm.arm} {arm.passed}/{arm.passed + arm.failed}" for arm in report.arms)
    return [[report]], f"{len(tasks)} dev tasks: {rates}"


@step("promote")
def promote(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Dev report and the rule registered with the cycle in; the next cycle's parent out."""
    (report,) = read(room.store, EvalReport, "cycle_id = ?", [cycle.cycle_id])
    pool = load_pool(room)
    version = holdout_version(pool, cycle)
    earlier = read(room.store, HoldoutRead, "holdout_version = ?", [version])
    allowed = earlier[0].allowed if earlier else cycle.config.promotion.holdout_reads
    reads: list[HoldoutRead] = []

    def read_holdout(candidate: str) -> HoldoutRead:
        reads.append(_read_holdout(room, cycle, pool, candidate, len(earlier) + 1, allowed))
        return reads[0]

    promotion = decide(
        cycle,
        report,
        read_holdout,
        reads_used=len(earlier),
        reads_allowed=allowed,
        grandparent=_grandparent(room, cycle, pool.components),
    )
    return [reads, [promotion]], f"{promotion.decision.value}: {promotion.reason}"


def holdout_version(pool: Pool, cycle: Cycle) -> str:
    """Return the identity of the holdout in force: its tasks, as assigned."""
    return content_id("holdout", sorted(e.task_id for e in holdout_in_force(pool, cycle.config)))


def _eval_task(task: TaskManifest, pool: Pool) -> EvalTask:
    return EvalTask(
        task_id=task.task_id,
        component=pool.components[task.task_id],
        family=task.family,
        rules=task.rules,
    )


def _read_holdout(
    room: Room, cycle: Cycle, pool: Pool, candidate: str, number: int, allowed: int
) -> HoldoutRead:
    """Attempt the holdout with candidate and parent, in its own file; let one verdict out."""
    in_force = {event.version_id for event in holdout_in_force(pool, cycle.config)}
    tasks = [(t, 0) for t in pool.accepted(Split.HOLDOUT) if t.version_id in in_force]
    if not tasks:
        raise ConfigError("promote: no holdout task passed screening; raise propose.holdout_tasks")
    sampling = Sampling(temperature=cycle.config.evaluate.temperature)
    arms = {"candidate": candidate, PARENT: cycle.parent}
    wanted = [
        order
        for arm, policy in arms.items()
        for order in orders(room, cycle, Purpose.HOLDOUT, arm, policy, sampling, tasks)
    ]
    policies = {policy: load_policy(room.policies, policy) for policy in arms.values()}
    with room.open_holdout() as store:
        made = fulfil(room, cycle, "holdout", wanted, policies, store, room.holdout_shards)
    return holdout_read(
        cycle.cycle_id,
        holdout_version(pool, cycle),
        candidate,
        cycle.parent,
        [a for a in made if a.key.arm == "candidate"],
        [a for a in made if a.key.arm == PARENT],
        {task.task_id: pool.components[task.task_id] for task, _ in tasks},
        purpose="promotion",
        number=number,
        allowed=allowed,
    )


def _grandparent(room: Room, cycle: Cycle, components: Mapping[str, str]) -> Grandparent | None:
    """Return the parent's own parent with their dev comparison, where both were evaluated."""
    versions = read(room.store, PolicyVersion, "version = ?", [cycle.parent])
    if not versions or versions[0].parent is None:
        return None
    grandparent = versions[0].parent
    mine = _dev_attempts(room, cycle.parent, cycle.cycle_id)
    theirs = _dev_attempts(room, grandparent, None)
    tasks = {a.key.task_id for a in mine} & {a.key.task_id for a in theirs}
    if not tasks:
        return None
    gain: Comparison = compare(
        PARENT,
        "grandparent",
        [a for a in mine if a.key.task_id in tasks],
        [a for a in theirs if a.key.task_id in tasks],
        {task: components[task] for task in tasks},
        question="did the parent get worse than its own parent?",
        level=cycle.config.evaluate.level,
    )
    return Grandparent(policy_version=grandparent, parent_gain=gain)


def _dev_attempts(room: Room, policy: str, cycle_id: str | None) -> Sequence[Attempt]:
    """Return a policy's attempts as the parent arm on dev, of one cycle or of its latest."""
    made = read_attempts(
        room.store,
        "purpose = 'evaluate' AND arm = 'parent' AND policy_version = ?",
        [policy],
        trajectories=False,
    )
    run = cycle_id or max((attempt.key.run_id for attempt in made), default=None)
    return [attempt for attempt in made if attempt.key.run_id == run]
