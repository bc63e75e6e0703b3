"""The one act: run a policy on a task in a fresh sandbox, then grade what it left behind.

Screening, probing, collecting and evaluating are this act with another policy and purpose. What
the policy caused is a failure and is graded on what was left; what it can't have caused is an
infrastructure status and is never graded.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from time import perf_counter

from flywheel.act import Rollout, act
from flywheel.errors import PolicyError, SandboxError
from flywheel.grade import BOOT_SECONDS, grade_artifacts, ungraded
from flywheel.policy import Policy
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import OpenSandbox, Sandbox, spec_for
from flywheel.tools import programs_for
from flywheel.tools.host import HostTool, open_host_tool
from flywheel.tools.user import ScriptedUserTool
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
)
from schemas.task import Brief, ScriptedUser, TaskManifest
from schemas.tool import ToolHome

HARNESS_VERSION = "harness@2"
POLICY_CAN_CAUSE = {
    InfraStage.MEMORY: Termination.MEMORY_LIMIT,
    InfraStage.DEADLINE: Termination.TIME_LIMIT,
}
"""Ends of a sandbox, while a call of the agent ran in it, that are the agent's failure."""


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
    rollout = run_policy(task.brief, policy, open_sandbox, setting, key, task.sealed.user)
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
    brief: Brief,
    policy: Policy,
    open_sandbox: OpenSandbox,
    setting: Setting,
    key: AttemptKey,
    user: ScriptedUser | None,
) -> Rollout:
    """Run the agent's part in a fresh sandbox that holds the brief's files and tools only.

    The user, if there is one, answers from outside it.
    """
    rollout, began = Rollout(), perf_counter()
    try:
        with _agent_sandbox(brief, open_sandbox, setting, key) as sandbox, ExitStack() as opened:
            rollout.seconds["boot"] = perf_counter() - began
            host = open_host_tools(brief, user, opened)
            act(brief, policy, sandbox, setting, key, rollout, host)
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
    user = task.sealed.user
    return run_policy(task.brief, control, open_sandbox, setting, key, user).infra is None


def open_host_tools(
    brief: Brief, user: ScriptedUser | None, opened: ExitStack
) -> dict[str, HostTool]:
    """Open the tools that are answered outside the sandbox, for one attempt: name → tool."""
    outside = [tool for tool in brief.tools if tool.home is ToolHome.HOST]
    return {
        tool.name: ScriptedUserTool(user)
        if tool.program == "user" and user is not None
        else opened.enter_context(open_host_tool(tool.program))
        for tool in outside
    }


def _agent_sandbox(
    brief: Brief, open_sandbox: OpenSandbox, setting: Setting, key: AttemptKey
) -> AbstractContextManager[Sandbox]:
    deadline = BOOT_SECONDS + setting.budget.seconds
    programs = programs_for(brief.tools)
    return open_sandbox(spec_for(brief.environment, programs, deadline, labels_of(key)))


def labels_of(key: AttemptKey) -> dict[str, str]:
    """Return what a sandbox of this attempt is labelled with."""
    return {"run": key.run_id, "attempt": key.attempt_id}


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
