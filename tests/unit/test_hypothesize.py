"""Hypotheses: a cause with evidence, a number that can be missed, a verdict that says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.hypothesize import (
    contrast,
    hypothesize,
    judge,
    over_represented,
    predicted_rise,
    slice_rates,
    weakest_rules,
)
from schemas.attempt import Attempt
from schemas.evaluation import Comparison, Effect, EvalReport
from schemas.failure import FailureCluster, FailureLayer
from schemas.hypothesis import DataChange, Hypothesis, HypothesisVerdict, Judgement
from schemas.lineage import Split
from schemas.training import Provenance
from tests.factories import make_attempt, make_manifest, make_provenance


def attempts_at(
    rules: tuple[str, ...], passed: int, failed: int, start: int, family: str = "orders"
) -> list[Attempt]:
    task = make_manifest(family=family, rules=rules)
    return [make_attempt(start + i, task=task, passed=i < passed) for i in range(passed + failed)]


def cluster_of(attempts: list[Attempt], *, is_noise: bool = False) -> FailureCluster:
    families = [attempt.family for attempt in attempts]
    return FailureCluster(
        cycle_id="cycle-0001",
        label="orders: wrong-rows",
        layer=FailureLayer.CAPABILITY,
        size=len(attempts),
        total=100,
        share=len(attempts) / 100,
        lower=0.0,
        upper=1.0,
        families={family: families.count(family) for family in families},
        rules={},
        members=tuple(attempt.attempt_id for attempt in attempts),
        nearest=(),
        farthest=(),
        random=(),
        method="code@1",
        is_noise=is_noise,
    )


def failed(attempts: list[Attempt]) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.reward == 0]


KEEP_LAST = attempts_at(("keep-last", "skip-missing"), passed=1, failed=6, start=0)
OTHERS = attempts_at(("skip-missing",), passed=9, failed=1, start=100)
ALL = KEEP_LAST + OTHERS
CLUSTER = cluster_of(failed(ALL))
RATES = {"rule:keep-last": 0.2, "family:orders": 0.6, "all": 0.6}


def proposed(
    clusters: list[FailureCluster],
    attempts: list[Attempt] = ALL,
    rates: dict[str, float] = RATES,
    known: tuple[Hypothesis, ...] = (),
    verdicts: tuple[HypothesisVerdict, ...] = (),
    most: int = 5,
) -> tuple[Hypothesis, ...]:
    return hypothesize(clusters, attempts, rates, known, verdicts, "cycle-0001", most)


def verdict_on(hypothesis: Hypothesis, judgement: Judgement) -> HypothesisVerdict:
    return HypothesisVerdict(
        hypothesis_id=hypothesis.hypothesis_id,
        cycle_id="cycle-0002",
        judgement=judgement,
        estimate=None,
        lower=None,
        upper=None,
        reason="seen",
    )


def test_the_over_represented_rule_is_blamed_with_a_number_to_miss() -> None:
    (hypothesis,) = proposed([CLUSTER])
    assert hypothesis.change == DataChange(family="orders", rules=("keep-last",))
    assert hypothesis.cluster_id == CLUSTER.cluster_id
    assert hypothesis.prediction.slice == "rule:keep-last"
    assert hypothesis.prediction.at_least == 0.4  # half of the headroom above 0.2
    assert (hypothesis.prediction.treatment, hypothesis.prediction.control) == (
        "new-uniform",
        "old-uniform",
    )
    assert "keep-last" in hypothesis.claim
    assert "0.40" in hypothesis.refuted_if


def test_a_rule_as_frequent_as_everywhere_is_not_blamed() -> None:
    attempts = attempts_at(("keep-last",), passed=5, failed=5, start=0)
    (hypothesis,) = proposed([cluster_of(failed(attempts))], attempts)
    assert hypothesis.change == DataChange(family="orders", rules=())
    assert hypothesis.prediction.slice == "family:orders"


A, B, AB, NONE = ("a",), ("b",), ("a", "b"), ()


def test_two_members_are_too_few_to_blame_a_rule_or_to_claim_anything() -> None:
    assert over_represented([A] * 2, [A] * 2, [NONE] * 50) == ()
    assert over_represented([A] * 3, [A] * 3, [NONE] * 50) == ("a",)
    assert proposed([cluster_of(failed(ALL)[:2])]) == ()
    assert len(proposed([cluster_of(failed(ALL)[:3])])) == 1


def test_a_second_rule_is_named_only_if_it_tells_more_than_its_company_does() -> None:
    # `b` comes with `a` wherever it is: what `a` explains is not explained again.
    assert over_represented([AB] * 8, [AB] * 8, [AB] * 2 + [NONE] * 30) == ("a",)
    # Failures need both: `a` alone and `b` alone succeed.
    assert over_represented([AB] * 9, [AB] * 9, [AB] + [A] * 10 + [B] * 12) == ("a", "b")


def test_a_rule_that_members_share_without_failing_more_for_it_is_not_blamed() -> None:
    # All tasks with `a` fail. Those with `b` make another call as well and so share a cluster.
    failures = [AB] * 9 + [A] * 9
    assert over_represented([AB] * 9, failures, [B] * 9 + [NONE] * 20) == ("a",)


def test_a_rule_that_fails_elsewhere_is_not_blamed_for_a_cluster_with_little_of_it() -> None:
    members = [A] * 3 + [NONE] * 7
    assert over_represented(members, members + [A] * 10, [NONE] * 10) == ()


def test_where_nothing_passes_no_rule_can_be_told_from_another() -> None:
    assert over_represented([AB] * 9, [AB] * 9 + [NONE] * 20, []) == ()


def test_other_families_do_not_count_in_a_clusters_background() -> None:
    elsewhere = attempts_at(("keep-last",), passed=50, failed=0, start=500, family="logs")
    assert proposed([CLUSTER], ALL + elsewhere) == proposed([CLUSTER])


def test_noise_explains_nothing() -> None:
    assert proposed([cluster_of(failed(ALL), is_noise=True)]) == ()


def test_clusters_that_ask_for_the_same_change_make_one_hypothesis_of_the_larger() -> None:
    half, rest = failed(KEEP_LAST)[:4] + failed(OTHERS), failed(KEEP_LAST)[3:]
    clusters = [cluster_of(rest), cluster_of(half)]
    (hypothesis,) = proposed(clusters)
    assert hypothesis.cluster_id == clusters[1].cluster_id


def test_the_largest_clusters_come_first_and_the_rest_waits() -> None:
    logs = attempts_at(("only-level",), passed=0, failed=20, start=900, family="logs")
    clusters = [CLUSTER, cluster_of(logs)]
    (hypothesis,) = proposed(clusters, ALL + logs, most=1)
    assert hypothesis.change.family == "logs"


@pytest.mark.parametrize(
    ("judgement", "rules"),
    [
        (Judgement.REFUTED, ()),
        (None, ()),
        (Judgement.NOT_TESTED, ("keep-last",)),
        (Judgement.INCONCLUSIVE, ("keep-last",)),
        (Judgement.SUPPORTED, ("keep-last",)),
    ],
)
def test_a_refuted_or_waiting_change_gives_way_to_a_broader_one(
    judgement: Judgement | None, rules: tuple[str, ...]
) -> None:
    (old,) = proposed([CLUSTER])
    verdicts = (verdict_on(old, judgement),) if judgement else ()
    (new,) = proposed([CLUSTER], known=(old,), verdicts=verdicts)
    assert new.change.rules == rules


def test_a_cluster_with_every_cause_refuted_is_left_alone() -> None:
    (first,) = proposed([CLUSTER])
    (second,) = proposed([CLUSTER], known=(first,))
    verdicts = tuple(verdict_on(h, Judgement.REFUTED) for h in (first, second))
    assert proposed([CLUSTER], known=(first, second), verdicts=verdicts) == ()


@pytest.mark.parametrize(
    ("rate", "rise"),
    [(0.0, 0.5), (0.2, 0.4), (0.55, 0.2), (0.7, 0.15), (0.85, 0.1), (0.9, 0.1), (0.95, 0.05)],
)
def test_half_of_the_headroom_is_predicted(rate: float, rise: float) -> None:
    assert predicted_rise(rate) == rise


def test_nothing_is_predicted_where_there_is_no_room() -> None:
    assert predicted_rise(1.0) is None
    assert predicted_rise(0.97) is None
    (hypothesis,) = proposed([CLUSTER], rates={"rule:keep-last": 1.0, "family:orders": 0.5})
    assert hypothesis.prediction.slice == "family:orders"


@given(rate=st.floats(0, 1))
def test_a_predicted_rise_is_a_multiple_of_a_step_and_fits_the_headroom(rate: float) -> None:
    rise = predicted_rise(rate)
    if rise is None:
        assert 1 - rate < 0.05
    else:
        assert rise == pytest.approx(round(rise / 0.05) * 0.05)
        assert 0.05 <= rise <= 1 - rate + 1e-9


def test_slice_rates_leave_ungraded_attempts_out() -> None:
    ungraded = make_attempt(700, task=make_manifest(rules=("keep-last",)), passed=None)
    assert slice_rates([*ALL, ungraded]) == {
        "all": 10 / 17,
        "family:orders": 10 / 17,
        "rule:keep-last": 1 / 7,
        "rule:skip-missing": 10 / 17,
    }


def comparison(lower: float | None, upper: float | None, **changes: object) -> Comparison:
    fields: dict[str, object] = {
        "question": "better tasks?",
        "treatment": "new-uniform",
        "control": "old-uniform",
        "slice": "rule:keep-last",
        "tasks": 12,
        "clusters": 8,
        "estimate": 0.2,
        "lower": lower,
        "upper": upper,
        "level": 0.95,
        "detectable": 0.2,
        "sign_flip_p": 0.01,
        "dropped": 0,
        "effect": Effect.BETTER if lower is not None and lower > 0 else Effect.INCONCLUSIVE,
    }
    return Comparison(**{**fields, **changes})  # type: ignore[arg-type]


def judged(*comparisons: Comparison, tested: bool | str | None = True) -> HypothesisVerdict:
    (hypothesis,) = proposed([CLUSTER])  # predicts a rise of 0.40
    report = EvalReport(
        cycle_id="cycle-0002",
        split=Split.DEV,
        tasks_digest="tasks-0",
        arms=(),
        comparisons=comparisons,
        unanswered=(),
    )
    by_id = {} if tested is None else {hypothesis.hypothesis_id: tested}
    (verdict,) = judge((hypothesis,), report, by_id)
    assert verdict.hypothesis_id == hypothesis.hypothesis_id
    assert verdict.cycle_id == "cycle-0002"
    return verdict


@pytest.mark.parametrize(
    ("lower", "upper", "judgement", "reason"),
    [
        (0.1, 0.5, Judgement.SUPPORTED, "as large as predicted"),
        (0.01, 0.4, Judgement.SUPPORTED, "as large as predicted"),
        (0.1, 0.39, Judgement.REFUTED, "too small"),
        (-0.2, 0.1, Judgement.REFUTED, "no rise"),
        (-0.5, -0.1, Judgement.REFUTED, "no rise"),
        (-0.1, 0.5, Judgement.INCONCLUSIVE, "neither"),
        (0.0, 0.5, Judgement.INCONCLUSIVE, "neither"),
        (None, None, Judgement.INCONCLUSIVE, "no interval"),
    ],
)
def test_the_interval_decides(
    lower: float | None, upper: float | None, judgement: Judgement, reason: str
) -> None:
    verdict = judged(comparison(lower, upper))
    assert verdict.judgement is judgement
    assert reason in verdict.reason
    assert (verdict.estimate, verdict.lower, verdict.upper) == (0.2, lower, upper)


@pytest.mark.parametrize(
    ("tested", "reason"),
    [
        (False, "in every arm or in none"),
        (None, "in every arm or in none"),
        ("none of its tasks passed screening", "none of its tasks passed screening"),
    ],
)
def test_what_no_arm_could_show_is_not_tested_whatever_the_numbers(
    tested: bool | str | None, reason: str
) -> None:
    verdict = judged(comparison(0.1, 0.5), tested=tested)
    assert verdict.judgement is Judgement.NOT_TESTED
    assert reason in verdict.reason
    assert verdict.estimate is None


def test_a_slice_that_dev_lacks_is_not_tested() -> None:
    other = comparison(0.1, 0.5, slice="rule:skip-missing")
    other_arms = comparison(0.1, 0.5, treatment="new-curriculum")
    empty = comparison(None, None, estimate=None, tasks=0, clusters=0)
    for comparisons in ((), (other, other_arms), (empty,)):
        verdict = judged(*comparisons)
        assert verdict.judgement is Judgement.NOT_TESTED
        assert "rule:keep-last" in verdict.reason


def provenance(family: str, *rules: str) -> Provenance:
    return make_provenance(family=family, rules=rules)


def test_an_interval_above_zero_supports_nothing_where_the_exact_test_disagrees() -> None:
    verdict = judged(comparison(0.1, 0.5, effect=Effect.INCONCLUSIVE, sign_flip_p=0.1))
    assert verdict.judgement is Judgement.INCONCLUSIVE


@pytest.mark.parametrize(
    ("more", "less", "enough"),
    [(6, 3, True), (5, 3, True), (4, 3, False), (16, 16, False), (2, 0, True)],
)
def test_a_hypothesis_is_tested_only_where_its_arms_were_trained_on_a_contrast(
    more: int, less: int, enough: bool
) -> None:
    change = DataChange(family="config", rules=("drop-key",))
    other = [provenance("config", "as-env"), provenance("logs", "drop-key")]
    row = provenance("config", "as-env", "drop-key")
    found, said = contrast(change, [row] * more + other, [row] * less + other)
    assert found is enough
    assert said.startswith(f"matching rows trained on: {more} against {less}")
    assert ("needed" in said) is not enough


def test_the_weakest_rule_of_a_family_is_found_on_dev() -> None:
    def dev(family: str, rule: str, *outcomes: bool) -> list[Attempt]:
        task = make_manifest(family=family, rules=(rule,))
        return [make_attempt(i, task=task, passed=passed) for i, passed in enumerate(outcomes)]

    made = [
        *dev("config", "drop-key", False, False, True),
        *dev("config", "as-env", True, True, True),
        *dev("config", "rename-key", False),  # too few to say anything
        *dev("logs", "since", True, True, True),
    ]
    assert weakest_rules(made) == {"config": "drop-key"}
