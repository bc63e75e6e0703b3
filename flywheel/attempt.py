"""The one act: run a policy on a task in a fresh sandbox, then grade what it left behind.

Screening, probing, collecting and evaluating are this act with another policy and purpose. What
the policy caused is a failure and is graded on what was left; what it can't have caused is an
infrastructure status and is never graded.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter

from flywheel.errors import PolicyError, SandboxError
from flywheel.grade import BOOT_SECONDS, grade_artifacts, ungraded
from flywheel.policy import Action, Policy
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import ArtifactRefused, ExecResult, OpenSandbox, Sandbox, SandboxSpec
from flywheel.tools import command, programs_for
from schemas.attempt import (
    Attempt,
    AttemptKey,
    Grade,
    InfraStage,
    InfraStatus,
    Sampling,
    Setting,
    Termination,
    Trajectory,
    Turn,
    TurnStatus,
)
from schemas.task import Brief, File, TaskManifest, ToolCall

HARNESS_VERSION = "harness@1"
MAX_REPAIRS = 2
"""Malformed or forbidden calls that a policy may follow by a better one."""
POLICY_CAN_CAUSE = {
    InfraStage.MEMORY: Termination.MEMORY_LIMIT,
    InfraStage.DEADLINE: Termination.TIME_LIMIT,
}
"""Ends of a sandbox, while a call of the agent ran in it, that are the agent's failure."""


@dataclass
class Rollout:
    """The agent's part of an attempt, as it grows."""

    turns: list[Turn] = field(default_factory=list)
    artifacts: tuple[File, ...] = ()
    missing: tuple[str, ...] = ()
    termination: Termination = Termination.STEP_LIMIT
    infra: InfraStatus | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {"boot": 0.0, "act": 0.0})
    tokens: int = 0
    calling: bool = False
    """A tool call is under way: a sandbox that dies now died under the agent's hands."""


def attempt(
    task: TaskManifest,
    policy: Policy,
    open_sandbox: OpenSandbox,
    setting: Setting,
    key: AttemptKey,
    clock: Callable[[], float],
    *,
    died_before: bool = False,
) -> Attempt:
    """Run `policy` on `task` once and grade it in a second sandbox.

    Args:
        task: what to do; the agent's sandbox is given its brief only.
        policy: who acts.
        open_sandbox: starts a fresh sandbox for each half.
        setting: budget and sampling in force; part of the attempt's identity.
        key: identity; a rerun with the same key makes the same choices.
        clock: seconds since the epoch.
        died_before: the try before this one ended with a sandbox that died under a call. If this
            one does too, and the reference survives, the attempt did it.

    Returns:
        The attempt. No exception escapes for anything that the policy, the sandbox, the model
        or the grader did: all of that is in the record.
    """
    started_at = clock()
    rollout = run_policy(task.brief, policy, open_sandbox, setting, key)
    if died_before and died_under_a_call(rollout) and _reference_survives(task, open_sandbox, key):
        rollout.termination, rollout.infra = Termination.SANDBOX_KILLED, None
    began = perf_counter()
    grade, infra = ungraded(task.sealed.grader), rollout.infra
    if infra is None:
        grade, infra = grade_artifacts(task, rollout.artifacts, open_sandbox, labels_of(key))
    rollout.seconds["grade"] = perf_counter() - began
    return record(task, policy.version, key, rollout, grade, infra, started_at)


def record(
    task: TaskManifest,
    policy_version: str,
    key: AttemptKey,
    rollout: Rollout,
    grade: Grade,
    infra: InfraStatus | None,
    started_at: float,
) -> Attempt:
    """Freeze a rollout and its grade into an attempt."""
    return Attempt(
        key=key,
        policy_version=policy_version,
        family=task.family,
        rules=task.rules,
        termination=rollout.termination,
        infra=infra,
        grade=grade,
        trajectory=Trajectory(
            turns=tuple(rollout.turns), artifacts=rollout.artifacts, missing=rollout.missing
        ),
        seconds=rollout.seconds,
        completion_tokens=rollout.tokens,
        cost=0.0,
        started_at=started_at,
    )


def run_policy(
    brief: Brief, policy: Policy, open_sandbox: OpenSandbox, setting: Setting, key: AttemptKey
) -> Rollout:
    """Run the agent's part in a fresh sandbox that holds the brief's files and tools only."""
    rollout, began = Rollout(), perf_counter()
    try:
        with _agent_sandbox(brief, open_sandbox, setting, key) as sandbox:
            rollout.seconds["boot"] = perf_counter() - began
            act(brief, policy, sandbox, setting, key, rollout)
    except SandboxError as error:
        by_policy = POLICY_CAN_CAUSE.get(error.status.stage) if rollout.calling else None
        rollout.termination = by_policy or Termination.INFRASTRUCTURE
        rollout.infra = None if by_policy else error.status
    except PolicyError as error:
        rollout.termination, rollout.infra = Termination.INFRASTRUCTURE, error.status
    return rollout


def died_under_a_call(rollout: Rollout) -> bool:
    """Tell whether the sandbox was lost while one of the policy's calls ran in it."""
    return rollout.calling and rollout.infra is not None and rollout.infra.stage is InfraStage.TOOL


def _reference_survives(task: TaskManifest, open_sandbox: OpenSandbox, key: AttemptKey) -> bool:
    """Tell whether sandboxes work in this window for a policy that is known to be harmless."""
    control = ScriptedPolicy("reference", task.sealed.reference)
    setting = make_setting(task, control.version, "control", Sampling(temperature=0.0))
    return run_policy(task.brief, control, open_sandbox, setting, key).infra is None


def _agent_sandbox(
    brief: Brief, open_sandbox: OpenSandbox, setting: Setting, key: AttemptKey
) -> AbstractContextManager[Sandbox]:
    return open_sandbox(
        SandboxSpec(
            programs=programs_for(brief.tools),
            deadline=BOOT_SECONDS + setting.budget.seconds,
            labels=labels_of(key),
            image=brief.environment.image,
        )
    )


def labels_of(key: AttemptKey) -> dict[str, str]:
    """Return what a sandbox of this attempt is labelled with."""
    return {"run": key.run_id, "attempt": key.attempt_id}


def act(
    brief: Brief,
    policy: Policy,
    sandbox: Sandbox,
    setting: Setting,
    key: AttemptKey,
    rollout: Rollout,
    folder: str = ".",
) -> None:
    """Let the policy act in `folder` of an open sandbox until it submits or a limit ends it.

    Fills `rollout` as it goes, so that a sandbox which dies leaves the turns made so far.
    """
    sandbox.put(brief.environment.files, folder)
    rollout.termination = _turns(brief, policy, sandbox, setting, key, rollout, folder)
    _collect_artifacts(brief, sandbox, folder, rollout)
    rollout.seconds["tools"] = sum(turn.seconds for turn in rollout.turns)


def _turns(
    brief: Brief,
    policy: Policy,
    sandbox: Sandbox,
    setting: Setting,
    key: AttemptKey,
    rollout: Rollout,
    folder: str,
) -> Termination:
    """Take turns; return how it ended."""
    budget, began, repairs = setting.budget, perf_counter(), 0
    while len(rollout.turns) < budget.steps:
        asked = perf_counter()
        action = policy.act(brief, tuple(rollout.turns), setting.sampling, key.seed)
        rollout.seconds["act"] += perf_counter() - asked
        rollout.tokens += len(action.tokens.completion) if action.tokens else 0
        left = budget.seconds - (perf_counter() - began)
        if left <= 0:
            return Termination.TIME_LIMIT
        turn = _take(brief, action, sandbox, policy.version, left, folder, rollout)
        rollout.turns.append(turn)
        if turn.status is TurnStatus.SUBMITTED:
            return Termination.SUBMITTED
        if turn.status is TurnStatus.TIMEOUT:
            return Termination.TIME_LIMIT
        if rollout.tokens > budget.tokens:
            return Termination.TOKEN_LIMIT
        repairs += turn.status in (TurnStatus.MALFORMED, TurnStatus.FORBIDDEN)
        if repairs > MAX_REPAIRS:
            return Termination.PROTOCOL
    return Termination.STEP_LIMIT


def _take(
    brief: Brief,
    action: Action,
    sandbox: Sandbox,
    version: str,
    left: float,
    folder: str,
    rollout: Rollout,
) -> Turn:
    """Carry out one action."""
    status, complaint = _check_call(brief, action.call)
    result = ExecResult(exit_code=0, output=b"", dropped=0, seconds=0.0, timed_out=False)
    if status is TurnStatus.OK and action.call is not None:
        rollout.calling = True
        result = sandbox.call(command(action.call), left, folder)
        rollout.calling = False
        complaint = result.output.decode("utf-8", errors="replace").strip()
        status = TurnStatus.OK if result.exit_code == 0 else TurnStatus.TOOL_ERROR
    return Turn(
        call=action.call,
        raw=action.raw,
        status=TurnStatus.TIMEOUT if result.timed_out else status,
        observation=complaint,
        dropped_bytes=result.dropped,
        exit_code=result.exit_code,
        seconds=result.seconds,
        policy_version=version,
        tokens=action.tokens,
    )


def _check_call(brief: Brief, call: ToolCall | None) -> tuple[TurnStatus, str]:
    """Check a call against the task's tools; return what to tell the policy where it is wrong."""
    if call is None:
        return TurnStatus.MALFORMED, "no call could be read"
    tools = {tool.name: tool for tool in brief.tools}
    if call.tool not in tools:
        return TurnStatus.FORBIDDEN, f"no tool `{call.tool}`; there are: {', '.join(tools)}"
    if call.tool == "submit":
        return TurnStatus.SUBMITTED, ""
    parameters = {parameter.name: parameter for parameter in tools[call.tool].parameters}
    if set(call.arguments) != set(parameters):
        return TurnStatus.MALFORMED, f"{call.tool} takes: {', '.join(parameters) or 'nothing'}"
    for name, value in call.arguments.items():
        if parameters[name].choices and value not in parameters[name].choices:
            choices = ", ".join(parameters[name].choices)
            return TurnStatus.MALFORMED, f"{call.tool} --{name} is one of: {choices}"
    return TurnStatus.OK, ""


def _collect_artifacts(brief: Brief, sandbox: Sandbox, folder: str, rollout: Rollout) -> None:
    """Take out the declared artifacts, and say why the others are missing."""
    artifacts: list[File] = []
    missing: list[str] = []
    for path in brief.artifacts:
        try:
            artifacts.append(File.of(path, sandbox.get(f"{folder}/{path}")))
        except ArtifactRefused as refusal:
            missing.append(f"{path}: {refusal}")
    rollout.artifacts, rollout.missing = tuple(artifacts), tuple(missing)


def make_setting(
    task: TaskManifest, policy_version: str, environment_digest: str, sampling: Sampling
) -> Setting:
    """Return the setting of an attempt at `task` under these conditions."""
    return Setting(
        version_id=task.version_id,
        policy_version=policy_version,
        harness_version=HARNESS_VERSION,
        grader_version=task.sealed.grader.version,
        environment_digest=environment_digest,
        budget=task.brief.budget,
        sampling=sampling,
    )
