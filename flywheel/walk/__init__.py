"""Tasks by walking the tool graph: a seed in, a task or the reason why there is none out.

The walk is executed first, in a sandbox, and the task is written from what came of it: the goal
says a sentence a step, the right answer is what was observed. It is kept only if every step
changes something, the grader fails the walk without any one of its steps and with any other
choice, and an independent interpreter of the same steps comes to the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from flywheel.act import take_artifacts
from flywheel.errors import ManifestError
from flywheel.families.lexicon import Lexicon
from flywheel.grade import BOOT_SECONDS, grade_sets
from flywheel.sandbox import ArtifactRefused, ExecResult, OpenSandbox, Sandbox, SandboxSpec
from flywheel.tools import BASH_TOOL, command, programs_for
from flywheel.tools.table import TABLE_TOOLS
from flywheel.walk.graph import after, next_tools
from flywheel.walk.table import LEAST_ROWS, Start, Table, choose, draw
from flywheel.walk.task import FAMILY, write_task
from schemas.attempt import Grade, Verdict
from schemas.base import seed_from
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Brief, Budget, Source, TaskManifest
from schemas.tool import Script, ToolCall

SHORTEST = 3
"""Calls: load, do something, save."""
LENGTHS = 4
"""Lengths that are walked in turn, from SHORTEST on."""
_BY_NAME = {tool.name: tool for tool in (*TABLE_TOOLS, BASH_TOOL)}
_STATE = ".table.csv"
_FOLDER = "explored"
_CALL_SECONDS = 10.0


class Reason(StrEnum):
    """What became of a walk."""

    WALKED = "walked"
    DEAD_END = "dead-end"
    """The table's state allowed no call of any tool that could come next."""
    STEP_FAILED = "step-failed"
    STEP_CHANGED_NOTHING = "step-changed-nothing"
    TOO_FEW_ROWS = "too-few-rows"
    STEP_NOT_NEEDED = "step-not-needed"
    """The grader passes the walk without it."""
    CHOICE_NOT_NEEDED = "choice-not-needed"
    """The grader passes the walk with the other choice."""
    DISAGREEMENT = "disagreement"
    """The interpreter of its own, or the walk itself, is failed by the grader."""


Wrong = tuple[Reason, str, Script]
"""A script that the grader must fail: what it would mean if not, and which step it is about."""


@dataclass(frozen=True, slots=True)
class Walked:
    """A task, or the reason why there is none."""

    task: TaskManifest | None
    reason: Reason
    evidence: str = ""


class _Dropped(Exception):
    """The walk is no task."""

    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(evidence)
        self.walked = Walked(None, reason, evidence)


def walked(
    ways: Iterable[int], open_sandbox: OpenSandbox, budget: Budget, source: Source
) -> Iterator[TaskManifest]:
    """Yield the tasks that come of walks on training operands, of three to six calls in turn.

    Args:
        ways: a seed for each walk.
        open_sandbox: starts a sandbox, for a walk and for its grader.
        budget: of each task.
        source: provenance of the tasks.

    Raises:
        SandboxError: a sandbox failed.
    """
    for number, way in enumerate(ways):
        length = SHORTEST + number % LENGTHS
        found = walk(way, Lexicon(Split.TRAIN), length, open_sandbox, budget, source)
        if found.task is not None:
            yield found.task


def walk(
    seed: int,
    lexicon: Lexicon,
    length: int,
    open_sandbox: OpenSandbox,
    budget: Budget,
    source: Source,
) -> Walked:
    """Walk the tool graph for `length` calls and make a task of it; the same seed, the same walk.

    Args:
        seed: of the table, the way and the operands.
        lexicon: words and numbers that may be used as operands.
        length: calls, from loading to saving.
        open_sandbox: starts a sandbox, for the walk and for its grader.
        budget: of the task; it must allow the walk and the submission.
        source: provenance of the task.

    Raises:
        ManifestError: the length is below 3, or above what the budget allows.
        SandboxError: a sandbox failed; nothing is known about this walk.
    """
    if not SHORTEST <= length < budget.steps:
        raise ManifestError(
            f"walk: length {length} must be from {SHORTEST} to {budget.steps - 1} "
            "(budget.steps less the submission)"
        )
    rng = Random(seed_from(FAMILY, lexicon.split, seed, length))
    start = draw(rng, lexicon)
    labels = {"run": FAMILY, "attempt": f"{lexicon.split.value}-{seed}-{length}"}
    spec = SandboxSpec(
        programs=programs_for(TABLE_TOOLS),
        deadline=BOOT_SECONDS + budget.seconds * (length + 2),
        labels=labels,
    )
    try:
        with open_sandbox(spec) as sandbox:
            calls, found = _explore(sandbox, start, length, rng, lexicon)
            made = calls[-1].arguments["file"]
            outcome = File.of(made, _observed(sandbox, made))
            task = write_task(seed, lexicon, start, calls, found, outcome, budget, source)
            wrong = tuple(_wrong(calls))
            scripts = (calls, *task.sealed.alternatives, *(script for _, _, script in wrong))
            left = [_left_by(sandbox, task.brief, s, f"run-{n}") for n, s in enumerate(scripts)]
        _judge(wrong, grade_sets(task, left, open_sandbox, labels))
    except _Dropped as dropped:
        return dropped.walked
    return Walked(task, Reason.WALKED)


def _explore(
    sandbox: Sandbox, start: Start, length: int, rng: Random, lexicon: Lexicon
) -> tuple[Script, tuple[Table | None, ...]]:
    """Choose each call by what the ones before left; return the calls, and what each found."""
    sandbox.put([start.file], _FOLDER)
    calls, found = list[ToolCall](), list[Table | None]()
    facts, table = start.facts, None
    for left in range(length, 0, -1):
        call = _next(next_tools(facts, left), start, table, rng, lexicon)
        found.append(table)
        calls.append(call)
        table = _step(sandbox, call, table)
        facts = after(facts, call.tool)
    return tuple(calls), tuple(found)


def _next(
    tools: Sequence[str], start: Start, table: Table | None, rng: Random, lexicon: Lexicon
) -> ToolCall:
    """Return a call of one of the tools, at random, that the table's state allows."""
    for tool in rng.sample(tools, len(tools)):
        call = choose(tool, start, table, rng, lexicon)
        if call is not None:
            return call
    raise _Dropped(Reason.DEAD_END, f"none of: {', '.join(tools)}")


def _step(sandbox: Sandbox, call: ToolCall, table: Table | None) -> Table:
    """Make a call that must change something; return the table that it leaves."""
    result = _run(sandbox, call, _FOLDER)
    said = result.output.decode("utf-8", errors="replace").strip()
    if result.exit_code != 0:
        raise _Dropped(Reason.STEP_FAILED, f"{call.tool}: {said}")
    now = Table.parse(_observed(sandbox, _STATE))
    if now == table and not call.tool.startswith("write-"):
        raise _Dropped(Reason.STEP_CHANGED_NOTHING, f"{call.tool}: {said}")
    if len(now.rows) < LEAST_ROWS:
        raise _Dropped(Reason.TOO_FEW_ROWS, f"{len(now.rows)} rows after {call.tool}")
    return now


def _observed(sandbox: Sandbox, path: str) -> bytes:
    try:
        return sandbox.get(f"{_FOLDER}/{path}")
    except ArtifactRefused as refusal:
        raise _Dropped(Reason.STEP_FAILED, f"{path}: {refusal}") from None


def _run(sandbox: Sandbox, call: ToolCall, folder: str) -> ExecResult:
    return sandbox.call(command(_BY_NAME[call.tool], call), _CALL_SECONDS, folder)


def _wrong(calls: Script) -> Iterator[Wrong]:
    """Yield the walk without each step, and with each other choice that a step had."""
    for at, call in enumerate(calls):
        yield Reason.STEP_NOT_NEEDED, call.tool, calls[:at] + calls[at + 1 :]
        for parameter in _BY_NAME[call.tool].parameters:
            for other in set(parameter.choices) - {call.arguments[parameter.name]}:
                arguments = {**call.arguments, parameter.name: other}
                swapped = ToolCall(tool=call.tool, arguments=arguments)
                told = f"{call.tool} --{parameter.name}={other}"
                yield Reason.CHOICE_NOT_NEEDED, told, (*calls[:at], swapped, *calls[at + 1 :])


def _left_by(sandbox: Sandbox, brief: Brief, script: Script, folder: str) -> tuple[File, ...]:
    """Return what a script leaves behind in a clean folder, whichever of its calls fail."""
    sandbox.put(brief.environment.files, folder)
    for call in script:
        _run(sandbox, call, folder)
    artifacts, _ = take_artifacts(brief, sandbox, folder)
    return artifacts


def _judge(wrong: Sequence[Wrong], grades: Sequence[Grade]) -> None:
    """Hold the walk and the interpreter to passing, and all that is wrong to failing."""
    walked, interpreted, *others = grades
    for name, grade in (("the walk again", walked), ("the interpreter", interpreted)):
        if grade.verdict is not Verdict.PASSED:
            failed = [f"{c.name}: {c.evidence}" for c in grade.checks if not c.passed]
            raise _Dropped(Reason.DISAGREEMENT, f"{name}: {'; '.join(failed) or grade.evidence}")
    for (reason, told, _), grade in zip(wrong, others, strict=True):
        if grade.verdict is not Verdict.FAILED:
            raise _Dropped(reason, f"{told}: {grade.verdict.value}")
