"""Running what screening runs: the reference, nothing, and every wrong solution; see `plans`.

A snapshot of the artifacts before each step of the reference gives its prefixes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import perf_counter

from flywheel.act import Rollout, act, take_artifacts
from flywheel.attempt import labels_of, make_setting, open_host_tools
from flywheel.grade import BOOT_SECONDS
from flywheel.policy import Action
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import OpenSandbox, Sandbox, spec_for
from flywheel.screen.plans import (
    INITIAL,
    SHIFTED,
    Role,
    Run,
    looking,
    plans_of,
    shares_a_sandbox,
)
from flywheel.tools import BASH_TOOL, programs_for
from schemas.attempt import AttemptKey, Purpose, Sampling, Setting, Turn
from schemas.file import File, is_folder
from schemas.task import Brief, TaskManifest
from schemas.tool import Script, ToolHome, ToolSpec

GREEDY = Sampling(temperature=0.0)
_FIND_FAKETIME = "set -- /usr/lib*/faketime/libfaketime.so.1 /usr/lib/*/faketime/libfaketime.so.1; "
_FIND_FAKETIME += 'for f in "$@"; do test -e "$f" && exit 0; done; exit 1'


@dataclass(frozen=True, slots=True)
class Specimen:
    """What a run left behind, to be graded."""

    name: str
    role: Role
    artifacts: tuple[File, ...]
    rule: str | None = None
    """The rule that a mutant gets wrong."""
    seconds: float = 0.0


@dataclass
class Trials:
    """What all runs of one task left behind."""

    specimens: list[Specimen] = field(default_factory=list)
    reference: tuple[AttemptKey, str, Rollout] | None = None
    """The first run of the reference, with its policy's version."""
    unreachable: tuple[str, ...] = ()
    """`tool: what it said`."""
    clock_shift: float = 0.0
    """Seconds by which the clock of the shifted sandbox was ahead."""
    boots: int = 0


def run_trials(
    task: TaskManifest,
    open_sandbox: OpenSandbox,
    environment_digest: str,
    run_id: str,
    clock: Callable[[], float],
) -> Trials:
    """Run the reference and every wrong solution; see the module's docstring.

    Raises:
        SandboxError: a sandbox failed; nothing is known about the task then.
    """
    trials, faketime = Trials(), False
    programs = programs_for(task.brief.tools)
    for number, (shift, runs) in enumerate(plans_of(task)):
        policy = ScriptedPolicy(runs[0].name, runs[0].script)
        key, _ = identity(task, policy, environment_digest, run_id, number)
        deadline = BOOT_SECONDS + task.brief.budget.seconds * len(runs)
        plain = spec_for(task.brief.environment, programs, deadline, labels_of(key))
        extra = {name: v for name, v in shift.items() if faketime or name in SHIFTED}
        spec = replace(plain, environment={**plain.environment, **extra})
        with open_sandbox(spec) as sandbox:
            trials.boots += 1
            if number == 0:
                trials.unreachable = tuple(_unreachable(task.brief.tools, sandbox))
                found = sandbox.call(["/bin/sh", "-c", _FIND_FAKETIME], 10.0)
                faketime = found.exit_code == 0
            if shift:
                trials.clock_shift = max(trials.clock_shift, _clock_shift(sandbox, clock))
            for index, run in enumerate(runs):
                folder = f"run-{index}" if shares_a_sandbox(task) else "."
                _carry_out(task, run, sandbox, folder, environment_digest, run_id, trials)
    return trials


def identity(
    task: TaskManifest, policy: ScriptedPolicy, digest: str, run_id: str, index: int
) -> tuple[AttemptKey, Setting]:
    """Return what makes a scripted run an attempt."""
    setting = make_setting(task, policy.version, digest, GREEDY)
    key = AttemptKey(
        run_id=run_id,
        purpose=Purpose.SCREEN,
        arm="none",
        task_id=task.task_id,
        version_id=task.version_id,
        setting_id=setting.setting_id,
        index=index,
    )
    return key, setting


class _Snapshots:
    """The reference, with a snapshot of the artifacts before each of its steps."""

    def __init__(self, script: Script, take: Callable[[], tuple[File, ...]]) -> None:
        self._script = ScriptedPolicy("reference", script)
        self._take = take
        self.taken: list[tuple[File, ...]] = []

    @property
    def version(self) -> str:
        """The reference's."""
        return self._script.version

    def act(self, brief: Brief, turns: Sequence[Turn], sampling: Sampling, seed: int) -> Action:
        """Look at what is there, then take the reference's next step."""
        self.taken.append(self._take())
        return self._script.act(brief, turns, sampling, seed)


def _carry_out(
    task: TaskManifest,
    run: Run,
    sandbox: Sandbox,
    folder: str,
    digest: str,
    run_id: str,
    trials: Trials,
) -> None:
    """Carry out one run in its folder; add what it left behind, and its prefixes."""
    began, rollout = perf_counter(), Rollout()
    brief = task.brief
    if run.role is Role.ALTERNATIVE:
        brief = Brief.model_validate({**dict(brief), "tools": (*brief.tools, BASH_TOOL)})
    if run.dirtied:
        sandbox.put(_dirt(brief), folder)
    snapshots = _Snapshots(run.script, lambda: take_artifacts(brief, sandbox, folder)[0])
    scripted = ScriptedPolicy(run.role.value, run.script)
    first = run.role is Role.REFERENCE and trials.reference is None
    key, setting = identity(task, scripted, digest, run_id, 0)
    with ExitStack() as opened:
        host = open_host_tools(brief, task.sealed.user, opened)
        policy = snapshots if first else scripted
        act(brief, policy, sandbox, setting, key, rollout, host, folder)
    seconds = perf_counter() - began
    trials.specimens.append(Specimen(run.name, run.role, rollout.artifacts, run.rule, seconds))
    if first:
        trials.reference = (key, scripted.version, rollout)
        trials.specimens += _prefixes(task, snapshots.taken)


def _prefixes(task: TaskManifest, taken: Sequence[tuple[File, ...]]) -> Iterator[Specimen]:
    """Yield what stood there before each step that changes something; nothing, before the first.

    A snapshot is taken before every step and before the submission: there is always a first one.
    """
    looks = looking(task.brief)
    yield Specimen(INITIAL, Role.PREFIX, taken[0])
    for at, call in enumerate(task.sealed.reference):
        if call.tool not in looks and at < len(taken):
            yield Specimen(f"prefix-{at}", Role.PREFIX, taken[at])


def _dirt(brief: Brief) -> tuple[File, ...]:
    """Return what a careless predecessor might have left: old outputs, unrelated files."""
    there = {file.path for file in brief.environment.files}
    old = [path for path in brief.artifacts if not is_folder(path) and path not in there]
    return (
        *(File(path=path, content="left from last time\n") for path in old),
        File(path=".cache-of-yesterday/notes.txt", content="unrelated\n"),
    )


def _unreachable(tools: Sequence[ToolSpec], sandbox: Sandbox) -> Iterator[str]:
    """Call every tool of the sandbox with nonsense: one that is there does it, or refuses."""
    sandbox.put((), "reach")
    for tool in tools:
        options = [f"--{item.name}={(*item.choices, 'x')[0]}" for item in tool.parameters]
        if tool.home is ToolHome.SANDBOX:
            argv = [tool.program, tool.name, *options]
        elif tool.home is ToolHome.SHELL:
            argv = ["/bin/bash", "-c", "true"]
        else:
            continue
        result = sandbox.call(argv, 10.0, "." if tool.home is ToolHome.SHELL else "reach")
        if result.exit_code not in (0, 2):
            yield f"{tool.name}: exit {result.exit_code}: {result.output.decode(errors='replace')}"


def _clock_shift(sandbox: Sandbox, clock: Callable[[], float]) -> float:
    said = sandbox.call(["/bin/date", "+%s"], 10.0).output.split()
    return float(said[-1]) - clock() if said and said[-1].isdigit() else 0.0
