"""A family, its tools, a screening check and a proposer, from outside the flywheel's package."""

# tool: a program that runs in the sandbox, and its subcommands
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from flywheel.families import Axis, Family, Rules, say
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.plugins import ToolProgram
from flywheel.tools import choice, pick
from schemas.base import seed_from
from schemas.file import File
from schemas.lineage import Split
from schemas.screening import ScreenCheck
from schemas.task import Budget, Requirement, Source, SourceKind, TaskManifest
from schemas.tool import Parameter, Script, ToolCall, ToolSpec

_tool = partial(ToolSpec, program="names")
_FILE = Parameter(name="file", description="a file of the workspace")
_MARK = Parameter(name="mark", description="what the names to be dropped begin with")

NAMES = ToolProgram(
    name="names",
    source=Path(__file__).with_name("names.py").read_text("utf-8"),
    tools=(
        _tool(name="read-names", description="load a file of names", parameters=(_FILE,)),
        _tool(name="drop-repeats", description="keep each name once"),
        _tool(name="drop-marked", description="drop marked names", parameters=(_MARK,)),
        _tool(
            name="sort-names",
            description="sort the names",
            parameters=(choice("order", "the direction", "a-to-z", "z-to-a"),),
        ),
        _tool(name="write-names", description="save the names as CSV", parameters=(_FILE,)),
    ),
)


# family: a case from a seed, said in words, solved twice, and its answer worked out
@dataclass(frozen=True)
class Guests:
    """One guest list."""

    source: str
    output: str
    lines: tuple[str, ...]


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Guests:
    """Draw a list with repeats and marked names."""
    source, output, *guests = lexicon.words(rng, 10)
    drawn = [rng.choice(guests) for _ in range(12)]
    lines = tuple(f"#{name}" if rng.random() < 0.3 else name for name in drawn)
    return Guests(f"{source}.txt", f"{output}.csv", lines)


def inputs(case: Guests) -> tuple[File, ...]:
    """Return the list."""
    return (File(path=case.source, content="".join(f"{line}\n" for line in case.lines)),)


_SENTENCES = {
    "unmarked": ("Leave out names that begin with `#`.", "Names that begin with `#` do not count."),
    "once": ("List each name once, where it first stands.", "Of equal names keep the first."),
    "a-to-z": ("Sort the names from a to z.", "Put the names in rising order."),
}


def goal(case: Guests, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the source, each rule, and the output."""
    said = say(_SENTENCES, rules, rng, ("rows",))
    if "a-to-z" in said:
        said["a-to-z"] = said["a-to-z"].model_copy(update={"checks": ("order",)})
    return (
        Requirement(
            sentence=f"Make a guest list of `{case.source}`, which must not change.",
            checks=("input-unchanged",),
        ),
        *said.values(),
        Requirement(
            sentence=f"Save it as `{case.output}` with the one column `name`.",
            checks=("exists", "columns", "rows"),
        ),
    )


def reference(case: Guests, rules: Rules) -> Script:
    """Read, apply the rules, write."""
    steps = {
        "unmarked": ToolCall(tool="drop-marked", arguments={"mark": "#"}),
        "once": ToolCall(tool="drop-repeats"),
        "a-to-z": ToolCall(tool="sort-names", arguments={"order": "a-to-z"}),
        "z-to-a": ToolCall(tool="sort-names", arguments={"order": "z-to-a"}),
    }
    return (
        ToolCall(tool="read-names", arguments={"file": case.source}),
        *(call for rule, call in steps.items() if rule in rules),
        ToolCall(tool="write-names", arguments={"file": case.output}),
    )


def alternative(case: Guests, rules: Rules) -> Script:
    """Solve it by a pipe of other programs."""
    steps = {"unmarked": "grep -v '^#'", "once": "awk '!seen[$0]++'", "a-to-z": "LC_ALL=C sort"}
    pipe = " | ".join([f"cat {case.source}", *(steps[rule] for rule in steps if rule in rules)])
    line = f"(echo name; {pipe}) > {case.output}"
    return (ToolCall(tool="bash", arguments={"command": line}),)


def target(case: Guests, rules: Rules) -> tuple[File, ...]:
    """Work the answer out without the tools."""
    names = [line for line in case.lines if not ("unmarked" in rules and line[0] == "#")]
    if "once" in rules:
        names = [name for at, name in enumerate(names) if name not in names[:at]]
    if {"a-to-z", "z-to-a"} & rules:
        names.sort(reverse="z-to-a" in rules)
    return (File(path=case.output, content="\n".join(["name", *names]) + "\n"),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if "a-to-z" in rules else base


FAMILY = Family(
    name="guests",
    tools=pick(NAMES.tools, *(tool.name for tool in NAMES.tools)),
    rules={"unmarked": Axis.SCOPE, "once": Axis.DUPLICATES, "a-to-z": Axis.ORDER},
    neighbours={"a-to-z": "z-to-a"},
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.output,),
    protected=lambda case: (case.source,),
    checks=checks,
)


# check: something of your own that every task has to fulfil
def says_where_to_write(task: TaskManifest) -> ScreenCheck:
    """Each file that is graded stands in the goal, in backticks."""
    unsaid = [path for path in task.brief.artifacts if f"`{path}`" not in task.brief.goal]
    evidence = f"not in the goal: {', '.join(unsaid)}" if unsaid else "all in the goal"
    return ScreenCheck(kind="plugin/says_where_to_write", passed=not unsaid, evidence=evidence)


# proposer: tasks from wherever you have them
def short_lists(count: int, seed: int) -> Iterator[TaskManifest]:
    """Yield tasks with one live rule, each rule in turn."""
    source = Source(kind=SourceKind.PROPOSED, uri="short-lists", licence="Apache-2.0")
    rules = sorted(FAMILY.rules)
    for number in range(count):
        rule = frozenset({rules[number % len(rules)]})
        own_seed = seed_from(seed, number) >> 32
        yield make_task(FAMILY, rule, own_seed, Lexicon(Split.TRAIN), Budget(), source)
