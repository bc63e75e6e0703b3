"""Candidates with posteriors in, draws with their inclusion probability and reason out.

Draws are stored before any outcome exists, and each gets exactly one `Acceptance` afterwards, so
that what was dispatched and what was accepted always add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from flywheel.difficulty import JEFFREYS, expected_learning, final_tries, spread
from flywheel.errors import ConfigError
from schemas.attempt import Attempt, Purpose, Verdict
from schemas.config import DrawConfig
from schemas.curriculum import Acceptance, AcceptReason, Arm, Draw, DrawReason
from schemas.difficulty import Bucket, Posterior

UNIFORM_SHARE = 0.05
"""Part of the curriculum's draws spread evenly, so that every eligible task can be drawn."""
FILLED = 0.9
"""A quota whose expected draws stay below this part of it is reported as unfilled."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task that may be drawn."""

    task_id: str
    version_id: str
    family: str
    component: str
    is_new: bool
    """Proposed in this cycle: left out of the control arm."""
    posterior: Posterior | None
    """Of the parent policy; None: never probed."""

    @property
    def shape(self) -> tuple[float, float]:
        """Beta parameters, the prior's where nothing was measured."""
        return (self.posterior.alpha, self.posterior.beta) if self.posterior else JEFFREYS

    @property
    def bucket(self) -> Bucket:
        """Bucket, UNDERSAMPLED where nothing was measured."""
        return self.posterior.bucket if self.posterior else Bucket.UNDERSAMPLED


@dataclass(frozen=True, slots=True)
class DrawPlan:
    """One arm's draws."""

    draws: tuple[Draw, ...]
    unfilled: tuple[str, ...]
    """Quotas that the pool could not fill, with both numbers; their draws went to the others."""


def draw_arm(
    arm: Arm,
    candidates: Sequence[Candidate],
    config: DrawConfig,
    cycle_id: str,
    rng: np.random.Generator,
) -> DrawPlan:
    """Draw exactly `config.attempts` attempts for one arm, whatever the order of `candidates`.

    Systematic sampling from one random start: a task with x expected draws gets floor(x) or
    ceil(x), and its inclusion probability is exactly min(1, x). Families lie side by side, so
    their totals keep within one draw of the plan too.
    Raises ConfigError where the pool can't take the draws, ValueError for a task named twice.
    """
    pool = sorted((c for c in candidates if _eligible(c, arm)), key=lambda c: (c.family, c.task_id))
    _require_capacity(arm, pool, config)
    reasons, planned = _plan(arm, pool, config)
    expected = planned.sum(axis=1)
    points = rng.random() + np.arange(config.attempts)
    chosen = np.searchsorted(np.cumsum(planned), points, side="right").clip(max=planned.size - 1)
    rng.shuffle(chosen)  # any first slots are then a fair part of the draw
    draws = (
        Draw(
            cycle_id=cycle_id,
            arm=arm,
            slot=slot,
            task_id=pool[task].task_id,
            version_id=pool[task].version_id,
            family=pool[task].family,
            probability=min(1.0, float(expected[task])),
            reason=reasons[part],
        )
        for slot, (task, part) in enumerate(divmod(int(cell), len(reasons)) for cell in chosen)
    )
    unfilled = _unfilled(pool, reasons, planned, config) if arm is Arm.NEW_CURRICULUM else ()
    return DrawPlan(tuple(draws), unfilled)


def accept(draws: Sequence[Draw], attempts: Sequence[Attempt]) -> tuple[Acceptance, ...]:
    """Return one acceptance per draw, in order: was a graded attempt made of it, and if not, why.

    An attempt belongs to the draw of its cycle, arm and version whose slot is its index; of
    several infrastructure retries the last one counts.
    Raises ValueError where two attempts of different settings claim one draw.
    """
    returned: dict[tuple[str, str, str, int], Attempt] = {}
    for attempt in final_tries(a for a in attempts if a.key.purpose is Purpose.COLLECT):
        key = attempt.key
        place = (key.run_id, key.arm, key.version_id, key.index)
        if place in returned:
            raise ValueError(
                f"attempts {returned[place].attempt_id} and {attempt.attempt_id} of different "
                f"settings claim slot {key.index} of arm {key.arm}: pass one setting's attempts"
            )
        returned[place] = attempt
    return tuple(
        _acceptance(draw, returned.get((draw.cycle_id, draw.arm, draw.version_id, draw.slot)))
        for draw in draws
    )


def _acceptance(draw: Draw, attempt: Attempt | None) -> Acceptance:
    if attempt is None:
        reason = AcceptReason.NOT_RETURNED
    elif attempt.infra is not None:
        reason = AcceptReason.INFRASTRUCTURE
    elif attempt.verdict is Verdict.UNGRADED:
        reason = AcceptReason.UNGRADED
    else:
        reason = AcceptReason.GRADED
    return Acceptance(
        draw_id=draw.draw_id,
        cycle_id=draw.cycle_id,
        arm=draw.arm,
        attempt_id=attempt.attempt_id if attempt else None,
        accepted=reason is AcceptReason.GRADED,
        reason=reason,
    )


def _eligible(candidate: Candidate, arm: Arm) -> bool:
    if arm is Arm.OLD_UNIFORM:
        return not candidate.is_new
    return arm is Arm.NEW_UNIFORM or candidate.bucket is not Bucket.UNMEASURABLE


def _require_capacity(arm: Arm, pool: Sequence[Candidate], config: DrawConfig) -> None:
    if len({candidate.task_id for candidate in pool}) != len(pool):
        raise ValueError(f"arm {arm.value}: a task is a candidate twice")
    if len(pool) * config.cap < config.attempts:
        raise ConfigError(
            f"arm {arm.value}: {len(pool)} tasks x draw.cap {config.cap} can't take draw.attempts "
            f"{config.attempts}: propose more tasks, raise draw.cap or lower draw.attempts"
        )
    families = len({candidate.family for candidate in pool})
    if arm is Arm.NEW_CURRICULUM and families * config.domain_floor > 1:
        raise ConfigError(
            f"draw.domain_floor {config.domain_floor} x {families} families exceeds 1: lower it"
        )


def _plan(
    arm: Arm, pool: Sequence[Candidate], config: DrawConfig
) -> tuple[tuple[DrawReason, ...], Floats]:
    """Return the reasons and the expected draws, task x reason, which sum to the arm's attempts."""
    if arm is Arm.NEW_CURRICULUM:
        parts, floor = _curriculum_parts(pool, config), config.domain_floor
    else:
        parts, floor = {DrawReason.UNIFORM: np.full(len(pool), 1 / len(pool))}, 0.0
    wanted = config.attempts * np.stack(list(parts.values()), axis=1)
    return tuple(parts), _within_limits(pool, wanted, floor * config.attempts, config)


def _curriculum_parts(pool: Sequence[Candidate], config: DrawConfig) -> dict[DrawReason, Floats]:
    """Return each reason's share of the draws, by task; all together sum to one."""
    shapes = [candidate.shape for candidate in pool]
    buckets = [candidate.bucket for candidate in pool]
    wide = {Bucket.UNDERSAMPLED, Bucket.BORDERLINE}
    easy = np.array([bucket is Bucket.TOO_EASY for bucket in buckets], dtype=float)
    open_ = np.array([spread(*s) * (b in wide) for s, b in zip(shapes, buckets, strict=True)])
    parts = {
        DrawReason.UNIFORM: UNIFORM_SHARE * _normalised(np.ones(len(pool))),
        DrawReason.REHEARSAL: config.rehearsal * _normalised(easy),
        DrawReason.EXPLORATION: config.exploration * _normalised(open_),
    }
    rest = 1 - sum(float(part.sum()) for part in parts.values())
    learning = _normalised(np.array([expected_learning(*shape) for shape in shapes]))
    parts[DrawReason.LEARNING] = max(0.0, rest) * learning
    total = sum(float(part.sum()) for part in parts.values())
    return {reason: part / total for reason, part in parts.items()}


def _within_limits(
    pool: Sequence[Candidate], wanted: Floats, floor: float, config: DrawConfig
) -> Floats:
    """Scale wanted draws (task x reason) to each family's floor and each task's cap."""
    families, index = np.unique([candidate.family for candidate in pool], return_inverse=True)
    capacity: Floats = float(config.cap) * np.bincount(index).astype(np.float64)
    totals = _fill(
        np.bincount(index, weights=wanted.sum(axis=1)).astype(np.float64),
        config.attempts,
        np.minimum(floor, capacity),
        capacity,
    )
    planned = wanted.copy()
    for family in range(families.size):
        rows = index == family
        weights = wanted[rows].sum(axis=1)
        target = _fill(weights, float(totals[family]), 0.0, float(config.cap))
        planned[rows] *= (target / weights)[:, None]
    return planned


def _fill(weights: Floats, total: float, low: Floats | float, high: Floats | float) -> Floats:
    """Return min(max(s * weights, low), high) for the one s at which it sums to `total`."""

    def excess(scale: float) -> float:
        return float((scale * weights).clip(low, high).sum()) - total

    scale, top = 0.0, float((high / weights).max())
    if excess(top) <= 0:
        scale = top
    elif excess(0.0) < 0:
        scale = float(brentq(excess, 0.0, top, xtol=1e-14, rtol=1e-14))
    return (scale * weights).clip(low, high)


def _unfilled(
    pool: Sequence[Candidate], reasons: Sequence[DrawReason], planned: Floats, config: DrawConfig
) -> tuple[str, ...]:
    got = {reason.value: float(planned[:, part].sum()) for part, reason in enumerate(reasons)}
    shares = {
        DrawReason.REHEARSAL.value: config.rehearsal,
        DrawReason.EXPLORATION.value: config.exploration,
    }
    for family in sorted({candidate.family for candidate in pool}):
        rows = np.array([candidate.family == family for candidate in pool])
        got[f"floor of family {family}"] = float(planned[rows].sum())
        shares[f"floor of family {family}"] = config.domain_floor
    return tuple(
        f"{quota}: {got[quota]:.1f} of {share * config.attempts:.1f} draws"
        for quota, share in shares.items()
        if got[quota] < FILLED * share * config.attempts
    )


def _normalised(weights: Floats) -> Floats:
    total = weights.sum()
    return weights / total if total > 0 else weights
