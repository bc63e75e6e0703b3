"""Both sides of dispatch: what was drawn and why, and what was accepted."""

from enum import StrEnum

from pydantic import computed_field

from schemas.base import Count, Name, Probability, Record, content_id


class Arm(StrEnum):
    """One side of the nightly experiment."""

    OLD_UNIFORM = "old-uniform"
    """Control: the pool without this cycle's proposals, drawn uniformly."""
    NEW_UNIFORM = "new-uniform"
    """The pool with this cycle's proposals, drawn uniformly."""
    NEW_CURRICULUM = "new-curriculum"
    """The pool with this cycle's proposals, drawn by the curriculum."""


class DrawReason(StrEnum):
    """Which part of the sampler chose a task."""

    UNIFORM = "uniform"
    LEARNING = "learning"
    """Expected learning signal, p(1-p) under the posterior."""
    EXPLORATION = "exploration"
    """The posterior is wide."""
    REHEARSAL = "rehearsal"
    """Mastered: kept so that it stays so."""


class Draw(Record):
    """One attempt dispatched to one task, stored before any outcome exists."""

    cycle_id: str
    arm: Arm
    slot: Count
    task_id: str
    version_id: str
    family: Name
    probability: Probability
    """Inclusion probability of this task in one arm's draw (its expected count if above one
    is cut to 1)."""
    reason: DrawReason

    @computed_field  # type: ignore[prop-decorator]
    @property
    def draw_id(self) -> str:
        """One id a cycle, arm and slot."""
        return content_id("draw", self.cycle_id, self.arm, self.slot)


class AcceptReason(StrEnum):
    """Why a dispatched attempt may, or may not, be used."""

    GRADED = "graded"
    INFRASTRUCTURE = "infrastructure"
    UNGRADED = "ungraded"
    NOT_RETURNED = "not-returned"


class Acceptance(Record):
    """What came back for one draw."""

    draw_id: str
    cycle_id: str
    arm: Arm
    attempt_id: str | None
    accepted: bool
    reason: AcceptReason
