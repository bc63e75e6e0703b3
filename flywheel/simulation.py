"""Fidelity of simulated tools: whole call sequences, on the simulation and on the real thing.

Single calls that agree say little about a tool with a state. So sequences run from a fresh state,
each on both sides, and agree only if every answer does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter

from scipy.special import betaincinv

from flywheel.errors import SandboxError
from flywheel.grade import BOOT_SECONDS
from flywheel.sandbox import OpenSandbox, Sandbox, SandboxSpec
from flywheel.sequences import left_out, sequences
from flywheel.tools import program_source
from flywheel.tools.host import Answer, HostTool
from flywheel.tools.user import USER, ScriptedUserTool
from schemas.attempt import InfraStage
from schemas.base import seed_from
from schemas.file import File
from schemas.screening import CheckKind, ScreenCheck
from schemas.task import ScriptedUser, TaskManifest
from schemas.tool import Script, ToolKind, ToolSpec

SECONDS = 60.0
"""For all sequences of one task."""
CALL_SECONDS = 5.0
HELPDESK = "helpdesk"

MakeTool = Callable[[], HostTool]
"""Makes a tool in its initial state."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A sequence that came out differently."""

    sequence: Script
    at: int
    """Position of the first call whose answers differ."""
    simulated: Answer
    real: Answer


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How far a simulated tool agrees with the real one."""

    sequences: int
    calls: int
    """Made on either side; a sequence ends where its answers differ."""
    divergences: tuple[Divergence, ...]

    @property
    def agreement(self) -> tuple[float, float]:
        """95 % interval of the share of sequences that agree (Clopper-Pearson 1934).

        Over sequences like these; (0, 1) where there were none.
        """
        n, differ = self.sequences, len(self.divergences)
        lower = 0.0 if differ == n else float(betaincinv(n - differ, differ + 1, 0.025))
        upper = 1.0 if differ == 0 else float(betaincinv(n - differ + 1, differ, 0.975))
        return lower, upper


@dataclass(frozen=True, slots=True)
class SandboxedTool:
    """A `HostTool` that is a subcommand of a program in an open sandbox; its state is a folder."""

    sandbox: Sandbox
    program: str
    command: str
    folder: str

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        """Run the command; exit code 2 is its refusal.

        Raises:
            SandboxError: the program broke or took too long, or its sandbox did.
        """
        options = [f"--{name}={value}" for name, value in arguments.items()]
        result = self.sandbox.call([self.program, self.command, *options], seconds, self.folder)
        text = result.output.decode("utf-8", errors="replace").removesuffix("\n")
        if result.timed_out or result.dropped or result.exit_code not in (0, 2):
            cause = "timed out" if result.timed_out else f"exit {result.exit_code}"
            evidence = f"{self.program} {self.command}: {cause}: {text[-200:]}"
            raise SandboxError(InfraStage.TOOL, "tool-broke", evidence)
        return Answer(text, failed=result.exit_code == 2)


def compare_tools(simulated: MakeTool, real: MakeTool, tried: Sequence[Script]) -> Fidelity:
    """Run each sequence on both tools, each in a fresh state, up to the first difference.

    Raises:
        SandboxError: a tool could not be reached, or broke.
    """
    divergences, calls = [], 0
    for sequence in tried:
        left, right = simulated(), real()
        for at, call in enumerate(sequence):
            calls += 1
            ours = left.answer(call.arguments, CALL_SECONDS)
            theirs = right.answer(call.arguments, CALL_SECONDS)
            if ours != theirs:
                divergences.append(Divergence(sequence, at, ours, theirs))
                break
    return Fidelity(len(tried), calls, tuple(divergences))


def check_simulation(
    task: TaskManifest,
    open_sandbox: OpenSandbox,
    simulate: Callable[[ScriptedUser], HostTool] = ScriptedUserTool,
) -> ScreenCheck:
    """Compare the task's simulated user with a help desk that runs in a sandbox.

    Args:
        task: its user is taken from the sealed part, the calls to try from tools and reference.
        open_sandbox: starts the help desk's sandbox, in which no agent ever is.
        simulate: makes the simulated user.

    Returns:
        A check of kind `simulation-faithful`: `passed` is None where a simulated tool has no real
        counterpart or the sandbox failed. A task without simulated tools passes.
    """
    began = perf_counter()
    passed, evidence = _compared(task, open_sandbox, simulate)
    return ScreenCheck(
        kind=CheckKind.SIMULATION_FAITHFUL,
        passed=passed,
        evidence=evidence,
        seconds=perf_counter() - began,
    )


def _compared(
    task: TaskManifest, open_sandbox: OpenSandbox, simulate: Callable[[ScriptedUser], HostTool]
) -> tuple[bool | None, str]:
    tools = [tool for tool in task.brief.tools if tool.kind is ToolKind.SIMULATED]
    lonely = [tool.name for tool in tools if tool.program != USER]
    user = task.sealed.user
    if not tools:
        return True, "no tool is simulated"
    if lonely:
        return None, f"no real counterpart of {', '.join(lonely)}"
    if user is None:
        return False, "sealed.user is empty: nobody answers"
    try:
        found = [_fidelity(task, user, tool, open_sandbox, simulate) for tool in tools]
    except SandboxError as error:
        return None, str(error)
    evidence = "; ".join(
        _said(fidelity) + left_out(tool, task.sealed.reference)
        for fidelity, tool in zip(found, tools, strict=True)
    )
    if not all(fidelity.sequences for fidelity in found):
        return None, f"a simulated tool has no call to try; {evidence}"
    return not any(f.divergences for f in found), evidence


def _fidelity(
    task: TaskManifest,
    user: ScriptedUser,
    tool: ToolSpec,
    open_sandbox: OpenSandbox,
    simulate: Callable[[ScriptedUser], HostTool],
) -> Fidelity:
    tried = sequences(tool, task.sealed.reference, seed_from(task.task_id, tool.name))
    knows = File(path=".helpdesk.json", content=json.dumps(user.model_dump(mode="json")))
    spec = SandboxSpec(
        programs={HELPDESK: program_source(HELPDESK)},
        deadline=BOOT_SECONDS + SECONDS,
        labels={"run": "simulation", "attempt": task.version_id},
    )
    with open_sandbox(spec) as sandbox:
        numbers = count()

        def real() -> HostTool:
            folder = f"run-{next(numbers)}"
            sandbox.put([knows], folder)
            return SandboxedTool(sandbox, HELPDESK, tool.name, folder)

        return compare_tools(lambda: simulate(user), real, tried)


def _said(fidelity: Fidelity) -> str:
    lower, upper = fidelity.agreement
    agree = fidelity.sequences - len(fidelity.divergences)
    text = f"{agree} of {fidelity.sequences} sequences agree ({lower:.3f} to {upper:.3f})"
    if not fidelity.divergences:
        return text
    first = min(fidelity.divergences, key=lambda divergence: divergence.at)
    asked = ", ".join("/".join(call.arguments.values()) for call in first.sequence[: first.at + 1])
    return f"{text}; after {asked}: {first.simulated.text!r} for {first.real.text!r}"
