"""Rows 10 and 11 of the loop: convert accepted attempts into rows, train each arm on its own."""

from collections import Counter
from collections.abc import Mapping, Sequence

from flows.attempts import collected
from flows.pool import Pool, load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flows.training import TrainOrder, train_arms
from flywheel.convert import Basis
from flywheel.convert.preference import to_pairs
from flywheel.convert.rl import to_rl
from flywheel.convert.sft import demonstrations, own_successes, select_rows, to_sft
from flywheel.splits import require_train
from flywheel.store import read, read_attempts
from schemas.attempt import Attempt, Setting, Verdict
from schemas.base import Record, seed_from
from schemas.config import Cycle
from schemas.curriculum import Acceptance, Arm, Draw
from schemas.failure import Failure
from schemas.training import ArmTraining, PolicyVersion, SftExample

REFERENCE = "reference@"
"""How the version of the teacher behind a demonstration begins."""


@step("convert")
def convert(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Accepted attempts in; SFT, preference and RL rows out, and refusals with their reason."""
    pool = load_pool(room)
    draws = read(room.store, Draw, "cycle_id = ?", [cycle.cycle_id])
    require_train(pool.splits, (drawn.task_id for drawn in draws), "convert")
    failures = {
        f.attempt_id: f for f in read(room.store, Failure, "cycle_id = ?", [cycle.cycle_id])
    }
    settings = {setting.setting_id: setting for setting in read(room.store, Setting)}
    accepted, references = _accepted(room, cycle), _references(room)
    groups: list[Sequence[Record]] = []
    for arm in cycle.config.draw.arms:
        basis = _basis(cycle, arm, pool)
        mine = [drawn for drawn in draws if drawn.arm is arm]
        own, not_sft = to_sft(accepted[arm], basis)
        shown, not_shown = to_sft(demonstrations(mine, references), basis)
        pairs, not_pairs = to_pairs(accepted[arm], failures, basis)
        dispatched = Counter(drawn.version_id for drawn in mine)
        trajectories, not_rl = to_rl(accepted[arm], failures, settings, dispatched, basis)
        groups += [own, shown, pairs, trajectories]
        groups += [not_sft, not_shown, not_pairs, not_rl]
    kinds = Counter(type(record).__name__ for group in groups for record in group)
    return groups, tally(kinds)


@step("train")
def train(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Each arm's rows and the common parent in; one policy version an arm out."""
    pool = load_pool(room)
    draws = read(room.store, Draw, "cycle_id = ?", [cycle.cycle_id])
    rehearsal = _rehearsal(room, cycle)
    rows = _selected(room, cycle, draws)
    for arm_rows in (*rows.values(), rehearsal):
        require_train(pool.splits, (row.provenance.task_id for row in arm_rows), "train")
    seed = seed_from(cycle.config.seed, cycle.number, "train") >> 32
    wanted = [
        TrainOrder(parent=cycle.parent, rows=arm_rows, rehearsal=rehearsal, seed=seed)
        for arm_rows in rows.values()
    ]
    with room.timed("training"), room.progress.bar("train", len(wanted)) as advance:
        versions = train_arms(
            room.policies, wanted, cycle.config.train, cycle.config.workers, advance
        )
    trained = [
        _training(cycle, arm, version, arm_rows, rehearsal)
        for (arm, arm_rows), version in zip(rows.items(), versions, strict=True)
    ]
    own = trained[0].own_rows
    said = f"{len(trained)} arms x {cycle.config.train.rows} rows ({own} own successes each), "
    said += f"{cycle.config.train.steps} steps; tokens " + ", ".join(
        str(v.tokens) for v in versions
    )
    return [versions, trained], said


def _accepted(room: Room, cycle: Cycle) -> Mapping[Arm, list[Attempt]]:
    """Return each arm's accepted attempts, with trajectories."""
    taken = read(room.store, Acceptance, "cycle_id = ? AND accepted", [cycle.cycle_id])
    made = collected(room, cycle, trajectories=True)
    by_id = {attempt.attempt_id: attempt for attempt in made}
    return {
        arm: [by_id[a.attempt_id] for a in taken if a.arm is arm and a.attempt_id is not None]
        for arm in cycle.config.draw.arms
    }


def _references(room: Room) -> dict[str, Attempt]:
    """Return a passing reference attempt of each task version, from screening."""
    made = read_attempts(room.store, "purpose = 'screen'", trajectories=True)
    return {
        attempt.key.version_id: attempt
        for attempt in reversed(made)
        if attempt.verdict is Verdict.PASSED and attempt.policy_version.startswith(REFERENCE)
    }


def _basis(cycle: Cycle, arm: Arm, pool: Pool) -> Basis:
    return Basis(
        cycle_id=cycle.cycle_id,
        arm=arm,
        manifests=pool.tasks,
        splits=pool.splits,
        trust=pool.trust,
    )


def _selected(room: Room, cycle: Cycle, draws: Sequence[Draw]) -> dict[Arm, tuple[SftExample, ...]]:
    """Return each arm's rows: the same number, and the same number of own successes, in all."""
    rows = read(room.store, SftExample, "cycle_id = ?", [cycle.cycle_id])
    by_arm = {
        arm: (
            [drawn for drawn in draws if drawn.arm is arm],
            [row for row in rows if row.arm == arm and not _by_teacher(row)],
            [row for row in rows if row.arm == arm and _by_teacher(row)],
        )
        for arm in cycle.config.draw.arms
    }
    count = cycle.config.train.rows
    own = min(own_successes(mine, successes, count) for mine, successes, _ in by_arm.values())
    return {
        arm: select_rows(mine, successes, shown, count, own)
        for arm, (mine, successes, shown) in by_arm.items()
    }


def _by_teacher(row: SftExample) -> bool:
    return row.provenance.teacher.startswith(REFERENCE)


def _rehearsal(room: Room, cycle: Cycle) -> tuple[SftExample, ...]:
    """Return every row that the parent was trained on, itself or by its own rehearsal."""
    trained = read(room.store, ArmTraining, "version = ?", [cycle.parent])
    ids = {row_id for record in trained for row_id in (*record.row_ids, *record.rehearsal_ids)}
    rows = read(room.store, SftExample) if ids else ()
    return tuple(row for row in rows if row.row_id in ids)


def _training(
    cycle: Cycle,
    arm: Arm,
    version: PolicyVersion,
    rows: Sequence[SftExample],
    rehearsal: Sequence[SftExample],
) -> ArmTraining:
    taught = sum(_by_teacher(row) for row in rows)
    return ArmTraining(
        cycle_id=cycle.cycle_id,
        arm=arm,
        parent=cycle.parent,
        version=version.version,
        own_rows=len(rows) - taught,
        teacher_rows=taught,
        row_ids=tuple(row.row_id for row in rows),
        rehearsal_ids=tuple(row.row_id for row in rehearsal),
    )
