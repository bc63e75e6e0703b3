"""Conversion: an arm's attempts go in, training rows come out, or refusals with a reason.

Each use has its own contract (`sft`, `preference`, `rl`), and each accounts for every attempt it
was given: as a row, or as one refusal. Only tasks of the train split may get here at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flywheel.errors import HoldoutViolation, ManifestError, SplitViolation
from schemas.attempt import Attempt, TurnStatus, Verdict
from schemas.failure import MODEL_LAYERS, Failure
from schemas.lineage import Split
from schemas.task import TaskManifest
from schemas.tool import ToolKind
from schemas.training import Provenance, Rejected, RejectReason

Use = Literal["sft", "preference", "rl"]

GOOD_TURNS = frozenset({TurnStatus.OK, TurnStatus.SUBMITTED})
"""Turns that may be shown as an example to follow."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What an arm's rows rest on."""

    cycle_id: str
    arm: str
    manifests: Mapping[str, TaskManifest]
    """By version_id."""
    splits: Mapping[str, Split]
    """By task_id, as assigned."""
    trust: Mapping[str, str]
    """version_id → tier of its accepted screening receipt, for receipts in force."""

    def manifest(self, attempt: Attempt) -> TaskManifest:
        """Return the attempt's task; raise SplitViolation unless it is a training task."""
        version_id = attempt.key.version_id
        if version_id not in self.manifests:
            raise ManifestError(f"manifests lacks {version_id}, which was attempted: pass it too")
        task = self.manifests[version_id]
        split = self.splits.get(task.task_id)
        if split is not Split.TRAIN:
            error = HoldoutViolation if split is Split.HOLDOUT else SplitViolation
            raise error(
                f"{attempt.attempt_id} at {task.task_id} (split: {split or 'none'}) reached "
                f"conversion for arm {self.arm}: pass attempts at training tasks only"
            )
        return task

    def provenance(self, attempt: Attempt, rule: str) -> Provenance:
        """Return where a row of `attempt` comes from, as let through by filter `rule`."""
        task = self.manifest(attempt)
        return Provenance(
            attempt_id=attempt.attempt_id,
            task_id=task.task_id,
            version_id=task.version_id,
            family=task.family,
            rules=task.rules,
            source=task.source.uri,
            licence=task.source.licence,
            split=self.splits[task.task_id],
            fingerprint=task.prompt_hash,
            teacher=attempt.policy_version,
            grader_version=attempt.grade.grader_version,
            instrument=_instrument(task),
            simulated=simulated_tools(task),
            trust=self.trust[task.version_id],
            filter=rule,
        )

    def reject(self, attempt: Attempt, use: Use, reason: RejectReason) -> Rejected:
        """Return the refusal of `attempt` for one use."""
        return Rejected(
            cycle_id=self.cycle_id,
            arm=self.arm,
            attempt_id=attempt.attempt_id,
            use=use,
            reason=reason,
        )

    def unusable(self, attempt: Attempt) -> RejectReason | None:
        """Return why no use may have `attempt`, else None; raise SplitViolation as `manifest`."""
        if self.manifest(attempt).version_id not in self.trust:
            return RejectReason.NOT_SCREENED
        return RejectReason.NOT_GRADED if attempt.verdict is Verdict.UNGRADED else None


def simulated_tools(task: TaskManifest) -> tuple[str, ...]:
    """Return the tools whose answers do not come from execution."""
    return tuple(tool.name for tool in task.brief.tools if tool.kind is ToolKind.SIMULATED)


def _instrument(task: TaskManifest) -> str | None:
    instrument = task.sealed.grader.instrument
    return f"{instrument.model}@{instrument.prompt_hash}" if instrument else None


def system_failure(attempt: Attempt, failures: Mapping[str, Failure]) -> bool:
    """Say whether a graded attempt failed for another reason than the model.

    `failures` (by attempt_id) holds at least every failed attempt; ValueError where one is absent.
    """
    if attempt.verdict is Verdict.PASSED:
        return False
    if attempt.attempt_id not in failures:
        raise ValueError(f"failures lacks {attempt.attempt_id}, which failed: triage it first")
    return failures[attempt.attempt_id].layer not in MODEL_LAYERS
