"""Scripts executed for real, and what they leave behind judged by the real grader."""

from collections.abc import Iterable, Mapping
from contextlib import chdir, redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from flywheel.families import Family, Rules
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair, make_task
from flywheel.grade import grade_sets
from flywheel.sandbox import ArtifactRefused, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.tools import BASH_TOOL, command, programs_for
from schemas.attempt import Verdict
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget, Requirement, Source, SourceKind, TaskManifest
from schemas.tool import Script, ToolCall, ToolSpec

LABELS = {"run": "test", "attempt": "test"}
SOURCE = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")


def task_of(
    family: Family[Any], *rules: str, seed: int = 0, split: Split = Split.TRAIN
) -> TaskManifest:
    """A task of `family` with `rules` live."""
    return make_task(family, frozenset(rules), seed, Lexicon(split), Budget(), SOURCE)


def pair_of(
    family: Family[Any], *rules: str, rule: str, seed: int = 0
) -> tuple[TaskManifest, TaskManifest]:
    """A task with `rules` live, and the same case without `rule`."""
    lexicon = Lexicon(Split.TRAIN)
    return make_pair(family, frozenset(rules), rule, seed, lexicon, Budget(), SOURCE)


def combinations_of(family: Family[Any]) -> list[Rules]:
    """Every set of one to three rules that can be live together."""
    sets = (frozenset(r) for size in (1, 2, 3) for r in combinations(family.rules, size))
    return [rules for rules in sets if family.allows(rules)]


def draws_until_live(family: Family[Any], rules: Rules, seed: int) -> int:
    """How many cases have to be drawn until all rules are live, alone and where one is left out."""
    rng = Random(seed)
    cases = (family.build(rules, rng, Lexicon(Split.DEV)) for _ in range(100))
    return next(
        number for number, case in enumerate(cases, 1) if _live_in_pairs(family, case, rules)
    )


def _live_in_pairs(family: Family[Any], case: Any, rules: Rules) -> bool:
    others = [rules - {rule} for rule in rules if len(rules) > 1]
    return all(family.is_live(case, some) for some in [rules, *others])


def unnamed_checks(requirements: tuple[Requirement, ...], checks: tuple[str, ...]) -> set[str]:
    """The checks that no sentence of a goal asks for, and those that are none."""
    return {check for sentence in requirements for check in sentence.checks} ^ set(checks)


def misplaced_operands(task: TaskManifest) -> list[str]:
    """The operands that a goal names, out of the order in which the reference takes them."""
    specs = {tool.name: tool for tool in task.brief.tools}
    goal, at, misplaced = task.brief.goal, 0, []
    for call in task.sealed.reference:
        for parameter in specs[call.tool].parameters:
            word = f"`{call.arguments[parameter.name]}`"
            if parameter.choices or word not in goal:
                continue
            if word not in goal[at:]:
                misplaced.append(word)
            at = max(at, goal.find(word, at))
    return misplaced


def call_here(tools: Iterable[ToolSpec], call: ToolCall, folder: Path) -> tuple[int, str]:
    """Make a call in this process, in `folder`: exit code and output."""
    (tool,) = (tool for tool in tools if tool.name == call.tool)
    program, *argv = command(tool, call)
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = import_module(f"flywheel.tools.programs.{program}").main(argv)
    return code, printed.getvalue()


def made_here(task: TaskManifest, script: Script) -> dict[str, bytes]:
    """Run a script in this process on a fresh copy of the task; path → bytes of artifacts."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in task.brief.environment.files:
            (folder / file.path).write_bytes(file.data())
        for call in script:
            call_here(task.brief.tools, call, folder)
        paths = [folder / path for path in task.brief.artifacts]
        return {path.name: path.read_bytes() for path in paths if path.is_file()}


def _left_behind(sandbox: Sandbox, folder: str, task: TaskManifest, script: Script) -> list[File]:
    tools = {tool.name: tool for tool in (*task.brief.tools, BASH_TOOL)}
    sandbox.put(task.brief.environment.files, folder)
    for call in script:
        sandbox.call(command(tools[call.tool], call), 10.0, folder)
    found = []
    for path in task.brief.artifacts:
        try:
            found.append(File.of(path, sandbox.get(f"{folder}/{path}")))
        except ArtifactRefused:
            continue
    return found


def artifacts_of(task: TaskManifest, scripts: Mapping[str, Script]) -> dict[str, list[File]]:
    """Run each script in a sandbox, in a folder of its own; name → what it leaves behind."""
    spec = SandboxSpec(programs=programs_for(task.brief.tools), deadline=120.0, labels=LABELS)
    with Bubblewrap().open(spec) as sandbox:
        return {
            name: _left_behind(sandbox, f"run-{number}", task, script)
            for number, (name, script) in enumerate(scripts.items())
        }


def failed_checks(task: TaskManifest, sets: Mapping[str, list[File]]) -> dict[str, set[str]]:
    """Grade what was left behind; name → the checks that failed."""
    grades = grade_sets(task, list(sets.values()), Bubblewrap().open, LABELS)
    assert all(grade.verdict is not Verdict.UNGRADED for grade in grades), grades
    return {
        name: {check.name for check in grade.checks if not check.passed}
        for name, grade in zip(sets, grades, strict=True)
    }


def wrong_scripts(task: TaskManifest) -> dict[str, Script]:
    """Doing nothing, every prefix, the reference without any one call, every mutant."""
    script = task.sealed.reference
    prefixes = {f"prefix-{n}": script[:n] for n in range(len(script))}
    dropped = {f"without-call-{n}": script[:n] + script[n + 1 :] for n in range(len(script) - 1)}
    return prefixes | dropped | {mutant.name: mutant.script for mutant in task.sealed.mutants}


def misjudged(task: TaskManifest) -> dict[str, set[str]]:
    """The right scripts that fail and the wrong ones that pass, with the checks that failed."""
    right = {"reference": task.sealed.reference, "alternative": task.sealed.alternatives[0]}
    wrong = wrong_scripts(task)
    judged = failed_checks(task, artifacts_of(task, right | wrong))
    return {name: failed for name, failed in judged.items() if bool(failed) != (name in wrong)}


def failing_right_scripts(task: TaskManifest) -> dict[str, set[str]]:
    """The checks that the reference and the alternative fail."""
    right = {"reference": task.sealed.reference, "alternative": task.sealed.alternatives[0]}
    judged = failed_checks(task, artifacts_of(task, right))
    return {name: failed for name, failed in judged.items() if failed}
