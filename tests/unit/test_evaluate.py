from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.compare import compare
from flywheel.errors import ConfigError, HoldoutViolation
from flywheel.evaluate import EvalTask, arm_result, compare_arms
from flywheel.intervals import clustered_mean, sign_flip_p, unseen_share, wilson
from schemas.attempt import Attempt, AttemptKey, Purpose, Termination
from schemas.evaluation import Comparison, Effect, EvalReport
from schemas.lineage import Split
from tests.factories import make_attempt, make_infra

KNOWN = [0.5, 0.25, 0, 0.25, -0.25, 0, 0.5, 0.25, 0, -0.25, 0.25, 0.5]
KNOWN_CLUSTERS = [cluster for cluster in "abcd" for _ in range(3)]


def at(
    task: str,
    index: int,
    passed: bool | None,
    arm: str = "arm",
    purpose: Purpose = Purpose.EVALUATE,
) -> Attempt:
    key = AttemptKey(
        run_id="cycle-0001",
        purpose=purpose,
        arm=arm,
        task_id=task,
        version_id=f"version-of-{task}",
        setting_id="set-0",
        index=index,
    )
    return make_attempt(key=key, passed=passed)


def runs(
    outcomes: dict[str, Sequence[bool | None]],
    arm: str = "arm",
    purpose: Purpose = Purpose.EVALUATE,
) -> list[Attempt]:
    return [at(t, i, o, arm, purpose) for t, row in outcomes.items() for i, o in enumerate(row)]


def against(
    ours: dict[str, Sequence[bool | None]],
    theirs: dict[str, Sequence[bool | None]],
    component_of: dict[str, str] | None = None,
    level: float = 0.95,
) -> Comparison:
    components = component_of or {task: task for task in ours}
    return compare("t", "c", runs(ours), runs(theirs), components, question="q", level=level)


def test_an_effect_is_claimed_only_where_interval_and_exact_test_agree() -> None:
    """14 tasks lost, 5 won, 29 alike: the t interval excludes zero, the exact p is 0.064."""
    outcomes = [(0, 1)] * 14 + [(1, 0)] * 5 + [(1, 1)] * 29
    ours = {f"task-{n}": [bool(a)] for n, (a, _) in enumerate(outcomes)}
    theirs = {f"task-{n}": [bool(b)] for n, (_, b) in enumerate(outcomes)}
    found = against(ours, theirs)
    assert found.upper is not None
    assert found.upper < 0
    assert found.sign_flip_p == pytest.approx(0.0636, abs=1e-3)
    assert found.effect is Effect.INCONCLUSIVE
    assert against(ours, theirs, level=0.9).effect is Effect.WORSE


# Intervals


def test_paired_differences_have_the_known_clustered_interval() -> None:
    interval = clustered_mean(KNOWN, KNOWN_CLUSTERS)
    assert interval.estimate == pytest.approx(0.166667, abs=1e-6)
    assert interval.se == pytest.approx(0.058926, abs=1e-6)
    assert (interval.lower, interval.upper) == pytest.approx((-0.020861, 0.354194), abs=1e-6)
    assert interval.detectable == pytest.approx((3.182446 + 0.978472) * 0.058926, abs=1e-5)


def test_single_task_clusters_give_the_known_independent_standard_error() -> None:
    interval = clustered_mean(KNOWN, [str(i) for i in range(12)])
    assert interval.se == pytest.approx(0.077443, abs=1e-6)


def test_paired_differences_have_the_known_sign_flip_p() -> None:
    sums = [Fraction(sum(KNOWN[i : i + 3])) for i in range(0, 12, 3)]
    assert sign_flip_p(sums) == 0.25


@settings(max_examples=50, deadline=None)
@given(st.lists(st.fractions(-1, 1, max_denominator=12), min_size=1, max_size=9))
def test_sign_flip_counts_what_enumerating_all_patterns_counts(sums: list[Fraction]) -> None:
    observed = abs(sum(sums))
    patterns = list(product([1, -1], repeat=len(sums)))
    extreme = sum(
        abs(sum(s * x for s, x in zip(p, sums, strict=True))) >= observed for p in patterns
    )
    assert sign_flip_p(sums) == extreme / len(patterns)


def test_sign_flip_stays_exact_with_many_clusters() -> None:
    assert sign_flip_p([Fraction(1)] * 60) == 2 / 2**60
    assert sign_flip_p([Fraction(1), Fraction(-1)] * 30) == 1.0


def test_sign_flip_says_nothing_where_the_count_is_out_of_reach() -> None:
    primes = [101, 103, 107, 109, 113, 127, 131]
    assert sign_flip_p([Fraction(1, p) for p in primes] * 4) is None


@pytest.mark.parametrize(
    ("passed", "n", "interval"), [(46, 50, (0.811618, 0.96845)), (29, 29, (0.88303, 1.0))]
)
def test_wilson_interval_is_the_known_one(
    passed: int, n: int, interval: tuple[float, float]
) -> None:
    assert wilson(passed, n) == pytest.approx(interval, abs=1e-5)


def test_wilson_interval_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_unseen_share_is_the_exact_rule_of_three() -> None:
    assert 1 - unseen_share(29) == pytest.approx(0.880555, abs=1e-6)
    assert unseen_share(29, level=0.9) == pytest.approx(1 - 0.05 ** (1 / 29))


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("groups", [2, 8, 40])
def test_identical_differences_never_give_a_zero_width_interval(value: float, groups: int) -> None:
    interval = clustered_mean([value] * groups, [str(i) for i in range(groups)])
    share = unseen_share(groups)
    assert interval.se == 0
    assert interval.lower == pytest.approx(value * (1 - share) - share)
    assert interval.upper == pytest.approx(value * (1 - share) + share)
    assert -1 <= interval.lower <= value <= interval.upper <= 1
    assert interval.upper - interval.lower == pytest.approx(2 * share)
    assert interval.detectable > share / 2


def test_two_agreeing_clusters_prove_nothing_and_forty_do() -> None:
    assert clustered_mean([1.0, 1.0], ["a", "b"]).lower < 0
    assert clustered_mean([1.0] * 40, [str(i) for i in range(40)]).lower > 0.8


def test_differences_that_cancel_within_every_cluster_are_not_certainty_either() -> None:
    interval = clustered_mean([1.0, -1.0] * 4, ["a", "a", "b", "b", "c", "c", "d", "d"])
    assert interval.upper - interval.lower == pytest.approx(2 * unseen_share(4))


def test_one_cluster_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least two"):
        clustered_mean([0.1, 0.2], ["a", "a"])


@pytest.mark.parametrize("groups", [8, 20])
def test_a_true_null_is_rejected_at_the_nominal_rate_where_components_are_unlike(
    groups: int,
) -> None:
    rng, clustered, independent, repeats = np.random.default_rng(groups), 0, 0, 1_500
    sizes = np.linspace(6, 14, groups).round().astype(int)
    index = np.repeat(np.arange(groups), sizes)
    for _ in range(repeats):
        values = rng.normal(0, 0.15, groups)[index] + rng.normal(0, 0.3, index.size)
        interval = clustered_mean(values.tolist(), index.astype(str).tolist())
        clustered += interval.lower > 0 or interval.upper < 0
        independent += abs(values.mean()) > 1.96 * values.std(ddof=1) / sqrt(values.size)
    assert clustered / repeats <= 0.07
    assert independent / repeats > 0.10


# Comparisons


def test_comparison_reproduces_the_known_row_from_attempts() -> None:
    tasks = [f"task-{i}" for i in range(12)]
    ours = {
        t: [True] * (2 + round(4 * d)) + [False] * (2 - round(4 * d))
        for t, d in zip(tasks, KNOWN, strict=True)
    }
    theirs = {t: [True, True, False, False] for t in tasks}
    components = dict(zip(tasks, KNOWN_CLUSTERS, strict=True))
    comparison = against(ours, theirs, components)
    assert comparison.estimate == pytest.approx(1 / 6)
    assert (comparison.lower, comparison.upper) == pytest.approx((-0.020861, 0.354194), abs=1e-6)
    assert (comparison.tasks, comparison.clusters, comparison.dropped) == (12, 4, 0)
    assert comparison.sign_flip_p is None
    assert comparison.effect is Effect.INCONCLUSIVE


@pytest.mark.parametrize(
    ("ours", "theirs", "effect"),
    [(True, False, Effect.BETTER), (False, True, Effect.WORSE), (True, True, Effect.INCONCLUSIVE)],
)
def test_effect_is_the_side_of_zero_that_the_interval_lies_on(
    ours: bool, theirs: bool, effect: Effect
) -> None:
    tasks = [f"task-{i}" for i in range(12)]
    comparison = against({t: [ours] for t in tasks}, {t: [theirs] for t in tasks})
    assert comparison.effect is effect
    assert comparison.sign_flip_p == (1.0 if ours == theirs else 2 / 2**12)


def test_an_ungraded_attempt_is_in_no_mean_but_in_both_bounds() -> None:
    comparison = against(
        {"a": [True, None], "b": [False, False]}, {"a": [False, False], "b": [True, None]}
    )
    assert comparison.estimate == 0.0
    assert (comparison.low_bound, comparison.high_bound) == (-0.25, 0.25)


def test_a_task_without_a_grade_on_one_side_is_dropped_counted_and_bounded() -> None:
    comparison = against(
        {"a": [True], "b": [None], "c": [True]}, {"a": [True], "b": [False], "c": [True]}
    )
    assert (comparison.tasks, comparison.dropped, comparison.estimate) == (2, 1, 0.0)
    assert comparison.low_bound == 0.0
    assert comparison.high_bound == pytest.approx(1 / 3)


def test_one_component_has_an_estimate_and_no_verdict() -> None:
    comparison = against(
        {"a": [True], "b": [True]}, {"a": [False], "b": [False]}, dict.fromkeys("ab", "x")
    )
    assert (comparison.estimate, comparison.clusters) == (1.0, 1)
    assert (comparison.lower, comparison.upper, comparison.detectable) == (None, None, None)
    assert comparison.effect is Effect.INCONCLUSIVE


def test_nothing_graded_on_both_sides_has_no_estimate() -> None:
    comparison = against({"a": [None]}, {"a": [True]})
    assert (comparison.estimate, comparison.tasks, comparison.dropped) == (None, 0, 1)
    assert (comparison.low_bound, comparison.high_bound) == (-1.0, 0.0)


def test_a_higher_level_gives_a_wider_interval() -> None:
    ours = {f"task-{i}": [i % 3 > 0] for i in range(12)}
    theirs = {task: [False] for task in ours}
    narrow, wide = against(ours, theirs), against(ours, theirs, level=0.99)
    assert narrow.lower is not None
    assert wide.lower is not None
    assert wide.lower < narrow.lower


outcome_rows = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=3)
tables = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(outcome_rows, outcome_rows), min_size=1
)


@settings(max_examples=60, deadline=None)
@given(tables, st.booleans())
def test_any_completion_of_the_ungraded_lies_within_the_bounds(
    table: dict[str, tuple[list[bool | None], list[bool | None]]], filled: bool
) -> None:
    ours = {task: row for task, (row, _) in table.items()}
    theirs = {task: row for task, (_, row) in table.items()}
    bounded = against(ours, theirs)
    complete = against(
        {t: [filled if o is None else o for o in row] for t, row in ours.items()},
        {t: [filled if o is None else o for o in row] for t, row in theirs.items()},
    )
    assert complete.estimate is not None
    assert bounded.low_bound is not None
    assert bounded.high_bound is not None
    assert bounded.low_bound - 1e-9 <= complete.estimate <= bounded.high_bound + 1e-9


@settings(max_examples=40, deadline=None)
@given(tables)
def test_swapping_the_arms_turns_the_comparison_around(
    table: dict[str, tuple[list[bool | None], list[bool | None]]],
) -> None:
    ours = {task: row for task, (row, _) in table.items()}
    theirs = {task: row for task, (_, row) in table.items()}
    one, other = against(ours, theirs), against(theirs, ours)
    assert one.sign_flip_p == other.sign_flip_p
    assert (one.estimate is None) == (other.estimate is None)
    if one.lower is not None and other.upper is not None:
        assert one.lower == pytest.approx(-other.upper, abs=1e-9)


# Arms


def test_an_arm_counts_passed_failed_limits_and_ungraded_apart() -> None:
    limit = make_attempt(3, passed=False, termination=Termination.STEP_LIMIT)
    protocol = make_attempt(4, passed=False, termination=Termination.PROTOCOL)
    beyond = make_attempt(5, passed=True, termination=Termination.TIME_LIMIT)
    fault = make_attempt(2, infra=make_infra())
    result = arm_result("a", "p", [make_attempt(0), limit, protocol, beyond, fault])
    assert (result.passed, result.failed, result.ungraded, result.limits) == (2, 2, 1, 1)
    assert (result.tasks, result.attempts, result.rate) == (1, 5, 0.5)


def test_an_arm_with_nothing_graded_has_no_rate() -> None:
    assert arm_result("a", "p", [make_attempt(infra=make_infra())]).rate is None


def test_a_superseded_try_is_no_attempt_but_its_cost_was_spent() -> None:
    result = arm_result("a", "p", [make_attempt(infra=make_infra()), make_attempt(try_number=1)])
    assert (result.attempts, result.ungraded, result.rate) == (1, 0, 1.0)
    assert (result.seconds, result.tokens) == (4.0, 24)


TASKS = [
    EvalTask(f"task-{i}", f"component-{i}", "orders" if i % 2 else "logs", ("dedup",) * (i < 4))
    for i in range(8)
]
SCORES = {"parent": 2, "old-uniform": 3, "new-uniform": 5, "new-curriculum": 6}


def report_of(*arms: str) -> EvalReport:
    """Arm `a` passes the first SCORES[a] tasks."""
    attempts = {
        arm: runs({task.task_id: [i < SCORES[arm]] for i, task in enumerate(TASKS)}, arm)
        for arm in arms
    }
    policy_of = {arm: f"policy-{arm}" for arm in arms}
    return compare_arms("cycle-0001", Split.DEV, TASKS, attempts, policy_of)


def headline(report: EvalReport) -> dict[tuple[str, str, str], float | None]:
    return {
        (c.question, c.treatment, c.control): c.estimate
        for c in report.comparisons
        if c.slice == "all"
    }


def test_three_arms_and_the_parent_answer_every_question() -> None:
    report = report_of("parent", "old-uniform", "new-uniform", "new-curriculum")
    assert headline(report) == {
        ("better tasks?", "new-uniform", "old-uniform"): 2 / 8,
        ("better sampling?", "new-curriculum", "new-uniform"): 1 / 8,
        ("both?", "new-curriculum", "old-uniform"): 3 / 8,
        ("better than the parent?", "old-uniform", "parent"): 1 / 8,
        ("better than the parent?", "new-uniform", "parent"): 3 / 8,
        ("better than the parent?", "new-curriculum", "parent"): 4 / 8,
    }
    assert report.unanswered == ()
    assert {a.arm: a.policy_version for a in report.arms}["parent"] == "policy-parent"


def test_two_arms_leave_the_other_questions_open_by_name() -> None:
    report = report_of("parent", "old-uniform", "new-curriculum")
    assert {question for question, _, _ in headline(report)} == {"both?", "better than the parent?"}
    assert report.unanswered == (
        "better tasks? (new-uniform did not run)",
        "better sampling? (new-uniform did not run)",
    )


def test_without_the_parent_its_question_is_open_once() -> None:
    report = report_of("old-uniform", "new-uniform")
    assert report.unanswered[-1] == "better than the parent? (parent did not run)"
    assert len(report.unanswered) == 3


def test_the_questions_that_hypotheses_are_judged_on_are_sliced_by_rule_and_family() -> None:
    report = report_of("parent", "old-uniform", "new-uniform", "new-curriculum")
    by_slice = [c for c in report.comparisons if c.slice != "all"]
    assert {c.question for c in by_slice} == {"better tasks?", "both?"}
    sliced = {c.slice: c for c in by_slice if c.question == "better tasks?"}
    assert sliced.keys() == {"rule:dedup", "family:orders", "family:logs"}
    assert (sliced["rule:dedup"].tasks, sliced["rule:dedup"].estimate) == (4, 1 / 4)
    assert (sliced["family:logs"].tasks, sliced["family:logs"].estimate) == (4, 1 / 4)


def test_leaving_out_the_hardest_tasks_raises_a_rate_and_is_refused_as_a_comparison() -> None:
    whole = runs({task.task_id: [i < 4] for i, task in enumerate(TASKS)}, "new-uniform")
    kept = [a for a in whole if a.key.task_id != "task-7"]
    rates = [arm_result("new-uniform", "p", attempts).rate for attempts in (whole, kept)]
    assert rates == [0.5, 4 / 7]
    policy_of = {"new-uniform": "p", "old-uniform": "q"}
    with pytest.raises(ConfigError, match=r"new-uniform never attempted 1 tasks .* task-7"):
        compare_arms("c", Split.DEV, TASKS, {"new-uniform": kept, "old-uniform": whole}, policy_of)


def test_a_task_outside_the_frozen_list_is_refused() -> None:
    attempts = runs({**{task.task_id: [True] for task in TASKS}, "task-9": [True]})
    with pytest.raises(ConfigError, match=r"added 1 tasks .* task-9"):
        compare_arms("c", Split.DEV, TASKS, {"parent": attempts}, {"parent": "p"})


def test_the_task_list_has_one_digest_whatever_its_order() -> None:
    attempts = {"parent": runs({task.task_id: [True] for task in TASKS})}
    one = compare_arms("c", Split.DEV, TASKS, attempts, {"parent": "p"})
    other = compare_arms("c", Split.DEV, TASKS[::-1], attempts, {"parent": "p"})
    assert one == other


@pytest.mark.parametrize(
    ("split", "purpose"), [(Split.HOLDOUT, Purpose.EVALUATE), (Split.DEV, Purpose.HOLDOUT)]
)
def test_holdout_attempts_never_make_a_report(split: Split, purpose: Purpose) -> None:
    attempts = {"parent": runs({task.task_id: [True] for task in TASKS}, purpose=purpose)}
    with pytest.raises(HoldoutViolation):
        compare_arms("c", split, TASKS, attempts, {"parent": "p"})
