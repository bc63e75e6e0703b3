"""How often a reference fails although nothing changed: a posterior that goes on learning."""

from scipy.special import betainc, betaincinv

PRIOR = 0.5
"""Jeffreys' prior on both sides: three clean runs still allow a flake rate of one half."""
TOLERATED = 0.05
SURE = 0.9


def flake_interval(runs: int, passed: int, level: float = 0.95) -> tuple[float, float]:
    """Return the equal-tailed interval of the flake rate under Beta(½ + failures, ½ + passes)."""
    failures, tail = runs - passed, (1 - level) / 2
    low, high = (
        float(betaincinv(PRIOR + failures, PRIOR + passed, quantile))
        for quantile in (tail, 1 - tail)
    )
    return (low if failures else 0.0), high


def is_flaky(runs: int, passed: int) -> bool:
    """Tell whether the flake rate is above TOLERATED with a probability of at least SURE."""
    below = float(betainc(PRIOR + runs - passed, PRIOR + passed, TOLERATED))
    return 1 - below >= SURE
