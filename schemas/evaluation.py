"""Comparison of arms: a difference with its interval, and the smallest one it could have shown."""

from enum import StrEnum

from pydantic import Field, computed_field

from schemas.base import Count, Name, Probability, Record, Seconds, content_id
from schemas.lineage import Split


class Effect(StrEnum):
    """What an interval says about a difference."""

    BETTER = "better"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


class ArmResult(Record):
    """One policy on one frozen task list."""

    arm: Name
    policy_version: str
    tasks: Count
    attempts: Count
    passed: Count
    failed: Count
    ungraded: Count
    limits: Count
    """Graded failures that ended at a limit (time, steps, tokens, cost): their own line."""
    rate: Probability | None
    """passed / (passed + failed); None where nothing was graded."""
    seconds: Seconds
    tokens: Count


class Comparison(Record):
    """Paired difference treatment - control, over the tasks graded in both."""

    question: str
    treatment: Name
    control: Name
    slice: str = Field(default="all")
    """`all`, or `rule:NAME` / `family:NAME`."""
    tasks: Count
    clusters: Count
    """Lineage components: the unit of the interval."""
    estimate: float | None
    """Difference of success probabilities; None where no task was graded in both."""
    lower: float | None
    upper: float | None
    level: Probability
    detectable: float | None
    """Smallest true difference found with 80 % power at this sample."""
    sign_flip_p: Probability | None
    """Exact sign-flip test over components; None below six."""
    dropped: Count
    """Tasks left out since one side was ungraded."""
    effect: Effect
    low_bound: float | None = None
    high_bound: float | None = None
    """The difference if every ungraded attempt had gone against, or for, the treatment."""


class EvalReport(Record):
    """Every arm of a cycle on one split."""

    cycle_id: str
    split: Split
    tasks_digest: str
    """Digest of the frozen task list."""
    arms: tuple[ArmResult, ...]
    comparisons: tuple[Comparison, ...]
    unanswered: tuple[str, ...]
    """What the arms that ran leave open."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def report_id(self) -> str:
        """One a cycle and split."""
        return content_id("eval", self.cycle_id, self.split)


class Decision(StrEnum):
    """What becomes of the parent policy."""

    PROMOTE = "promote"
    HOLD = "hold"
    ROLL_BACK = "roll-back"


class PromotionRule(Record):
    """Written down before the first attempt of a cycle."""

    dev_level: Probability = 0.95
    """The best arm's dev interval against the parent must lie above zero at this level, which is
    not corrected for the number of arms."""
    margin: Probability = 0.1
    """And must not lie below minus this margin against the control arm."""
    holdout_least: float = Field(default=0.0, ge=-1.0, le=1.0)
    """On the holdout the candidate must not be worse than the parent, and the estimate must reach
    this. That is no proof of a gain there: the read's interval says what it could have shown."""
    holdout_reads: Count = 5
    """Reads a holdout version allows, fixed by its first read; each is made at level
    1 - 0.05 / reads."""


class HoldoutRead(Record):
    """One counted look at the holdout: all that ever leaves it."""

    cycle_id: str
    holdout_version: str
    purpose: str
    number: Count
    """1 for the first read of this holdout version."""
    allowed: Count
    candidate: str
    parent: str
    tasks: Count
    estimate: float | None
    """Rounded to a step of 1/sqrt(tasks)."""
    lower: float | None
    upper: float | None
    level: Probability
    effect: Effect

    @computed_field  # type: ignore[prop-decorator]
    @property
    def read_id(self) -> str:
        """One a cycle and candidate."""
        return content_id("read", self.cycle_id, self.candidate)


class Promotion(Record):
    """The next cycle's parent, and why."""

    cycle_id: str
    decision: Decision
    candidate: str | None
    next_parent: str
    reason: str
    rule: PromotionRule
    read_id: str | None
