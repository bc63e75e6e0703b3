"""Errors, named after the boundary that was crossed.

FlywheelError
├── ConfigError       a configuration, environment or command line that can't work
├── ManifestError     a task that can't be made or read
├── SandboxError      a sandbox that failed: stage, code, and whether to try again
├── PolicyError       a policy that could not answer: the model server's fault, not its answer
├── TrainingError     a policy update that did not complete
├── StoreError        a store that is locked, unknown or changed
└── SplitViolation    an evaluation task where only training tasks may be
    └── HoldoutViolation

A failed attempt is none of these: it is data (`Attempt`).
"""

from schemas.attempt import InfraStage, InfraStatus


class FlywheelError(Exception):
    """Base of all errors that the flywheel raises on purpose."""


class ConfigError(FlywheelError):
    """What was asked for can't work; the message says what to change."""


class ManifestError(FlywheelError):
    """A task can't be made or read; the message names the family or file and the field."""


class SandboxError(FlywheelError):
    """A sandbox crossed its boundary: never the policy's doing unless the caller says so."""

    def __init__(
        self, stage: InfraStage, code: str, evidence: str, *, retryable: bool = True
    ) -> None:
        super().__init__(f"{stage.value}/{code}: {evidence}")
        self.status = InfraStatus(stage=stage, code=code, evidence=evidence, retryable=retryable)


class PolicyError(FlywheelError):
    """A policy could not be asked."""

    def __init__(self, code: str, evidence: str, *, retryable: bool = True) -> None:
        super().__init__(f"model/{code}: {evidence}")
        self.status = InfraStatus(
            stage=InfraStage.MODEL, code=code, evidence=evidence, retryable=retryable
        )


class TrainingError(FlywheelError):
    """A policy update did not complete; the parent version is untouched."""


class StoreError(FlywheelError):
    """The store can't be used; the message says which file and why."""


class SplitViolation(FlywheelError):
    """An evaluation task, or a relative of one, reached generation, drawing or training."""


class HoldoutViolation(SplitViolation):
    """A holdout task, attempt or number left its file other than by a counted read."""
