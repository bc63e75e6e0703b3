"""Tasks, settings and attempts."""

from typing import Any

from schemas.attempt import (
    Attempt,
    AttemptKey,
    CheckResult,
    Grade,
    InfraStage,
    InfraStatus,
    Purpose,
    Sampling,
    Setting,
    Termination,
    Trajectory,
    Turn,
    TurnStatus,
    Verdict,
)
from schemas.file import File
from schemas.task import (
    Brief,
    Budget,
    Environment,
    Grader,
    Mutant,
    MutantKind,
    Sealed,
    Source,
    SourceKind,
    TaskManifest,
)
from schemas.tool import SUBMIT, ToolCall, ToolSpec

START = 1_700_000_000.0
"""When test attempts start, in seconds since the epoch."""


def make_manifest(
    seed: int = 0,
    *,
    family: str = "orders",
    rules: tuple[str, ...] = ("dedup-last",),
    goal: str | None = None,
    source: Source | None = None,
) -> TaskManifest:
    """A task whose content follows from `seed`; `goal` alone makes a paraphrase."""
    operands = (f"orders-{seed}.csv", "total.txt")
    right = ToolCall(tool="sum", arguments={"file": operands[0], "to": operands[1]})
    wrong = ToolCall(tool="sum", arguments={"file": operands[0], "to": "nowhere.txt"})
    return TaskManifest(
        family=family,
        family_version="1",
        rules=rules,
        seed=seed,
        operands=operands,
        brief=Brief(
            goal=goal or f"Write the total of `{operands[0]}` to `total.txt`.",
            environment=Environment(files=(File(path=operands[0], content=f"id,n\n1,{seed}\n"),)),
            tools=(ToolSpec(name="sum", description="Add up a column.", program="sums"),),
            artifacts=("total.txt",),
            budget=Budget(steps=4, seconds=10.0),
        ),
        sealed=Sealed(
            grader=Grader(
                program="same-text",
                version="1",
                checks=("total",),
                expected=(File(path="total.txt", content=f"{seed}\n"),),
            ),
            reference=(right,),
            mutants=(
                Mutant(name="m1", kind=MutantKind.RULE_LEFT_OUT, rule=rules[0], script=(wrong,)),
            ),
        ),
        features=None,
        source=source or Source(kind=SourceKind.SEED, uri="family:orders", licence="Apache-2.0"),
    )


def make_setting(
    version_id: str = "tv-0", policy_version: str = "policy-0", **changes: Any
) -> Setting:
    """What an attempt of `policy_version` at `version_id` is made under."""
    fields: dict[str, Any] = {
        "version_id": version_id,
        "policy_version": policy_version,
        "harness_version": "1",
        "grader_version": "1",
        "environment_digest": "bubblewrap-1",
        "budget": Budget(steps=4, seconds=10.0),
        "sampling": Sampling(),
    }
    return Setting(**{**fields, **changes})


def make_turn(tool: str = "sum", *, status: TurnStatus = TurnStatus.OK, **changes: Any) -> Turn:
    """One call of `tool` with its observation."""
    fields: dict[str, Any] = {
        "call": ToolCall(tool=tool),
        "raw": f'{{"tool": "{tool}"}}',
        "status": status,
        "observation": "done",
        "exit_code": 0,
        "seconds": 0.1,
        "policy_version": "policy-0",
    }
    return Turn(**{**fields, **changes})


def make_trajectory() -> Trajectory:
    """Two turns (a call and the submission) and one artifact."""
    submit = make_turn("submit", call=SUBMIT, status=TurnStatus.SUBMITTED, exit_code=None)
    artifact = File(path="total.txt", content="1\n")
    return Trajectory(turns=(make_turn(), submit), artifacts=(artifact,))


def make_infra(stage: InfraStage = InfraStage.BOOT, code: str = "timeout") -> InfraStatus:
    """An infrastructure fault that may be tried again."""
    return InfraStatus(stage=stage, code=code, evidence="no answer in 5 s", retryable=True)


def make_grade(passed: bool | None) -> Grade:
    """A one-check grade; None: ungraded."""
    if passed is None:
        return Grade(verdict=Verdict.UNGRADED, grader_version="1")
    verdict = Verdict.PASSED if passed else Verdict.FAILED
    check = CheckResult(name="total", passed=passed, evidence="compared total.txt")
    return Grade(verdict=verdict, checks=(check,), grader_version="1")


def make_attempt(
    index: int = 0,
    *,
    passed: bool | None = True,
    infra: InfraStatus | None = None,
    task: TaskManifest | None = None,
    run_id: str = "cycle-0001",
    purpose: Purpose = Purpose.COLLECT,
    arm: str = "none",
    policy_version: str = "policy-0",
    try_number: int = 0,
    **changes: Any,
) -> Attempt:
    """An attempt at `task`; an infrastructure fault leaves it ungraded, whatever `passed` says."""
    task = task or make_manifest()
    fields: dict[str, Any] = {
        "key": AttemptKey(
            run_id=run_id,
            purpose=purpose,
            arm=arm,
            task_id=task.task_id,
            version_id=task.version_id,
            setting_id=make_setting(task.version_id, policy_version).setting_id,
            index=index,
            try_number=try_number,
        ),
        "policy_version": policy_version,
        "family": task.family,
        "rules": task.rules,
        "termination": Termination.INFRASTRUCTURE if infra else Termination.SUBMITTED,
        "infra": infra,
        "grade": make_grade(None if infra else passed),
        "trajectory": make_trajectory(),
        "seconds": {"boot": 0.25, "act": 0.5, "tools": 1.0, "grade": 0.25},
        "completion_tokens": 12,
        "cost": 0.0,
        "started_at": START,
    }
    return Attempt(**{**fields, **changes})
