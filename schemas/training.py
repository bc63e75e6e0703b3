"""Training rows, each with the provenance to defend it, and refusals with a reason."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, computed_field, model_validator

from schemas.attempt import Sampling, Termination, Tokens, Turn
from schemas.base import Count, Name, Record, Seconds, content_id
from schemas.lineage import Split
from schemas.tool import ToolSpec


class Provenance(Record):
    """Where a row comes from and what it passed."""

    attempt_id: str
    task_id: str
    version_id: str
    family: Name
    rules: tuple[Name, ...]
    source: str
    licence: str
    split: Split
    fingerprint: str
    teacher: str
    """The policy version that acted: `reference@…` for a demonstration."""
    grader_version: str
    instrument: str | None
    """The model that graded it and its prompt, where the grader is a model."""
    simulated: tuple[Name, ...]
    """Simulated tools that it may call; on verified tasks, found to answer as the real ones do."""
    trust: str
    """The task's tier in screening."""
    filter: str
    """The version of the filter that let it through."""


class SftExample(Record):
    """A verified success as a demonstration."""

    cycle_id: str
    arm: Name
    goal: str
    tools: tuple[ToolSpec, ...]
    turns: tuple[Turn, ...]
    provenance: Provenance

    @computed_field  # type: ignore[prop-decorator]
    @property
    def row_id(self) -> str:
        """One row an arm and attempt."""
        return content_id("sft", self.cycle_id, self.arm, self.provenance.attempt_id)


class PreferencePair(Record):
    """Two attempts at the same task version under one setting, cut where they first differ."""

    cycle_id: str
    arm: Name
    goal: str
    tools: tuple[ToolSpec, ...]
    shared: tuple[Turn, ...]
    """The turns that both have in common."""
    chosen: Turn
    rejected: Turn
    chosen_provenance: Provenance
    rejected_provenance: Provenance

    @computed_field  # type: ignore[prop-decorator]
    @property
    def row_id(self) -> str:
        """One row a pair of attempts."""
        return content_id(
            "pref",
            self.cycle_id,
            self.arm,
            self.chosen_provenance.attempt_id,
            self.rejected_provenance.attempt_id,
        )


class RlTrajectory(Record):
    """An attempt with all that importance weighting needs."""

    cycle_id: str
    arm: Name
    segments: tuple[Tokens, ...]
    """One per turn: prompt ids, completion ids, behaviour log-probabilities."""
    policy_version: str
    sampling: Sampling
    termination: Termination
    truncated: bool
    """Cut by a limit rather than ended by the policy."""
    reward: Annotated[float, Field(ge=0, le=1)]
    group_id: str
    """Attempts at one task version under one setting."""
    group_dispatched: Count
    """The group's size when it was sent out, whatever came back."""
    group_graded: Count
    provenance: Provenance

    @computed_field  # type: ignore[prop-decorator]
    @property
    def row_id(self) -> str:
        """One row an arm and attempt."""
        return content_id("rl", self.cycle_id, self.arm, self.provenance.attempt_id)

    @model_validator(mode="after")
    def _has_actions(self) -> "RlTrajectory":
        if not any(segment.completion for segment in self.segments):
            raise ValueError("an RL trajectory needs at least one action token")
        return self


class RejectReason(StrEnum):
    """Why an attempt, or a pair, is no row of this kind."""

    NOT_GRADED = "not-graded"
    NOT_PASSED = "not-passed"
    NOT_TRAIN_SPLIT = "not-train-split"
    NOT_SCREENED = "not-screened"
    NOT_VERIFIED = "not-verified"
    """Screening could not run all of its list: no reward rests on such a grader."""
    NO_TOKENS = "no-tokens"
    SIMULATED_TOOL = "simulated-tool"
    HAS_TOOL_ERROR = "has-tool-error"
    """A demonstration must not teach a call that fails."""
    NO_COUNTERPART = "no-counterpart"
    """No attempt of the opposite verdict under the same setting."""
    IDENTICAL = "identical"
    GROUP_TOO_SMALL = "group-too-small"
    SYSTEM_FAILURE = "system-failure"
    """The failure is not the model's: never a negative example."""


class Rejected(Record):
    """A refusal, stored and counted like a row."""

    cycle_id: str
    arm: Name
    attempt_id: str
    use: Literal["sft", "preference", "rl"]
    reason: RejectReason

    @computed_field  # type: ignore[prop-decorator]
    @property
    def row_id(self) -> str:
        """One refusal an arm, attempt and use."""
        return content_id("rej", self.cycle_id, self.arm, self.attempt_id, self.use)


class PolicyVersion(Record):
    """A complete set of weights, and how it came to be."""

    kind: Name
    parent: str | None
    dataset_digest: str
    """Digest of the row ids trained on, in order."""
    rows: Count
    tokens: Count
    """Tokens that carried loss, over all steps."""
    seed: Count
    hyperparameters: Mapping[str, float]
    weights_digest: str
    metrics: Mapping[str, float]
    seconds: Seconds
    cost: Seconds = 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def version(self) -> str:
        """Identity by what went in: the same data, parent, seed and settings give the same."""
        return content_id(
            self.kind, self.parent, self.dataset_digest, self.seed, self.hyperparameters
        )


class ArmTraining(Record):
    """What one arm was trained on, and what came of it."""

    cycle_id: str
    arm: Name
    parent: str
    version: str
    own_rows: Count
    """The policy's own successes."""
    teacher_rows: Count
    """Demonstrations by a named teacher."""
    row_ids: tuple[str, ...]
    """In the order of training: an exported row leads to the weights that it moved."""
    rehearsal_ids: tuple[str, ...]
