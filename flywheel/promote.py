"""Dev report and a rule registered beforehand in, the next cycle's parent out.

The holdout is read only for a candidate that dev already supports, and what leaves it is one
rounded difference and a verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt

from flywheel.compare import compare
from flywheel.errors import ConfigError, HoldoutViolation
from flywheel.evaluate import PARENT
from schemas.attempt import Attempt, Purpose
from schemas.config import Cycle
from schemas.curriculum import Arm
from schemas.evaluation import (
    ArmResult,
    Comparison,
    Decision,
    Effect,
    EvalReport,
    HoldoutRead,
    Promotion,
)

FAMILY_ERROR = 0.05
"""Chance that any of a holdout version's reads is wrong: shared among them (Bonferroni)."""
_PREFERENCE = (Arm.NEW_CURRICULUM.value, Arm.NEW_UNIFORM.value)


@dataclass(frozen=True, slots=True)
class Grandparent:
    """The policy that the parent replaced."""

    policy_version: str
    parent_gain: Comparison
    """Parent against grandparent, on the dev list of this cycle."""


def promote(
    cycle: Cycle,
    dev: EvalReport,
    read_holdout: Callable[[str], HoldoutRead],
    *,
    reads_used: int,
    reads_allowed: int,
    grandparent: Grandparent | None = None,
) -> Promotion:
    """Decide the next parent by the rule in the cycle's configuration.

    Args:
        cycle: Holds the parent and the rule.
        dev: The cycle's comparisons, made at no lower level than the rule's.
        read_holdout: Candidate's policy version → one counted read; called once at most, and only
            for a candidate that passed on dev with reads left.
        reads_used: Reads already made of this holdout version.
        reads_allowed: Reads that this holdout version allows in all.
        grandparent: What to roll back to should the parent turn out worse.

    Raises ConfigError where dev intervals are narrower than the rule asks for, HoldoutViolation
    where the read is of another policy.
    """
    rule = cycle.config.promotion
    if grandparent and grandparent.parent_gain.effect is Effect.WORSE:
        reason = f"the parent is worse than its own parent: {_words(grandparent.parent_gain)}"
        return _promotion(cycle, Decision.ROLL_BACK, grandparent.policy_version, reason)
    candidate = _candidate(cycle, dev)
    if candidate is None:
        return _promotion(cycle, Decision.HOLD, cycle.parent, _why_none(dev, rule.margin))
    arm, gain = candidate
    if reads_used >= reads_allowed:
        reason = (
            f"holdout reads used up ({reads_used} of {reads_allowed}): no promotion until a new "
            "holdout is made (raise propose.holdout_generation)"
        )
        return _promotion(cycle, Decision.HOLD, cycle.parent, reason, arm)
    read = read_holdout(arm.policy_version)
    if (read.candidate, read.parent) != (arm.policy_version, cycle.parent):
        raise HoldoutViolation(
            f"the read compares {read.candidate} with {read.parent}, asked for was "
            f"{arm.policy_version} with {cycle.parent}"
        )
    reason = f"{arm.arm}: dev {_words(gain)}; holdout read {read.number} of {read.allowed}: " + (
        f"{read.effect.value}, {_interval(read.estimate, read.lower, read.upper)}"
    )
    if read.effect is Effect.WORSE or (read.estimate or 0.0) < rule.holdout_least:
        reason += f" (asked for: not worse, and at least {rule.holdout_least:+.3f})"
        return _promotion(cycle, Decision.HOLD, cycle.parent, reason, arm, read)
    return _promotion(cycle, Decision.PROMOTE, arm.policy_version, reason, arm, read)


def holdout_read(
    cycle_id: str,
    holdout_version: str,
    candidate: str,
    parent: str,
    candidate_attempts: Sequence[Attempt],
    parent_attempts: Sequence[Attempt],
    component_of: Mapping[str, str],
    *,
    purpose: str,
    number: int,
    allowed: int,
) -> HoldoutRead:
    """Return what one counted look at the holdout lets out.

    The interval has level 1 - 0.05 / allowed. Estimate and ends are rounded to 1/sqrt(tasks), the
    ends outwards; the verdict is that of the exact interval, so rounding can't hide a loss.
    Raises HoldoutViolation for an attempt of another purpose, and for a read beyond `allowed`.
    """
    for attempt in (*candidate_attempts, *parent_attempts):
        if attempt.key.purpose is not Purpose.HOLDOUT:
            raise HoldoutViolation(
                f"attempt {attempt.attempt_id} has purpose {attempt.key.purpose.value}: a holdout "
                "read is made of holdout attempts alone"
            )
    if not 1 <= number <= allowed:
        raise HoldoutViolation(f"read {number} of {allowed} allowed: rotate the holdout")
    exact = compare(
        "candidate",
        PARENT,
        candidate_attempts,
        parent_attempts,
        component_of,
        question=purpose,
        level=1 - FAMILY_ERROR / allowed,
    )
    return HoldoutRead(
        cycle_id=cycle_id,
        holdout_version=holdout_version,
        purpose=purpose,
        number=number,
        allowed=allowed,
        candidate=candidate,
        parent=parent,
        tasks=exact.tasks,
        estimate=_stepped(exact.estimate, exact.tasks, round),
        lower=_stepped(exact.lower, exact.tasks, floor),
        upper=_stepped(exact.upper, exact.tasks, ceil),
        level=exact.level,
        effect=exact.effect,
    )


def _stepped(value: float | None, tasks: int, to_whole: Callable[[float], int]) -> float | None:
    if value is None:
        return None
    return max(-1.0, min(1.0, to_whole(value * sqrt(tasks)) / sqrt(tasks)))


def _candidate(cycle: Cycle, dev: EvalReport) -> tuple[ArmResult, Comparison] | None:
    """Return the arm with the highest dev rate among those that the rule lets pass."""
    rule = cycle.config.promotion
    passing: list[tuple[ArmResult, Comparison]] = []
    for arm in dev.arms:
        gain = _find(dev, arm.arm, PARENT)
        if gain is None:
            continue
        if gain.level < rule.dev_level:
            raise ConfigError(
                f"dev was compared at level {gain.level}, promotion.dev_level asks for "
                f"{rule.dev_level}: set evaluate.level to it"
            )
        if gain.effect is Effect.BETTER and not _beyond_margin(dev, arm.arm, rule.margin):
            passing.append((arm, gain))
    return max(passing, key=lambda pair: _rank(pair[0]), default=None)


def _rank(arm: ArmResult) -> tuple[float, int]:
    preference = len(_PREFERENCE) - _PREFERENCE.index(arm.arm) if arm.arm in _PREFERENCE else 0
    return (arm.rate or 0.0, preference)


def _beyond_margin(dev: EvalReport, arm: str, margin: float) -> bool:
    """Tell whether the arm's interval against the control arm lies below -margin as a whole."""
    against = _find(dev, arm, Arm.OLD_UNIFORM.value)
    return against is not None and against.upper is not None and against.upper < -margin


def _find(dev: EvalReport, treatment: str, control: str) -> Comparison | None:
    for comparison in dev.comparisons:
        pair = (comparison.treatment, comparison.control, comparison.slice)
        if pair == (treatment, control, "all"):
            return comparison
    return None


def _why_none(dev: EvalReport, margin: float) -> str:
    gains = [c for c in dev.comparisons if c.control == PARENT and c.slice == "all"]
    if not gains:
        return "no arm was compared with the parent on dev"
    worse = f", worse than {Arm.OLD_UNIFORM.value} by more than {margin:g}"
    each = (
        f"{gain.treatment} {_words(gain)}"
        + (worse if _beyond_margin(dev, gain.treatment, margin) else "")
        for gain in gains
    )
    return "no arm passes on dev against the parent: " + "; ".join(each)


def _words(comparison: Comparison) -> str:
    interval = _interval(comparison.estimate, comparison.lower, comparison.upper)
    found = comparison.detectable
    return interval if found is None else f"{interval}, detectable {found:.3f}"


def _interval(estimate: float | None, lower: float | None, upper: float | None) -> str:
    if estimate is None:
        return "nothing graded on both sides"
    if lower is None or upper is None:
        return f"{estimate:+.3f} without an interval (too few components)"
    return f"{estimate:+.3f} [{lower:+.3f}, {upper:+.3f}]"


def _promotion(
    cycle: Cycle,
    decision: Decision,
    next_parent: str,
    reason: str,
    arm: ArmResult | None = None,
    read: HoldoutRead | None = None,
) -> Promotion:
    return Promotion(
        cycle_id=cycle.cycle_id,
        decision=decision,
        candidate=arm.policy_version if arm else None,
        next_parent=next_parent,
        reason=reason,
        rule=cycle.config.promotion,
        read_id=read.read_id if read else None,
    )
