"""Difficulty: a posterior per setting, with a state for "we don't know"."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, computed_field, model_validator

from schemas.base import Count, Name, Probability, Record, content_id


class Bucket(StrEnum):
    """What the posterior lets us say about a task at this setting."""

    TOO_EASY = "too-easy"
    LEARNABLE = "learnable"
    HARD = "hard"
    """Low success, and seen solved."""
    UNSOLVED_UNKNOWN = "unsolved-unknown"
    """Low success, never seen solved: says nothing about solvability."""
    BORDERLINE = "borderline"
    """Undecided when the probing budget was used up."""
    UNDERSAMPLED = "undersampled"
    """Undecided, with probing budget left."""
    UNMEASURABLE = "unmeasurable"
    """Too many attempts without a grade."""


Positive = Annotated[float, Field(gt=0)]


class Posterior(Record):
    """Beta posterior of one task's success probability at one setting."""

    setting_id: str
    task_id: str
    version_id: str
    policy_version: str
    family: Name
    prior_alpha: Positive
    prior_beta: Positive
    passed: Count
    graded: Count
    ungraded: Count
    """Infrastructure faults: missing data, in no denominator."""
    attempts_digest: str
    """Digest of the attempt ids counted: a regrade or a further attempt makes a new posterior."""
    mean: Probability
    lower: Probability
    """5 % quantile."""
    upper: Probability
    """95 % quantile."""
    p_low: Probability
    """P(p < 0.1)."""
    p_high: Probability
    """P(p > 0.9)."""
    bucket: Bucket

    @computed_field  # type: ignore[prop-decorator]
    @property
    def posterior_id(self) -> str:
        """Identity by evidence."""
        return content_id(
            "post", self.setting_id, self.attempts_digest, self.prior_alpha, self.prior_beta
        )

    @model_validator(mode="after")
    def _counts(self) -> "Posterior":
        if self.passed > self.graded:
            raise ValueError("passed exceeds graded")
        return self

    @property
    def alpha(self) -> float:
        """First shape parameter."""
        return self.prior_alpha + self.passed

    @property
    def beta(self) -> float:
        """Second shape parameter."""
        return self.prior_beta + self.graded - self.passed
