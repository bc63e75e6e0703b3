"""An attempt: one try of one policy at one task, with what happened and what it was worth."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, computed_field, model_validator

from schemas.base import Count, Name, Record, Seconds, content_id, seed_from
from schemas.file import File
from schemas.task import Budget
from schemas.tool import ToolCall


class Purpose(StrEnum):
    """Why an attempt was made."""

    SCREEN = "screen"
    PROBE = "probe"
    COLLECT = "collect"
    EVALUATE = "evaluate"
    HOLDOUT = "holdout"


class Sampling(Record):
    """How a policy draws its tokens."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    """0: greedy."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0


class Setting(Record):
    """What a difficulty is conditional on. Attempts of two settings are never pooled."""

    version_id: str
    policy_version: str
    harness_version: str
    grader_version: str
    environment_digest: str
    """What the sandbox is made of: backend, image or interpreter, tools."""
    budget: Budget
    sampling: Sampling

    @computed_field  # type: ignore[prop-decorator]
    @property
    def setting_id(self) -> str:
        """Identity by content."""
        return content_id("set", self)


class Termination(StrEnum):
    """How the agent's part ended. Every one but INFRASTRUCTURE is the policy's doing."""

    SUBMITTED = "submitted"
    STEP_LIMIT = "step-limit"
    TOKEN_LIMIT = "token-limit"
    TIME_LIMIT = "time-limit"
    COST_LIMIT = "cost-limit"
    CONTEXT_LIMIT = "context-limit"
    MEMORY_LIMIT = "memory-limit"
    SANDBOX_KILLED = "sandbox-killed"
    """The sandbox died under this attempt in every try: the attempt did it."""
    PROTOCOL = "protocol"
    """Malformed or forbidden calls, beyond the repairs allowed."""
    INFRASTRUCTURE = "infrastructure"
    """Cut off by a fault that the policy cannot have caused."""


LIMITS = frozenset(
    {
        Termination.STEP_LIMIT,
        Termination.TOKEN_LIMIT,
        Termination.TIME_LIMIT,
        Termination.COST_LIMIT,
        Termination.CONTEXT_LIMIT,
        Termination.MEMORY_LIMIT,
        Termination.SANDBOX_KILLED,
    }
)
"""Ends at a limit: failures at that budget, on a line of their own."""


class InfraStage(StrEnum):
    """The boundary that an infrastructure fault crossed."""

    IMAGE = "image"
    BOOT = "boot"
    TOOL = "tool"
    MODEL = "model"
    GRADER = "grader"
    ENGINE = "engine"
    DISK = "disk"
    MEMORY = "memory"
    DEADLINE = "deadline"


class InfraStatus(Record):
    """An infrastructure fault, kept with its evidence."""

    stage: InfraStage
    code: Name
    evidence: str
    retryable: bool


class TurnStatus(StrEnum):
    """What became of one turn's call."""

    OK = "ok"
    TOOL_ERROR = "tool-error"
    """The tool ran and exited non-zero: its message is the observation."""
    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    FORBIDDEN = "forbidden"
    SUBMITTED = "submitted"


class Tokens(Record):
    """What the sampler reported for one turn; never re-made from text."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Of each completion token, under the distribution that it was drawn from."""

    @model_validator(mode="after")
    def _aligned(self) -> "Tokens":
        if len(self.completion) != len(self.logprobs):
            raise ValueError("completion and logprobs must have the same length")
        if any(value > 1e-6 for value in self.logprobs):
            raise ValueError("a log-probability is positive")
        return self


class Turn(Record):
    """One call and its observation: what the policy saw is what is stored."""

    call: ToolCall | None
    """None: nothing that could be read as a call."""
    raw: str
    """The policy's words."""
    status: TurnStatus
    observation: str
    dropped_bytes: Count = 0
    """Bytes of output that were cut from the middle of the observation."""
    exit_code: int | None = None
    seconds: Seconds = 0.0
    policy_version: str
    tokens: Tokens | None = None
    """None: the policy does not report tokens."""


class Trajectory(Record):
    """The turns and the artifacts, which are stored apart from the summary."""

    turns: tuple[Turn, ...]
    artifacts: tuple[File, ...]
    missing: tuple[str, ...] = ()
    """Declared artifacts that were absent or refused, with the reason: `path: reason`."""


class Verdict(StrEnum):
    """What the grader said."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"
    """No verdict exists: in no denominator, and its reward is NULL."""


class CheckResult(Record):
    """One check of the done-condition."""

    name: Name
    passed: bool
    evidence: str


class Grade(Record):
    """A verdict with its per-check results."""

    verdict: Verdict
    checks: tuple[CheckResult, ...] = ()
    evidence: str = ""
    grader_version: str

    @model_validator(mode="after")
    def _consistent(self) -> "Grade":
        if self.verdict is Verdict.UNGRADED:
            return self
        if not self.checks:
            raise ValueError("a verdict needs at least one check")
        if (self.verdict is Verdict.PASSED) != all(check.passed for check in self.checks):
            raise ValueError("the verdict contradicts the checks")
        return self


class AttemptKey(Record):
    """What makes an attempt that attempt: a rerun makes the same key and so the same id."""

    run_id: str
    """The cycle or ad-hoc run."""
    purpose: Purpose
    arm: Name
    """`none` outside an experiment."""
    task_id: str
    version_id: str
    setting_id: str
    index: Count
    """Which of several attempts at the same task under the same setting."""
    try_number: Count = 0
    """Counts infrastructure retries; each try is kept."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def attempt_id(self) -> str:
        """Identity by content."""
        return content_id("att", self)

    @property
    def seed(self) -> int:
        """Seed of the policy's randomness.

        Arms that are compared share it, so that they differ by their policy and not by luck.
        """
        arm = self.arm if self.purpose is Purpose.COLLECT else ""
        return seed_from(self.run_id, self.purpose, arm, self.version_id, self.index)


class Attempt(Record):
    """Rollout + grade + infrastructure status."""

    key: AttemptKey
    policy_version: str
    family: Name
    rules: tuple[Name, ...]
    termination: Termination
    infra: InfraStatus | None
    grade: Grade
    trajectory: Trajectory
    seconds: Mapping[str, Seconds]
    """Wall time by phase: boot (of the agent's sandbox), act (policy), tools, grade."""
    completion_tokens: Count
    cost: Seconds
    """US dollars."""
    started_at: float
    """Seconds since the epoch."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def attempt_id(self) -> str:
        """The key's id."""
        return self.key.attempt_id

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """The grade's verdict, ready for a column."""
        return self.grade.verdict

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reward(self) -> float | None:
        """1 or 0, and NULL unless graded."""
        if self.grade.verdict is Verdict.UNGRADED:
            return None
        return float(self.grade.verdict is Verdict.PASSED)

    @model_validator(mode="after")
    def _infrastructure_is_never_graded(self) -> "Attempt":
        if self.infra is not None and self.grade.verdict is not Verdict.UNGRADED:
            raise ValueError("an attempt with an infrastructure fault can't have a grade")
        if self.termination is Termination.INFRASTRUCTURE and self.infra is None:
            raise ValueError("termination 'infrastructure' needs an infra status")
        return self
