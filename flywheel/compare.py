"""Two arms' attempts in, their paired difference with an interval out.

Attempts that ran into a limit failed. What infrastructure left ungraded is dropped, counted, and
bounded from both sides.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flywheel.difficulty import final_tries, manski_bounds
from flywheel.intervals import MeanInterval, clustered_mean, sign_flip_p
from schemas.attempt import Attempt, Verdict
from schemas.evaluation import Comparison, Effect

MIN_SIGN_FLIP_CLUSTERS = 6
"""Below, no sign-flip p-value can be under 0.05."""
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Tally:
    """One arm's attempts at one task."""

    passed: int = 0
    graded: int = 0
    ungraded: int = 0

    @property
    def rate(self) -> Fraction:
        return Fraction(self.passed, self.graded)

    @property
    def bounds(self) -> tuple[float, float]:
        return manski_bounds(self.passed, self.graded, self.ungraded)


_Pairs = Mapping[str, tuple[_Tally, _Tally]]
"""task_id → (treatment, control)."""


def compare(
    treatment: str,
    control: str,
    treatment_attempts: Sequence[Attempt],
    control_attempts: Sequence[Attempt],
    component_of: Mapping[str, str],
    *,
    question: str,
    slice: str = "all",
    level: float = 0.95,
) -> Comparison:
    """Return the paired difference of success rates over the tasks of `component_of`.

    Args:
        treatment: Arm whose gain is asked for.
        control: Arm that it is measured against.
        treatment_attempts: Its attempts; those at other tasks are left out.
        control_attempts: Likewise.
        component_of: task_id → lineage component, for each task of the slice.
        question: What the difference answers.
        slice: `all`, `rule:NAME` or `family:NAME`.
        level: Coverage of the interval.

    An effect is claimed where the interval excludes zero and the exact sign-flip test, where there
    are components enough for it, agrees. Below two components there is no interval, and the effect
    is inconclusive.
    """
    ours, theirs = _tally(treatment_attempts), _tally(control_attempts)
    pairs = {t: (ours.get(t, _Tally()), theirs.get(t, _Tally())) for t in sorted(component_of)}
    differences = {t: a.rate - b.rate for t, (a, b) in pairs.items() if a.graded and b.graded}
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for task, difference in differences.items():
        sums[component_of[task]] += difference
    values = [float(difference) for difference in differences.values()]
    clusters = [component_of[task] for task in differences]
    interval = clustered_mean(values, clusters, level) if len(sums) >= 2 else None
    flips = sign_flip_p(tuple(sums.values())) if len(sums) >= MIN_SIGN_FLIP_CLUSTERS else None
    low_bound, high_bound = _bounds(pairs)
    return Comparison(
        question=question,
        treatment=treatment,
        control=control,
        slice=slice,
        tasks=len(values),
        clusters=len(sums),
        estimate=sum(values) / len(values) if values else None,
        lower=interval.lower if interval else None,
        upper=interval.upper if interval else None,
        level=level,
        detectable=interval.detectable if interval else None,
        sign_flip_p=flips,
        dropped=len(pairs) - len(values),
        effect=_effect(interval, flips, level),
        low_bound=low_bound,
        high_bound=high_bound,
    )


def _effect(interval: MeanInterval | None, flips: float | None, level: float) -> Effect:
    """Return on which side of zero the interval lies, if on one and the exact test agrees."""
    if interval is None or (flips is not None and flips > 1 - level + ROUNDING):
        return Effect.INCONCLUSIVE
    if interval.lower > 0:
        return Effect.BETTER
    return Effect.WORSE if interval.upper < 0 else Effect.INCONCLUSIVE


def _tally(attempts: Iterable[Attempt]) -> dict[str, _Tally]:
    by_task: defaultdict[str, list[Verdict]] = defaultdict(list)
    for attempt in final_tries(attempts):
        by_task[attempt.key.task_id].append(attempt.verdict)
    return {
        task: _Tally(
            passed=verdicts.count(Verdict.PASSED),
            graded=len(verdicts) - verdicts.count(Verdict.UNGRADED),
            ungraded=verdicts.count(Verdict.UNGRADED),
        )
        for task, verdicts in by_task.items()
    }


def _bounds(pairs: _Pairs) -> tuple[float | None, float | None]:
    """Return the mean difference with everything ungraded against, and for, the treatment."""
    if not pairs:
        return None, None
    low = sum(a.bounds[0] - b.bounds[1] for a, b in pairs.values()) / len(pairs)
    high = sum(a.bounds[1] - b.bounds[0] for a, b in pairs.values()) / len(pairs)
    return low, high
