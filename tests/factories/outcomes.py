"""What is made of tasks and attempts: receipts, splits, draws, failures, training rows."""

from typing import Any

from schemas.attempt import Attempt
from schemas.base import content_id
from schemas.curriculum import Acceptance, AcceptReason, Arm, Draw, DrawReason
from schemas.difficulty import Bucket, Posterior
from schemas.failure import Failure, FailureLayer
from schemas.hypothesis import DataChange, Hypothesis, Prediction
from schemas.lineage import Split, SplitAssignment
from schemas.screening import CheckKind, ScreenCheck, ScreenReport, ScreenVerdict, Trust
from schemas.task import TaskManifest
from schemas.training import Provenance, Rejected, RejectReason, SftExample
from tests.factories.attempts import make_attempt, make_manifest


def make_screen_report(
    task: TaskManifest | None = None,
    *,
    verdict: ScreenVerdict = ScreenVerdict.ACCEPTED,
    reason: str = "accepted",
    **changes: Any,
) -> ScreenReport:
    """A receipt for `task` with one mutant, killed where it was accepted."""
    task = task or make_manifest()
    accepted = verdict is ScreenVerdict.ACCEPTED
    fields: dict[str, Any] = {
        "version_id": task.version_id,
        "task_id": task.task_id,
        "environment_digest": "bubblewrap-1",
        "harness_version": "1",
        "grader_version": "1",
        "checks": (ScreenCheck(kind=CheckKind.MUTANTS_FAIL, passed=accepted, evidence="ran"),),
        "mutants": 1,
        "mutants_killed": int(accepted),
        "kill_lower": 0.025 if accepted else 0.0,
        "kill_upper": 1.0 if accepted else 0.975,
        "survivors": () if accepted else ("m1",),
        "unmeasured": (),
        "references": 3,
        "references_passed": 3,
        "boots": 2,
        "verdict": verdict,
        "reason": reason,
        "trust": Trust.VERIFIED,
        "seconds": 2.5,
    }
    return ScreenReport(**{**fields, **changes})


def make_assignment(
    task: TaskManifest | None = None, *, split: Split = Split.TRAIN, **changes: Any
) -> SplitAssignment:
    """The event that puts `task` into `split`."""
    task = task or make_manifest()
    fields: dict[str, Any] = {
        "cycle_id": "cycle-0001",
        "task_id": task.task_id,
        "version_id": task.version_id,
        "component": task.task_id,
        "split": split,
        "admitted": True,
        "reason": "assigned",
    }
    return SplitAssignment(**{**fields, **changes})


def make_posterior(
    setting_id: str = "set-0", *, passed: int = 1, graded: int = 4, **changes: Any
) -> Posterior:
    """A uniform prior updated with `passed` of `graded`; its quantiles are not computed."""
    fields: dict[str, Any] = {
        "setting_id": setting_id,
        "task_id": "task-0",
        "version_id": "tv-0",
        "policy_version": "policy-0",
        "family": "orders",
        "prior_alpha": 1.0,
        "prior_beta": 1.0,
        "passed": passed,
        "graded": graded,
        "ungraded": 0,
        "attempts_digest": content_id("set-of", setting_id, passed, graded),
        "mean": (1 + passed) / (2 + graded),
        "lower": 0.0,
        "upper": 1.0,
        "p_low": 0.1,
        "p_high": 0.1,
        "bucket": Bucket.UNDERSAMPLED,
    }
    return Posterior(**{**fields, **changes})


def make_draw(slot: int = 0, *, arm: Arm = Arm.NEW_UNIFORM, **changes: Any) -> Draw:
    """One dispatched attempt."""
    fields: dict[str, Any] = {
        "cycle_id": "cycle-0001",
        "arm": arm,
        "slot": slot,
        "task_id": "task-0",
        "version_id": "tv-0",
        "family": "orders",
        "probability": 0.5,
        "reason": DrawReason.UNIFORM,
    }
    return Draw(**{**fields, **changes})


def make_acceptance(draw: Draw, attempt: Attempt | None) -> Acceptance:
    """What came back for `draw`; None: nothing did."""
    reason = AcceptReason.NOT_RETURNED
    if attempt is not None and attempt.infra is not None:
        reason = AcceptReason.INFRASTRUCTURE
    elif attempt is not None:
        reason = AcceptReason.UNGRADED if attempt.reward is None else AcceptReason.GRADED
    return Acceptance(
        draw_id=draw.draw_id,
        cycle_id=draw.cycle_id,
        arm=draw.arm,
        attempt_id=attempt.attempt_id if attempt else None,
        accepted=reason is AcceptReason.GRADED,
        reason=reason,
    )


def make_failure(
    attempt: Attempt | None = None,
    *,
    layer: FailureLayer = FailureLayer.CAPABILITY,
    code: str = "wrong-value",
    **changes: Any,
) -> Failure:
    """What triage says of `attempt`."""
    attempt = attempt or make_attempt(passed=False)
    fields: dict[str, Any] = {
        "attempt_id": attempt.attempt_id,
        "cycle_id": attempt.key.run_id,
        "task_id": attempt.key.task_id,
        "family": attempt.family,
        "rules": attempt.rules,
        "layer": layer,
        "code": code,
        "rule": "failed-check@1",
        "evidence": "total: compared total.txt",
        "digest": "sum submit total",
    }
    return Failure(**{**fields, **changes})


def make_provenance(attempt: Attempt | None = None, **changes: Any) -> Provenance:
    """Where a training row made of `attempt` comes from."""
    attempt = attempt or make_attempt()
    fields: dict[str, Any] = {
        "attempt_id": attempt.attempt_id,
        "task_id": attempt.key.task_id,
        "version_id": attempt.key.version_id,
        "family": attempt.family,
        "rules": attempt.rules,
        "source": "family:orders",
        "licence": "Apache-2.0",
        "split": Split.TRAIN,
        "fingerprint": "cell-0",
        "teacher": attempt.policy_version,
        "grader_version": attempt.grade.grader_version,
        "instrument": None,
        "simulated": (),
        "trust": "verified",
        "filter": "sft@2",
    }
    return Provenance(**{**fields, **changes})


def make_sft(attempt: Attempt | None = None, *, arm: str = "new-uniform") -> SftExample:
    """A demonstration made of `attempt`."""
    attempt = attempt or make_attempt()
    return SftExample(
        cycle_id=attempt.key.run_id,
        arm=arm,
        goal=make_manifest().brief.goal,
        tools=make_manifest().brief.tools,
        turns=attempt.trajectory.turns,
        provenance=make_provenance(attempt),
    )


def make_rejected(
    attempt_id: str = "att-0", *, reason: RejectReason = RejectReason.NOT_PASSED, **changes: Any
) -> Rejected:
    """A refused training row."""
    fields: dict[str, Any] = {
        "cycle_id": "cycle-0001",
        "arm": "new-uniform",
        "attempt_id": attempt_id,
        "use": "sft",
        "reason": reason,
    }
    return Rejected(**{**fields, **changes})


def make_hypothesis(cluster_id: str = "clu-0", **changes: Any) -> Hypothesis:
    """A claim about one rule, made to explain `cluster_id`."""
    fields: dict[str, Any] = {
        "cycle_id": "cycle-0001",
        "cluster_id": cluster_id,
        "claim": "Keeps the first duplicate.",
        "change": DataChange(family="orders", rules=("dedup-last",)),
        "prediction": Prediction(
            slice="rule:dedup-last", treatment="new-uniform", control="old-uniform", at_least=0.2
        ),
        "refuted_if": "the interval lies below 0.2",
    }
    return Hypothesis(**{**fields, **changes})
