"""Rows 4 to 7 of the loop: probe, draw, collect, accept."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from flows.attempts import collected, fulfil, orders
from flows.pool import Pool, load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flywheel.attempt import make_setting
from flywheel.collect import Order
from flywheel.curriculum import Candidate, draw_arm
from flywheel.curriculum import accept as accept_attempts
from flywheel.difficulty import update_posterior
from flywheel.policy import Policy
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.probe import choose_probes
from flywheel.splits import require_train
from flywheel.store import read, read_attempts
from flywheel.train import load_policy
from schemas.attempt import Attempt, Purpose, Verdict
from schemas.base import seed_from
from schemas.config import Cycle
from schemas.curriculum import Draw
from schemas.difficulty import Posterior
from schemas.lineage import Split
from schemas.task import SourceKind


@step("probe")
def probe(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Parent policy and train tasks in; posteriors with intervals and buckets out."""
    pool = load_pool(room)
    known = _posteriors(room, cycle, pool)
    rng = np.random.default_rng(seed_from(cycle.config.seed, cycle.number, "probe"))
    chosen = choose_probes(pool.accepted(Split.TRAIN), known.keys(), cycle.config.probe, rng)
    require_train(pool.splits, (task.task_id for task in chosen), "probe")
    indexed = [(task, n) for task in chosen for n in range(cycle.config.probe.attempts)]
    wanted = orders(
        room, cycle, Purpose.PROBE, "none", cycle.parent, cycle.config.sampling, indexed
    )
    canaries, references = _canaries(room, cycle, pool)
    parent = load_policy(room.policies, cycle.parent)
    policies: dict[str, Policy] = {cycle.parent: parent, **references}
    ordered = [*wanted, *canaries]
    made = fulfil(room, cycle, "probe", ordered, policies, room.store, room.shards(cycle))
    posteriors = _update(room, wanted, made)
    again = [a for a in made if a.policy_version in references]
    buckets = Counter(posterior.bucket.value for posterior in posteriors)
    passed, graded = sum(p.passed for p in posteriors), sum(p.graded for p in posteriors)
    said = f"{len(chosen)} tasks, {passed} of {graded} graded attempts passed: {tally(buckets)}"
    return [posteriors], f"{said}; {_held(again)}"


def _canaries(
    room: Room, cycle: Cycle, pool: Pool
) -> tuple[list[Order], dict[str, ScriptedPolicy]]:
    """Return orders for the references of some training tasks, and the references by version.

    Their settings are their own, so that they enter no posterior of the parent's.
    """
    tasks = pool.accepted(Split.TRAIN)
    rng = np.random.default_rng(seed_from(cycle.config.seed, cycle.number, "canaries"))
    chosen = [tasks[n] for n in rng.permutation(len(tasks))[: cycle.config.probe.canaries]]
    require_train(pool.splits, (task.task_id for task in chosen), "probe")
    made, references = list[Order](), dict[str, ScriptedPolicy]()
    for task in chosen:
        policy = ScriptedPolicy("reference", task.sealed.reference)
        references[policy.version] = policy
        sampling = cycle.config.sampling
        made += orders(room, cycle, Purpose.PROBE, "none", policy.version, sampling, [(task, 0)])
    return made, references


def _held(again: Sequence[Attempt]) -> str:
    graded = [attempt for attempt in again if attempt.verdict is not Verdict.UNGRADED]
    passed = sum(attempt.verdict is Verdict.PASSED for attempt in graded)
    return f"{passed} of {len(graded)} references run again passed"


def _update(room: Room, wanted: Sequence[Order], made: Sequence[Attempt]) -> tuple[Posterior, ...]:
    """Return the posteriors of the settings probed, over all probes ever made at them."""
    settings = {order.setting.setting_id: order.setting for order in wanted}
    by_setting: dict[str, dict[str, Attempt]] = defaultdict(dict)
    earlier = read_attempts(room.store, "purpose = 'probe'", trajectories=False)
    for attempt in (*earlier, *made):
        by_setting[attempt.key.setting_id][attempt.attempt_id] = attempt
    posteriors = []
    for setting_id, setting in settings.items():
        attempts = list(by_setting[setting_id].values())
        first = attempts[0]
        posteriors.append(update_posterior(setting, first.key.task_id, first.family, attempts))
    return tuple(posteriors)


def _posteriors(room: Room, cycle: Cycle, pool: Pool) -> dict[str, Posterior]:
    """Return the newest posterior of each train task at the parent's present setting."""
    current = {
        make_setting(
            task,
            cycle.parent,
            room.environment_digest(task.brief.tools),
            cycle.config.sampling,
        ).setting_id
        for task in pool.accepted(Split.TRAIN)
    }
    found: dict[str, Posterior] = {}
    for posterior in read(room.store, Posterior, "policy_version = ?", [cycle.parent]):
        known = found.get(posterior.task_id)
        if posterior.setting_id in current and (known is None or posterior.graded > known.graded):
            found[posterior.task_id] = posterior
    return found


@step("draw")
def draw(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Candidates with posteriors in; each arm's draws out, before any outcome exists."""
    pool = load_pool(room)
    posteriors = _posteriors(room, cycle, pool)
    of_this_cycle = {
        event.version_id for event in pool.assignments if event.cycle_id == cycle.cycle_id
    }
    candidates = [
        Candidate(
            task_id=task.task_id,
            version_id=task.version_id,
            family=task.family,
            component=pool.components[task.task_id],
            is_new=task.version_id in of_this_cycle and task.source.kind is not SourceKind.SEED,
            posterior=posteriors.get(task.task_id),
        )
        for task in pool.accepted(Split.TRAIN)
    ]
    require_train(pool.splits, (candidate.task_id for candidate in candidates), "draw")
    plans = []
    for arm in cycle.config.draw.arms:
        rng = np.random.default_rng(seed_from(cycle.config.seed, cycle.number, "draw", arm))
        plans.append(draw_arm(arm, candidates, cycle.config.draw, cycle.cycle_id, rng))
    unfilled = [quota for plan in plans for quota in plan.unfilled]
    new = sum(candidate.is_new for candidate in candidates)
    said = f"{len(plans)} arms x {cycle.config.draw.attempts} attempts from {len(candidates)} tasks"
    said += f" ({new} new)" + (f"; unfilled: {'; '.join(unfilled)}" if unfilled else "")
    return [plan.draws for plan in plans], said


@step("collect")
def collect(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Draws and the parent policy in; one attempt for each draw out."""
    pool = load_pool(room)
    draws = read(room.store, Draw, "cycle_id = ?", [cycle.cycle_id])
    require_train(pool.splits, (drawn.task_id for drawn in draws), "collect")
    wanted = []
    for arm in cycle.config.draw.arms:
        mine = sorted((d for d in draws if d.arm is arm), key=lambda d: d.slot)
        indexed = [(pool.tasks[d.version_id], d.slot) for d in mine]
        wanted += orders(
            room, cycle, Purpose.COLLECT, arm, cycle.parent, cycle.config.sampling, indexed
        )
    policies = {cycle.parent: load_policy(room.policies, cycle.parent)}
    made = fulfil(room, cycle, "collect", wanted, policies, room.store, room.shards(cycle))
    verdicts = Counter(attempt.verdict.value for attempt in made)
    return [], f"{len(wanted)} dispatched; {tally(verdicts)}"


@step("accept")
def accept(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Attempts in; for every draw, whether it may be used, with a reason."""
    draws = read(room.store, Draw, "cycle_id = ?", [cycle.cycle_id])
    made = collected(room, cycle, trajectories=False)
    acceptances = accept_attempts(draws, made)
    reasons = Counter(acceptance.reason.value for acceptance in acceptances)
    accepted = sum(acceptance.accepted for acceptance in acceptances)
    return [acceptances], f"{accepted} of {len(draws)} draws ({tally(reasons)})"
