"""Hypotheses: clusters of failures in, claims that the next cycle can prove wrong out, and judged.

A claim names a cause (a family, and the rules that are over-represented among a cluster's
members), the tasks that would remove it, and by how much success on a dev slice must then rise.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from schemas.attempt import Attempt, Verdict
from schemas.curriculum import Arm
from schemas.evaluation import Comparison, Effect, EvalReport
from schemas.failure import FailureCluster
from schemas.hypothesis import DataChange, Hypothesis, HypothesisVerdict, Judgement, Prediction
from schemas.training import Provenance

MIN_COUNT = 3
"""Fewest members that a claim, or a rule named in it, may rest on."""
MIN_LIFT = 1.25
"""Least ratio of a rule's share among members to its share among all attempts at the family."""
MAX_RULES = 2
MIN_MORE, MIN_RATIO = 2, 1.5
"""Least difference and ratio of matching rows between two arms that tests a hypothesis."""
ARMS = (Arm.NEW_UNIFORM.value, Arm.OLD_UNIFORM.value)
MIN_RISE = 0.1
STEPS = 20
"""Predictions are multiples of 1/20."""

Rules = tuple[str, ...]
"""The live rules of one task."""


def slice_rates(attempts: Iterable[Attempt]) -> dict[str, float]:
    """Return slice (`all`, `family:NAME`, `rule:NAME`) → success rate of its graded attempts."""
    graded: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.reward is None:
            continue
        slices = ["all", f"family:{attempt.family}", *(f"rule:{rule}" for rule in attempt.rules)]
        graded.update(slices)
        passed.update(slices if attempt.verdict is Verdict.PASSED else ())
    return {name: passed[name] / count for name, count in graded.items()}


def weakest_rules(dev: Iterable[Attempt]) -> dict[str, str]:
    """Return family → the rule with the lowest success on dev, of those with MIN_COUNT attempts.

    A family is left out where no rule does worse than the family as a whole.
    """
    outcomes: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for attempt in dev:
        if attempt.reward is not None:
            for rule in ("", *attempt.rules):
                outcomes[attempt.family, rule].append(attempt.reward)
    rates = {key: sum(found) / len(found) for key, found in outcomes.items()}
    weakest: dict[str, str] = {}
    for family in {family for family, _ in rates}:
        ranked = sorted(
            (rate, rule)
            for (of, rule), rate in rates.items()
            if of == family and rule and len(outcomes[of, rule]) >= MIN_COUNT
        )
        if ranked and ranked[0][0] < rates[family, ""]:
            weakest[family] = ranked[0][1]
    return weakest


def contrast(
    change: DataChange, treatment: Iterable[Provenance], control: Iterable[Provenance]
) -> tuple[bool, str]:
    """Return whether two arms were trained on clearly different numbers of matching rows, and how.

    Args:
        change: What the hypothesis asks for; a row matches that has its family and all its rules.
        treatment: Provenance of the rows that the treatment arm was trained on.
        control: Likewise.
    """

    def matching(rows: Iterable[Provenance]) -> int:
        return sum(r.family == change.family and set(change.rules) <= set(r.rules) for r in rows)

    more, less = matching(treatment), matching(control)
    enough = more >= less + MIN_MORE and more >= MIN_RATIO * less
    said = f"matching rows trained on: {more} against {less}"
    return (
        enough,
        said if enough else f"{said}; {MIN_MORE} more and {MIN_RATIO} times as many needed",
    )


def hypothesize(
    clusters: Iterable[FailureCluster],
    attempts: Iterable[Attempt],
    dev_rates: Mapping[str, float],
    known: Sequence[Hypothesis],
    verdicts: Iterable[HypothesisVerdict],
    cycle_id: str,
    max_hypotheses: int,
    weakest: Mapping[str, str] = MappingProxyType({}),
    arms: tuple[str, str] = ARMS,
) -> tuple[Hypothesis, ...]:
    """Return up to `max_hypotheses` claims, one a cluster, for the largest clusters first.

    Args:
        clusters: Of this cycle; noise is passed over, and so are those of too few members.
        attempts: All attempts that the clusters' failures are among, passed and failed.
        dev_rates: The parent's success rates on dev (`slice_rates`).
        known: Earlier hypotheses.
        verdicts: Theirs.
        cycle_id: Goes into each record.
        max_hypotheses: Most that one cycle can test.
        weakest: Family → rule to name where a cluster's members tell of none (`weakest_rules`).
        arms: Treatment and control of the predictions.

    A change that was refuted, or that waits for its first verdict, is not proposed again: the next
    broader one is. Nothing is proposed where the slice has no room to rise by a step.
    """
    graded = [attempt for attempt in attempts if attempt.reward is not None]
    closed = _closed_changes(known, verdicts)
    proposed: dict[DataChange, Hypothesis] = {}
    for cluster in sorted(clusters, key=lambda cluster: (-cluster.size, cluster.cluster_id)):
        if cluster.is_noise or cluster.size < MIN_COUNT:
            continue
        made = (
            _hypothesis(cluster, cause, dev_rates, cycle_id, arms)
            for cause in _causes(cluster, graded, weakest)
        )
        best = next((h for h in made if h is not None and h.change not in closed), None)
        if best is not None:
            proposed.setdefault(best.change, best)
    return tuple(proposed.values())[:max_hypotheses]


def over_represented(
    members: Sequence[Rules], failed: Sequence[Rules], passed: Sequence[Rules]
) -> Rules:
    """Return the rules that tell a cluster's members from all attempts, the most telling first.

    `failed` (the members among them) and `passed` are the rules of every graded attempt at the
    family's tasks. Of the rules with MIN_COUNT members, a lift of at least MIN_LIFT and odds of
    failing above all attempts' by as much, the one with the largest excess of members over its
    share comes first. The odds are asked for since members also share rules for having made the
    same calls. The next rule is sought among attempts that have the first: it is named only if it
    tells more than its company does.
    """
    everyone = len(failed) + len(passed)
    of_members, of_failed, of_passed = (_tally(group) for group in (members, failed, passed))
    expected = {
        rule: len(members) * (of_failed[rule] + of_passed[rule]) / everyone for rule in of_members
    }
    telling = [
        (expected[rule] - count, rule)
        for rule, count in of_members.items()
        if count >= MIN_COUNT
        and count >= MIN_LIFT * expected[rule]
        and of_failed[rule] * len(passed) > MIN_LIFT * of_passed[rule] * len(failed)
    ]
    if not telling:
        return ()
    first = min(telling)[1]
    rest = over_represented(*(_having(first, group) for group in (members, failed, passed)))
    return (first, *rest)[:MAX_RULES]


def predicted_rise(rate: float | None) -> float | None:
    """Return half of the headroom above `rate`, in steps of 0.05, from 0.1 up to the headroom.

    None where the headroom is less than a step. An unmeasured rate predicts the least rise.
    """
    if rate is None:
        return MIN_RISE
    headroom = math.floor((1 - rate) * STEPS + 1e-9)
    steps = min(max(round(MIN_RISE * STEPS), round((1 - rate) / 2 * STEPS)), headroom)
    return steps / STEPS if steps else None


def judge(
    hypotheses: Iterable[Hypothesis], dev: EvalReport, tested: Mapping[str, bool | str]
) -> tuple[HypothesisVerdict, ...]:
    """Return what the dev report says of each hypothesis.

    `tested` says by hypothesis_id whether its tasks were in one of the prediction's arms and left
    out of the other: True, or False, or in words why not.
    """
    return tuple(_verdict(h, dev, tested.get(h.hypothesis_id, False)) for h in hypotheses)


def _tally(attempts: Iterable[Rules]) -> Counter[str]:
    return Counter(rule for rules in attempts for rule in rules)


def _having(rule: str, attempts: Iterable[Rules]) -> list[Rules]:
    """Return the rules beside `rule` of those that have it."""
    return [tuple(r for r in rules if r != rule) for rules in attempts if rule in rules]


def _closed_changes(
    known: Iterable[Hypothesis], verdicts: Iterable[HypothesisVerdict]
) -> set[DataChange]:
    """Return the changes that were refuted or wait for their first verdict."""
    judged: defaultdict[str, set[Judgement]] = defaultdict(set)
    for verdict in verdicts:
        judged[verdict.hypothesis_id].add(verdict.judgement)
    return {
        hypothesis.change
        for hypothesis in known
        if not judged[hypothesis.hypothesis_id]
        or Judgement.REFUTED in judged[hypothesis.hypothesis_id]
    }


def _family(cluster: FailureCluster) -> str:
    return min(cluster.families, key=lambda family: (-cluster.families[family], family))


@dataclass(frozen=True, slots=True)
class _Cause:
    """What a cluster is blamed on."""

    rules: Rules
    evidence: str
    """Where the blame comes from, in words that follow the claim's first part."""


def _causes(
    cluster: FailureCluster, graded: Sequence[Attempt], weakest: Mapping[str, str]
) -> list[_Cause]:
    """Return the causes to blame, then ever broader ones, down to the family alone."""
    ours = [attempt for attempt in graded if attempt.family == _family(cluster)]
    ids = set(cluster.members)
    rules = over_represented(
        [attempt.rules for attempt in ours if attempt.attempt_id in ids],
        [attempt.rules for attempt in ours if attempt.verdict is Verdict.FAILED],
        [attempt.rules for attempt in ours if attempt.verdict is Verdict.PASSED],
    )
    causes = [_Cause(rules[:count], "") for count in range(len(rules), 0, -1)]
    if not rules and _family(cluster) in weakest:
        rule = weakest[_family(cluster)]
        causes.append(_Cause((rule,), f"; of their rules {rule} fares worst on dev afterwards"))
    return [*causes, _Cause((), "")]


def _hypothesis(
    cluster: FailureCluster,
    cause: _Cause,
    dev_rates: Mapping[str, float],
    cycle_id: str,
    arms: tuple[str, str],
) -> Hypothesis | None:
    family, rules = _family(cluster), cause.rules
    slice = f"rule:{rules[0]}" if rules else f"family:{family}"
    rise = predicted_rise(dev_rates.get(slice))
    if rise is None:
        return None
    treatment, control = arms
    live = f" where {' and '.join(rules)} applies" if rules and not cause.evidence else ""
    return Hypothesis(
        cycle_id=cycle_id,
        cluster_id=cluster.cluster_id,
        claim=(
            f"Attempts at {family} tasks{live} fail ({cluster.label}){cause.evidence}: the "
            f"training rows hold too few demonstrations of {' and '.join(rules) or family}."
        ),
        change=DataChange(family=family, rules=tuple(sorted(rules))),
        prediction=Prediction(slice=slice, treatment=treatment, control=control, at_least=rise),
        refuted_if=(
            f"On dev slice {slice}, {treatment} - {control} is less than {rise:.2f}: the upper "
            "end of its interval lies below that."
        ),
    )


def _verdict(hypothesis: Hypothesis, dev: EvalReport, tested: bool | str) -> HypothesisVerdict:
    comparison = _comparison(hypothesis.prediction, dev)
    if tested is not True:
        judgement = Judgement.NOT_TESTED
        reason = tested or "its tasks were in every arm or in none"
    elif comparison is None or comparison.estimate is None:
        judgement = Judgement.NOT_TESTED
        reason = f"dev has no task of slice {hypothesis.prediction.slice} graded in both arms"
    else:
        judgement, reason = _weigh(comparison, hypothesis.prediction.at_least)
    seen = comparison if judgement is not Judgement.NOT_TESTED else None
    return HypothesisVerdict(
        hypothesis_id=hypothesis.hypothesis_id,
        cycle_id=dev.cycle_id,
        judgement=judgement,
        estimate=seen.estimate if seen else None,
        lower=seen.lower if seen else None,
        upper=seen.upper if seen else None,
        reason=reason,
    )


def _comparison(prediction: Prediction, dev: EvalReport) -> Comparison | None:
    wanted = (prediction.slice, prediction.treatment, prediction.control)
    return next((c for c in dev.comparisons if (c.slice, c.treatment, c.control) == wanted), None)


def _weigh(comparison: Comparison, at_least: float) -> tuple[Judgement, str]:
    """Return what an interval says of a predicted rise, and why."""
    lower, upper, found = comparison.lower, comparison.upper, comparison.detectable
    if lower is None or upper is None:
        return Judgement.INCONCLUSIVE, f"{comparison.clusters} components allow no interval"
    shown = f"interval [{lower:.2f}, {upper:.2f}], predicted at least {at_least:.2f}"
    if found is not None:
        least = f"{found:.2f}" if found <= 1 else "nothing"
        shown += f", {comparison.tasks} tasks could have shown {least}"
    if upper < at_least:
        what = "a rise, but too small a one" if lower > 0 else "no rise of that size"
        return Judgement.REFUTED, f"{what}: {shown}"
    if comparison.effect is Effect.BETTER:
        return Judgement.SUPPORTED, f"a rise that may be as large as predicted: {shown}"
    return Judgement.INCONCLUSIVE, f"neither a rise nor its absence is shown: {shown}"
