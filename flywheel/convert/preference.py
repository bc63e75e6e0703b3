"""Preference pairs: a success and a failure at one task under one setting, cut where they part.

Shared turns are the same to the last word and observation, so both choices answer one history.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from flywheel.convert import GOOD_TURNS, Basis, system_failure
from schemas.attempt import Attempt, Turn, Verdict
from schemas.failure import Failure
from schemas.training import PreferencePair, Rejected, RejectReason

FILTER = "preference@1"


def to_pairs(
    attempts: Iterable[Attempt], failures: Mapping[str, Failure], basis: Basis
) -> tuple[tuple[PreferencePair, ...], tuple[Rejected, ...]]:
    """Return at most one pair for each failed attempt, and a refusal for each attempt in no pair.

    Of the successes the one that agrees with the failure for longest is chosen, so that little but
    the decisive turn differs; ties go to the smaller id. A success may stand in several pairs.
    `failures` is by attempt_id. Raises SplitViolation for a task outside the train split.
    """
    ordered = sorted(attempts, key=lambda attempt: attempt.attempt_id)
    reasons = {attempt.attempt_id: _refusal(attempt, failures, basis) for attempt in ordered}
    usable = [attempt for attempt in ordered if reasons[attempt.attempt_id] is None]
    pairs: list[PreferencePair] = []
    for passed, failed in _opposites(usable):
        for attempt in failed:
            outcome = _pair(passed, attempt, basis)
            if isinstance(outcome, PreferencePair):
                pairs.append(outcome)
            else:
                reasons[attempt.attempt_id] = outcome
    paired = {p.chosen_provenance.attempt_id for p in pairs}
    paired |= {p.rejected_provenance.attempt_id for p in pairs}
    rejected = [
        basis.reject(
            attempt, "preference", reasons[attempt.attempt_id] or RejectReason.NO_COUNTERPART
        )
        for attempt in ordered
        if attempt.attempt_id not in paired
    ]
    return tuple(pairs), tuple(rejected)


def _refusal(
    attempt: Attempt, failures: Mapping[str, Failure], basis: Basis
) -> RejectReason | None:
    if reason := basis.unusable(attempt):
        return reason
    return RejectReason.SYSTEM_FAILURE if system_failure(attempt, failures) else None


def _opposites(attempts: Iterable[Attempt]) -> list[tuple[list[Attempt], list[Attempt]]]:
    """Return (passed, failed) of each task version and setting."""
    groups: defaultdict[tuple[str, str], tuple[list[Attempt], list[Attempt]]]
    groups = defaultdict(lambda: ([], []))
    for attempt in attempts:
        group = groups[attempt.key.version_id, attempt.key.setting_id]
        group[attempt.verdict is Verdict.FAILED].append(attempt)
    return list(groups.values())


def _pair(
    passed: Sequence[Attempt], failed: Attempt, basis: Basis
) -> PreferencePair | RejectReason:
    """Return `failed` with the success that parts from it last, or why there is none."""
    cuts = [_cut(success.trajectory.turns, failed.trajectory.turns) for success in passed]
    parted = [(cut, i) for i, cut in enumerate(cuts) if isinstance(cut, int)]
    if not parted:
        return next((c for c in cuts if isinstance(c, RejectReason)), RejectReason.NO_COUNTERPART)
    cut, index = max(parted, key=lambda item: (item[0], -item[1]))
    chosen, brief = passed[index], basis.manifest(failed).brief
    return PreferencePair(
        cycle_id=basis.cycle_id,
        arm=basis.arm,
        goal=brief.goal,
        tools=brief.tools,
        shared=failed.trajectory.turns[:cut],
        chosen=chosen.trajectory.turns[cut],
        rejected=failed.trajectory.turns[cut],
        chosen_provenance=basis.provenance(chosen, FILTER),
        rejected_provenance=basis.provenance(failed, FILTER),
    )


def _cut(passed: Sequence[Turn], failed: Sequence[Turn]) -> int | RejectReason:
    """Return the index of the first turn whose calls differ after one and the same history."""
    for index, (ours, theirs) in enumerate(zip(passed, failed, strict=False)):
        if ours.call != theirs.call:
            good = ours.status in GOOD_TURNS
            return index if good else RejectReason.HAS_TOOL_ERROR
        if ours.raw != theirs.raw:
            return RejectReason.IDENTICAL  # the same act in other words: nothing to prefer
        if (ours.status, ours.observation) != (theirs.status, theirs.observation):
            return RejectReason.NO_COUNTERPART  # the world answered differently: two histories
    return RejectReason.IDENTICAL
