from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv

from flywheel.difficulty import (
    JEFFREYS,
    assign_bucket,
    expected_learning,
    manski_bounds,
    spread,
    update_posterior,
)
from schemas.attempt import Attempt, Termination
from schemas.difficulty import Bucket, Posterior
from tests.factories import make_attempt, make_infra, make_manifest, make_setting

TASK = make_manifest()
SETTING = make_setting(TASK.version_id)
UNIFORM = (1.0, 1.0)


def attempts_of(passed: int, graded: int, ungraded: int = 0) -> list[Attempt]:
    outcomes: list[bool | None] = [True] * passed + [False] * (graded - passed) + [None] * ungraded
    return [make_attempt(i, passed=outcome, task=TASK) for i, outcome in enumerate(outcomes)]


def posterior_of(
    attempts: Sequence[Attempt],
    prior: tuple[float, float] = JEFFREYS,
) -> Posterior:
    return update_posterior(SETTING, TASK.task_id, "orders", attempts, prior)


def test_three_of_eight_under_a_uniform_prior_has_the_known_posterior() -> None:
    posterior = posterior_of(attempts_of(3, 8), UNIFORM)
    assert posterior.mean == pytest.approx(0.4)
    assert (posterior.lower, posterior.upper) == pytest.approx((0.168750, 0.655058), abs=1e-6)
    assert posterior.p_low == pytest.approx(0.008331, abs=1e-6)
    assert posterior.p_high == pytest.approx(6.4234e-5, rel=1e-4)
    assert (posterior.alpha, posterior.beta) == (4.0, 6.0)


def test_none_of_eight_under_jeffreys_has_the_known_posterior_and_stays_undersampled() -> None:
    posterior = posterior_of(attempts_of(0, 8))
    assert posterior.mean == pytest.approx(0.055556, abs=1e-6)
    assert (posterior.lower, posterior.upper) == pytest.approx((0.000238, 0.207508), abs=1e-6)
    assert posterior.p_low == pytest.approx(0.812824, abs=1e-6)
    assert posterior.bucket is Bucket.UNDERSAMPLED


@pytest.mark.parametrize(
    ("prior", "passed", "graded", "p_low"),
    [
        (JEFFREYS, 0, 16, 0.935787),
        (JEFFREYS, 1, 16, 0.654813),
        (UNIFORM, 0, 8, 0.612580),
        (UNIFORM, 0, 16, 0.833228),
    ],
)
def test_probability_of_a_hard_task_is_the_known_one(
    prior: tuple[float, float], passed: int, graded: int, p_low: float
) -> None:
    posterior = posterior_of(attempts_of(passed, graded), prior)
    assert posterior.p_low == pytest.approx(p_low, abs=1e-6)


@pytest.mark.parametrize(
    ("passed", "graded", "ungraded", "bucket"),
    [
        (0, 0, 0, Bucket.UNDERSAMPLED),
        (0, 16, 0, Bucket.UNSOLVED_UNKNOWN),
        (1, 32, 0, Bucket.HARD),
        (16, 16, 0, Bucket.TOO_EASY),
        (4, 8, 0, Bucket.LEARNABLE),
        (2, 4, 0, Bucket.LEARNABLE),
        (3, 31, 0, Bucket.UNDERSAMPLED),
        (3, 32, 0, Bucket.BORDERLINE),
        (3, 28, 4, Bucket.BORDERLINE),
        (4, 8, 2, Bucket.LEARNABLE),
        (4, 8, 3, Bucket.UNMEASURABLE),
        (0, 0, 1, Bucket.UNMEASURABLE),
    ],
)
def test_bucket_says_no_more_than_the_counts_allow(
    passed: int, graded: int, ungraded: int, bucket: Bucket
) -> None:
    assert posterior_of(attempts_of(passed, graded, ungraded)).bucket is bucket


@pytest.mark.parametrize(("passed", "label"), [(0, Bucket.UNSOLVED_UNKNOWN), (7, Bucket.TOO_EASY)])
def test_a_strong_prior_never_decides_an_extreme_before_eight_attempts(
    passed: int, label: Bucket
) -> None:
    prior = (0.1, 3.0) if passed == 0 else (3.0, 0.1)
    assert posterior_of(attempts_of(passed, 7), prior).bucket is Bucket.UNDERSAMPLED
    more = passed + (passed > 0)
    assert posterior_of(attempts_of(more, 8), prior).bucket is label


def test_the_probing_budget_turns_undersampled_into_borderline() -> None:
    attempts = attempts_of(0, 8)
    args = (SETTING, TASK.task_id, "orders", attempts)
    assert update_posterior(*args, max_attempts=8).bucket is Bucket.BORDERLINE
    assert update_posterior(*args, max_attempts=9).bucket is Bucket.UNDERSAMPLED


def test_an_ungraded_attempt_is_missing_data_and_not_a_failure() -> None:
    with_fault = posterior_of([*attempts_of(3, 8), make_attempt(8, infra=make_infra(), task=TASK)])
    assert (with_fault.graded, with_fault.ungraded) == (8, 1)
    assert with_fault.mean == posterior_of(attempts_of(3, 8)).mean


def test_a_limit_that_the_agent_ran_into_is_a_failure() -> None:
    timeout = make_attempt(passed=False, termination=Termination.TIME_LIMIT, task=TASK)
    assert (posterior_of([timeout]).passed, posterior_of([timeout]).graded) == (0, 1)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_tries_only_the_last_counts(order: int) -> None:
    fault = make_attempt(infra=make_infra(), task=TASK)
    retried = make_attempt(passed=True, try_number=1, task=TASK)
    posterior = posterior_of([fault, retried][::order])
    assert (posterior.passed, posterior.graded, posterior.ungraded) == (1, 1, 0)


def test_the_same_attempt_given_twice_counts_once() -> None:
    assert posterior_of(attempts_of(1, 2) * 2).graded == 2


def test_equal_indexes_of_different_cycles_are_different_attempts() -> None:
    other = make_attempt(run_id="cycle-0002", task=TASK)
    assert posterior_of([make_attempt(task=TASK), other]).graded == 2


def test_attempts_of_another_setting_are_refused_by_name() -> None:
    stranger = make_attempt(policy_version="policy-1", task=TASK)
    with pytest.raises(ValueError, match=stranger.key.setting_id) as error:
        posterior_of([stranger])
    assert SETTING.setting_id in str(error.value)


def test_a_regrade_makes_another_posterior_and_the_order_of_attempts_does_not() -> None:
    attempts = attempts_of(3, 8)
    regraded = [make_attempt(0, passed=False, task=TASK), *attempts[1:]]
    assert posterior_of(regraded).posterior_id != posterior_of(attempts).posterior_id
    assert posterior_of(attempts[::-1]) == posterior_of(attempts)


@given(st.tuples(st.integers(0, 40), st.integers(0, 40)), st.floats(0.1, 4.0), st.floats(0.1, 4.0))
def test_tail_probabilities_agree_with_the_quantiles(
    counts: tuple[int, int], a: float, b: float
) -> None:
    passed, failed = counts
    posterior = update_posterior(SETTING, "task", "orders", [], (a + passed, b + failed))
    assert posterior.p_low + posterior.p_high <= 1 + 1e-12
    assert (posterior.lower >= 0.1) == (posterior.p_low <= 0.05)
    assert (posterior.upper <= 0.9) == (posterior.p_high <= 0.05)


def test_bounds_take_the_ungraded_as_all_failed_and_all_passed() -> None:
    assert manski_bounds(3, 6, 2) == (3 / 8, 5 / 8)
    assert manski_bounds(3, 6, 0) == (0.5, 0.5)
    assert manski_bounds(0, 0, 0) == (0.0, 1.0)


def test_expected_learning_is_the_known_one() -> None:
    assert expected_learning(4, 6) == pytest.approx(0.218182, abs=1e-6)


@given(st.floats(0.2, 30), st.floats(0.2, 30))
def test_learning_and_spread_agree_with_moments_of_the_beta(alpha: float, beta: float) -> None:
    p = betaincinv(alpha, beta, (np.arange(20_000) + 0.5) / 20_000)
    assert expected_learning(alpha, beta) == pytest.approx(np.mean(p * (1 - p)), abs=1e-4)
    assert spread(alpha, beta) == pytest.approx(np.std(p), abs=1e-3)


def test_the_sequential_rule_has_the_known_cost_and_error_on_a_u_shaped_mix() -> None:
    """Exact by dynamic programming over counts: prior of the mix, waves of 4, 4, 4, 4, 8, 8."""
    rates, weights = u_shaped_mix()
    prior = (0.172, 0.246)
    paths, attempted, wrong, n = {0: 1}, 0.0, 0.0, 0
    for wave in (4, 4, 4, 4, 8, 8):
        n += wave
        paths = one_more_wave(paths, wave)
        for passed, ways in list(paths.items()):
            a, b = prior[0] + passed, prior[1] + n - passed
            low, high = float(betainc(a, b, 0.1)), float(betainc(b, a, 0.1))
            bucket = assign_bucket(low, high, passed, n, 0)
            if bucket is Bucket.UNDERSAMPLED:
                continue
            reached = weights * ways * rates**passed * (1 - rates) ** (n - passed)
            attempted += n * reached.sum()
            label = int(np.argmax([low, 1 - low - high, high]))
            wrong += reached[np.digitize(rates, [0.1, 0.9]) != label].sum()
            del paths[passed]
    assert not paths
    assert attempted == pytest.approx(10.53, abs=0.05)
    assert wrong == pytest.approx(0.0630, abs=0.001)


def u_shaped_mix() -> tuple[np.ndarray, np.ndarray]:
    """30 % p=0, 10 % Beta(.5,20), 35 % Beta(1.5,1.5), 15 % Beta(20,1), 10 % p=1."""
    nodes = (np.arange(4_000) + 0.5) / 4_000
    betas = [(0.10, 0.5, 20), (0.35, 1.5, 1.5), (0.15, 20, 1)]
    rates = np.concatenate([[0.0, 1.0], *(betaincinv(a, b, nodes) for _, a, b in betas)])
    weights = np.concatenate([[0.3, 0.1], *(np.full(4_000, w / 4_000) for w, _, _ in betas)])
    return rates, weights


def one_more_wave(paths: dict[int, int], wave: int) -> dict[int, int]:
    """Outcome sequences by their number of successes."""
    for _ in range(wave):
        longer: dict[int, int] = {}
        for passed, ways in paths.items():
            longer[passed] = longer.get(passed, 0) + ways
            longer[passed + 1] = longer.get(passed + 1, 0) + ways
        paths = longer
    return paths
