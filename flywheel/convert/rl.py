"""RL trajectories: graded attempts with the sampler's tokens, in groups that know their size.

A group is one arm's attempts at one task version under one setting. Groups without variance are
kept: that nothing or everything passed is evidence of difficulty.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from flywheel.convert import Basis, system_failure
from schemas.attempt import LIMITS, Attempt, Setting, Tokens, Verdict
from schemas.base import content_id
from schemas.failure import Failure
from schemas.screening import Trust
from schemas.training import Rejected, RejectReason, RlTrajectory

FILTER = "rl@2"
MIN_GROUP = 2
"""Graded attempts below which a group has no baseline."""

_COUNTED = frozenset({None, RejectReason.NO_TOKENS})
"""What a graded attempt may be refused for and still count in its group's baseline."""

_GroupKey = tuple[str, str]


def to_rl(
    attempts: Iterable[Attempt],
    failures: Mapping[str, Failure],
    settings: Mapping[str, Setting],
    dispatched: Mapping[str, int],
    basis: Basis,
) -> tuple[tuple[RlTrajectory, ...], tuple[Rejected, ...]]:
    """Return a row for each attempt that importance weighting can use, else a refusal.

    Args:
        attempts: An arm's accepted attempts.
        failures: By attempt_id, of at least every failed attempt.
        settings: By setting_id: where the sampling parameters stand.
        dispatched: version_id → how often the arm drew it, whatever came back.
        basis: What the rows rest on.

    Raises SplitViolation for a task outside the train split, ValueError where more of a group came
    back than was dispatched.
    """
    given = tuple(attempts)
    reasons = {attempt.attempt_id: _refusal(attempt, failures, basis) for attempt in given}
    graded = Counter(_group(a) for a in given if reasons[a.attempt_id] in _COUNTED)
    _require_dispatched(graded, dispatched)
    rows: list[RlTrajectory] = []
    rejected: list[Rejected] = []
    for attempt in given:
        reason = reasons[attempt.attempt_id]
        if reason is None and graded[_group(attempt)] < MIN_GROUP:
            reason = RejectReason.GROUP_TOO_SMALL
        if reason is not None:
            rejected.append(basis.reject(attempt, "rl", reason))
            continue
        sizes = dispatched[attempt.key.version_id], graded[_group(attempt)]
        rows.append(_row(attempt, settings[attempt.key.setting_id], sizes, basis))
    return tuple(rows), tuple(rejected)


def _refusal(
    attempt: Attempt, failures: Mapping[str, Failure], basis: Basis
) -> RejectReason | None:
    if reason := basis.unusable(attempt):
        return reason
    if basis.trust[attempt.key.version_id] != Trust.VERIFIED:
        return RejectReason.NOT_VERIFIED
    if system_failure(attempt, failures):
        return RejectReason.SYSTEM_FAILURE
    turns = attempt.trajectory.turns
    complete = all(turn.tokens is not None for turn in turns)
    acted = any(segment.completion for segment in _segments(attempt))
    return None if complete and acted else RejectReason.NO_TOKENS


def _require_dispatched(graded: Mapping[_GroupKey, int], dispatched: Mapping[str, int]) -> None:
    for (version_id, _), size in graded.items():
        if size > dispatched.get(version_id, 0):
            raise ValueError(
                f"{size} graded attempts at {version_id} but {dispatched.get(version_id, 0)} "
                "dispatched: count every draw of the arm in `dispatched`"
            )


def _row(attempt: Attempt, setting: Setting, sizes: tuple[int, int], basis: Basis) -> RlTrajectory:
    return RlTrajectory(
        cycle_id=basis.cycle_id,
        arm=basis.arm,
        segments=_segments(attempt),
        policy_version=attempt.policy_version,
        sampling=setting.sampling,
        termination=attempt.termination,
        truncated=attempt.termination in LIMITS,
        reward=float(attempt.verdict is Verdict.PASSED),  # ungraded ones were refused
        group_id=content_id("grp", basis.cycle_id, basis.arm, *_group(attempt)),
        group_dispatched=sizes[0],
        group_graded=sizes[1],
        provenance=basis.provenance(attempt, FILTER),
    )


def _segments(attempt: Attempt) -> tuple[Tokens, ...]:
    return tuple(turn.tokens for turn in attempt.trajectory.turns if turn.tokens is not None)


def _group(attempt: Attempt) -> _GroupKey:
    return attempt.key.version_id, attempt.key.setting_id
