"""Numbers in, intervals out: how far a measured rate or difference can be trusted.

The unit of a difference's interval is the cluster (a lineage component), since tasks of one
component rise and fall together: treating them as independent rejects a true null far too often.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, sqrt

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

POWER = 0.8
"""Power at which the smallest detectable difference is stated."""
_MAX_SUMS = 1_000_000
_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean of differences in [-1, 1], with what its clusters allow to be said."""

    estimate: float
    se: float
    """CR1 standard error; 0 where no cluster deviates (then the interval isn't made from it)."""
    lower: float
    upper: float
    detectable: float
    """Smallest true mean found with 80 % power; above 1, none is."""


def wilson(passed: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided score interval of a rate (Wilson 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    z2 = float(ndtri((1 + level) / 2)) ** 2
    rate = passed / n
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = sqrt(z2) / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def clopper_pearson(passed: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided interval of a rate (Clopper-Pearson 1934); (0, 1) for n = 0."""
    tail = (1 - level) / 2
    lower = float(betaincinv(passed, n - passed + 1, tail)) if passed else 0.0
    upper = float(betaincinv(passed + 1, n - passed, 1 - tail)) if passed < n else 1.0
    return lower, upper


def unseen_share(clusters: int, level: float = 0.95) -> float:
    """Return the largest share of deviating clusters that showing none of `clusters` allows.

    Clopper-Pearson upper end for 0 of n, two-sided: the exact form of the rule of three.
    """
    return float(1 - ((1 - level) / 2) ** (1 / clusters))


def clustered_mean(
    differences: Sequence[float], clusters: Sequence[str], level: float = 0.95
) -> MeanInterval:
    """Return the mean of per-task differences with a CR1 cluster-robust t interval.

    SE² = G/(G-1) · Σ_g (Σ_{i in g} (d_i - mean))² / n², with t_{G-1} (Miller 2024, arXiv
    2411.00640, section on clustered errors; G/(G-1) is the CR1 correction). Where the SE is zero a
    zero-width interval would claim certainty, so the rule of three over clusters replaces it: at
    most a share q of clusters deviates unseen, each by as much as -1 or 1 allows.
    Raises ValueError below two clusters.
    """
    values = np.asarray(differences, dtype=float)
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    groups = int(index.max(initial=-1)) + 1
    if groups < 2:
        raise ValueError(f"an interval over clusters needs at least two of them, got {groups}")
    mean = float(values.mean())
    sums = np.bincount(index, weights=values - mean)
    se = float(np.sqrt(groups / (groups - 1) * np.square(sums).sum()) / values.size)
    quantile = float(stdtrit(groups - 1, (1 + level) / 2))
    factor = quantile + float(stdtrit(groups - 1, POWER))
    if se > _ZERO:
        half = quantile * se
        lower, upper = max(-1.0, mean - half), min(1.0, mean + half)
        return MeanInterval(mean, se, lower, upper, factor * se)
    unseen = unseen_share(groups, level)
    widest = (1 + abs(mean)) * sqrt(unseen / groups)
    lower, upper = mean - unseen * (1 + mean), mean + unseen * (1 - mean)
    return MeanInterval(mean, 0.0, lower, upper, factor * widest)


def sign_flip_p(cluster_sums: Sequence[Fraction]) -> float | None:
    """Return the exact two-sided sign-flip p-value of the sum over clusters.

    The share of all 2^G sign patterns whose sum is at least as far from zero as the observed one;
    its smallest value is 2/2^G. Sums are counted on their common denominator rather than
    enumerated, so many clusters are no obstacle; None where even that is too large.
    """
    scale = lcm(*(value.denominator for value in cluster_sums))
    steps = [abs(int(value * scale)) for value in cluster_sums]
    if min(2 ** len(steps), 2 * sum(steps) + 1) > _MAX_SUMS:
        return None
    patterns = Counter({0: 1})
    for step in steps:
        flipped: Counter[int] = Counter()
        for total, count in patterns.items():
            flipped[total + step] += count
            flipped[total - step] += count
        patterns = flipped
    observed = abs(int(sum(cluster_sums, Fraction(0)) * scale))
    extreme = sum(count for total, count in patterns.items() if abs(total) >= observed)
    return float(Fraction(extreme, 2 ** len(steps)))
