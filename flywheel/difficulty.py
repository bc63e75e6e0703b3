"""Attempts at one setting in, a Beta posterior of the success probability with its bucket out.

An attempt without a grade is missing data: it is counted beside the rate, never in it. The
posterior, unlike passed / graded, stays valid when probing stops early (the stopping rule cancels
out of the likelihood).
"""

from collections.abc import Iterable, Sequence
from math import sqrt

from scipy.special import betainc, betaincinv

from schemas.attempt import Attempt, Setting, Verdict
from schemas.base import content_id
from schemas.difficulty import Bucket, Posterior

JEFFREYS = (0.5, 0.5)
"""Prior where nothing is known about a task's family."""
LOW, HIGH = 0.1, 0.9
"""Success probabilities below and above which a task teaches little."""
DOUBT = 0.1
"""A bucket is claimed at a posterior probability of at least 1 - DOUBT."""
MIN_EXTREME, MIN_LEARNABLE = 8, 4
"""Fewest graded attempts behind a claim: a prior alone never decides."""
MAX_ATTEMPTS = 32
"""Probing budget of one task at one setting."""
MAX_UNGRADED = 0.2
"""Above this share of attempts without a grade, nothing is claimed."""


def final_tries(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Return the last infrastructure retry of each attempt; a superseded one isn't missing data."""
    last: dict[tuple[str, ...], Attempt] = {}
    for attempt in attempts:
        key = attempt.key
        slot = (key.run_id, key.purpose, key.arm, key.version_id, key.setting_id, str(key.index))
        if slot not in last or last[slot].key.try_number < key.try_number:
            last[slot] = attempt
    return tuple(last.values())


def update_posterior(
    setting: Setting,
    task_id: str,
    family: str,
    attempts: Sequence[Attempt],
    prior: tuple[float, float] = JEFFREYS,
    max_attempts: int = MAX_ATTEMPTS,
) -> Posterior:
    """Return the posterior of one task at one setting, from all of its attempts at that setting.

    Limits that the agent ran into are failures: the probability is conditional on the budget.
    Raises ValueError for an attempt of another setting or task.
    """
    _require_one_setting(setting, task_id, attempts)
    counted = final_tries(attempts)
    verdicts = [attempt.verdict for attempt in counted]
    passed, ungraded = verdicts.count(Verdict.PASSED), verdicts.count(Verdict.UNGRADED)
    graded = len(verdicts) - ungraded
    alpha, beta = prior[0] + passed, prior[1] + graded - passed
    p_low, p_high = float(betainc(alpha, beta, LOW)), float(betainc(beta, alpha, 1 - HIGH))
    lower, upper = betaincinv(alpha, beta, [0.05, 0.95])
    return Posterior(
        setting_id=setting.setting_id,
        task_id=task_id,
        version_id=setting.version_id,
        policy_version=setting.policy_version,
        family=family,
        prior_alpha=prior[0],
        prior_beta=prior[1],
        passed=passed,
        graded=graded,
        ungraded=ungraded,
        attempts_digest=content_id("ev", sorted((a.attempt_id, a.verdict) for a in counted)),
        mean=alpha / (alpha + beta),
        lower=float(lower),
        upper=float(upper),
        p_low=p_low,
        p_high=p_high,
        bucket=assign_bucket(p_low, p_high, passed, graded, ungraded, max_attempts),
    )


def assign_bucket(
    p_low: float,
    p_high: float,
    passed: int,
    graded: int,
    ungraded: int,
    max_attempts: int = MAX_ATTEMPTS,
) -> Bucket:
    """Return what P(p < LOW), P(p > HIGH) and the counts allow to be said about a task.

    The one fault in four that makes a task UNMEASURABLE outlasted its retries, so it is not noise.
    """
    total = graded + ungraded
    if ungraded > MAX_UNGRADED * total:
        return Bucket.UNMEASURABLE
    if graded >= MIN_EXTREME and p_low >= 1 - DOUBT:
        return Bucket.HARD if passed else Bucket.UNSOLVED_UNKNOWN
    if graded >= MIN_EXTREME and p_high >= 1 - DOUBT:
        return Bucket.TOO_EASY
    if graded >= MIN_LEARNABLE and 1 - p_low - p_high >= 1 - DOUBT:
        return Bucket.LEARNABLE
    return Bucket.UNDERSAMPLED if total < max_attempts else Bucket.BORDERLINE


def manski_bounds(passed: int, graded: int, ungraded: int) -> tuple[float, float]:
    """Return the success rate if every ungraded attempt had failed, and if it had passed.

    (0, 1) without any attempt. Manski (1990), worst-case bounds under missing outcomes.
    """
    total = graded + ungraded
    if total == 0:
        return 0.0, 1.0
    return passed / total, (passed + ungraded) / total


def expected_learning(alpha: float, beta: float) -> float:
    """Return E[p(1 - p)] under Beta(alpha, beta): the expected learning signal, at most 1/4."""
    total = alpha + beta
    return alpha * beta / (total * (total + 1))


def spread(alpha: float, beta: float) -> float:
    """Return the standard deviation of Beta(alpha, beta)."""
    total = alpha + beta
    return sqrt(alpha * beta / (total + 1)) / total


def _require_one_setting(setting: Setting, task_id: str, attempts: Sequence[Attempt]) -> None:
    for attempt in attempts:
        found = (attempt.key.task_id, attempt.key.setting_id)
        if found != (task_id, setting.setting_id):
            raise ValueError(
                f"attempt {attempt.attempt_id} is of task {found[0]} at setting {found[1]}, the "
                f"posterior of task {task_id} at setting {setting.setting_id}: never pool settings"
            )
