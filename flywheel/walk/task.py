"""From a walk and what it came to, a task: one sentence a step."""

import hashlib
from collections.abc import Sequence
from importlib.resources import files

from flywheel.families import by_python
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import LONG_HORIZON
from flywheel.graders import grader_version
from flywheel.tools import SUBMIT_TOOL
from flywheel.tools.table import TABLE_TOOLS
from flywheel.walk.table import Start, Table
from schemas.file import File
from schemas.task import (
    Brief,
    Budget,
    Capability,
    Environment,
    Features,
    Grader,
    Requirement,
    Sealed,
    Source,
    TaskManifest,
)
from schemas.tool import Script, ToolCall

FAMILY = "walk"

_SENTENCES = {
    "read-csv": "Take the {thing}s in {file}, which must not change.",
    "read-log": "Take the {thing}s in {file}, which must not change: a line is a row of key=value "
    "fields, one that is absent is empty.",
    "deduplicate": "Of rows with the same {column} keep the {keep}.",
    "drop-missing": "Drop rows where {column} is empty.",
    "keep-equal": "Keep only rows where {column} is {value}.",
    "drop-equal": "Drop rows where {column} is {value}.",
    "keep-at-least": "Keep only rows where {column} is at least {value}.",
    "round": "Round each {column} that is not empty to a whole number, halves {ties}.",
    "summarise": "Group by {by}: count the rows and total {column}, empty is 0 (columns: {by}, "
    "count, total).",
    "count": "Group by {by} and count the rows (columns: {by}, count).",
    "sort": "Sort by {last}, {order} first, equal ones by {first}.",
    "write-csv": "Save the result with all its columns as {file}.",
    "write-json": "Save the result as {file}, a list of objects, one a row.",
}
_PLAIN = {
    "first": "first",
    "last": "last",
    "half-even": "to the even one",
    "half-up": "up",
    "ascending": "smallest",
    "descending": "largest",
}
"""Values that are no operands, in words."""


_CHECKED = {
    "read-csv": ("input-unchanged",),
    "read-log": ("input-unchanged",),
    "sort": ("order",),
    "write-csv": ("exists", "columns"),
    "write-json": ("exists", "columns"),
}
"""What fails where a step is left out; `rows` where nothing is said."""


def write_task(
    seed: int,
    lexicon: Lexicon,
    start: Start,
    calls: Script,
    found: Sequence[Table | None],
    outcome: File,
    budget: Budget,
    source: Source,
) -> TaskManifest:
    """Return the task whose right answer is what was observed.

    Args:
        seed: of the walk.
        lexicon: where its operands are from.
        start: what it started from.
        calls: the walk.
        found: the table that each call found.
        outcome: the file that it made.
        budget: of the task.
        source: provenance.
    """
    requirements = _goal(calls, found, lexicon.thing or "row")
    steps = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in calls]
    return TaskManifest(
        family=FAMILY,
        family_version=_version(),
        rules=(),
        seed=seed,
        operands=_operands(calls),
        brief=Brief(
            goal=" ".join(requirement.sentence for requirement in requirements),
            environment=Environment(files=(start.file,)),
            tools=(*TABLE_TOOLS, SUBMIT_TOOL),
            artifacts=(outcome.path, start.file.path),
            budget=budget,
        ),
        sealed=Sealed(
            grader=Grader(
                program="compare",
                version=grader_version("compare"),
                checks=_checks(calls),
                expected=(outcome,),
                protected=(start.file.path,),
            ),
            reference=calls,
            alternatives=(by_python(FAMILY, {"steps": steps}),),
            requirements=requirements,
        ),
        features=_features(calls, lexicon),
        source=source,
    )


def _checks(calls: Script) -> tuple[str, ...]:
    """Order counts only where the walk sorts."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if any(call.tool == "sort" for call in calls) else base


def _goal(calls: Script, found: Sequence[Table | None], thing: str) -> tuple[Requirement, ...]:
    steps = [_sentence(call, table, thing) for call, table in zip(calls, found, strict=True)]
    return (steps[0], Requirement(sentence="Then do this, in order."), *steps[1:])


def _sentence(call: ToolCall, table: Table | None, thing: str) -> Requirement:
    words = {name: _PLAIN.get(value, f"`{value}`") for name, value in call.arguments.items()}
    header = table.header if table else ("",)
    ends = {"first": f"`{header[0]}`", "last": header[-1]}
    return Requirement(
        sentence=_SENTENCES[call.tool].format(thing=thing, **ends, **words),
        checks=_CHECKED.get(call.tool, ("rows",)),
    )


def _operands(calls: Script) -> tuple[str, ...]:
    values = (value for call in calls for value in call.arguments.values())
    return tuple(sorted({value for value in values if value not in _PLAIN}))


def _features(calls: Script, lexicon: Lexicon) -> Features:
    capabilities = {Capability.TOOL_DOCS, Capability.TOOL_CHOICE, Capability.DEPENDENCY}
    if len(calls) >= LONG_HORIZON:
        capabilities.add(Capability.LONG_HORIZON)
    return Features(
        depth=len(calls),
        missing=0,
        rounds=0,
        live_rules=0,
        capabilities=tuple(sorted(capabilities)),
        thing=lexicon.thing,
    )


def _version() -> str:
    """`walk@…`, a digest of the modules that make walks."""
    sources = [file for file in files(__package__).iterdir() if file.name.endswith(".py")]
    text = "".join(file.read_text("utf-8") for file in sorted(sources, key=lambda f: f.name))
    return f"{FAMILY}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"
