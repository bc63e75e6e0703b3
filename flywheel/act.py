"""Acting: a policy's turns in an open sandbox, until it submits or a limit ends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

from flywheel.policy import Action, Policy
from flywheel.sandbox import ArtifactRefused, ExecResult, Sandbox
from flywheel.tools import command
from flywheel.tools.host import HostTool
from schemas.attempt import (
    AttemptKey,
    InfraStatus,
    Setting,
    Termination,
    Turn,
    TurnStatus,
)
from schemas.file import File, is_folder
from schemas.task import Brief
from schemas.tool import ToolCall

MAX_REPAIRS = 2
"""Malformed or forbidden calls that a policy may follow by a better one."""


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


def act(
    brief: Brief,
    policy: Policy,
    sandbox: Sandbox,
    setting: Setting,
    key: AttemptKey,
    rollout: Rollout,
    host: Mapping[str, HostTool],
    folder: str = ".",
) -> None:
    """Let the policy act in `folder` of an open sandbox until it submits or a limit ends it.

    Fills `rollout` as it goes, so that a sandbox which dies leaves the turns made so far.
    """
    sandbox.put(brief.environment.files, folder)
    rollout.termination = _turns(brief, policy, sandbox, setting, key, rollout, host, folder)
    rollout.artifacts, rollout.missing = take_artifacts(brief, sandbox, folder)
    rollout.seconds["tools"] = sum(turn.seconds for turn in rollout.turns)


def _turns(
    brief: Brief,
    policy: Policy,
    sandbox: Sandbox,
    setting: Setting,
    key: AttemptKey,
    rollout: Rollout,
    host: Mapping[str, HostTool],
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
        turn = _take(brief, action, sandbox, policy.version, left, folder, rollout, host)
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
    host: Mapping[str, HostTool],
) -> Turn:
    """Carry out one action."""
    status, complaint = _check_call(brief, action.call)
    result = ExecResult(exit_code=0, output=b"", dropped=0, seconds=0.0, timed_out=False)
    if status is TurnStatus.OK and action.call is not None:
        if action.call.tool in host:
            result = _ask(host[action.call.tool], action.call, left)
        else:
            tool = next(tool for tool in brief.tools if tool.name == action.call.tool)
            rollout.calling = True
            result = sandbox.call(command(tool, action.call), left, folder)
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


def _ask(tool: HostTool, call: ToolCall, left: float) -> ExecResult:
    """Have a call answered outside the sandbox."""
    began = perf_counter()
    answer = tool.answer(call.arguments, left)
    return ExecResult(
        exit_code=2 if answer.failed else 0,
        output=answer.text.encode(),
        dropped=0,
        seconds=perf_counter() - began,
        timed_out=False,
    )


def take_artifacts(
    brief: Brief, sandbox: Sandbox, folder: str
) -> tuple[tuple[File, ...], tuple[str, ...]]:
    """Take out the declared artifacts; return them, and why others are missing."""
    artifacts: dict[str, File] = {}
    missing: list[str] = []
    for path in brief.artifacts:
        try:
            if is_folder(path):
                found = sandbox.tree(f"{folder}/{path}")
                prefix = path.removeprefix("./")
                missing += [f"{prefix}{refusal}" for refusal in found.refused]
                taken = [
                    File.model_validate({**dict(file), "path": prefix + file.path})
                    for file in found.files
                ]
            else:
                taken = [File.of(path, sandbox.get(f"{folder}/{path}"))]
            artifacts |= {file.path: file for file in taken}
        except ArtifactRefused as refusal:
            missing.append(f"{path}: {refusal}")
    return tuple(artifacts.values()), tuple(missing)
