"""Log triage → report by service.

Goal: Report on the log `reef.log`. Each line is key=value fields; the first field identifies a
message. Where a message is repeated its first line counts. Count the lines of each `oak` (columns:
`oak`, count). Save the result as `plume.json`.
"""

import json
from collections import Counter
from dataclasses import dataclass
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.table import TABLE_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall


@dataclass(frozen=True)
class Log:
    """One log; a code is empty where its line has none."""

    source: str
    output: str
    fields: tuple[str, ...]
    """Names of: message, minute, level, service, code."""
    lines: tuple[tuple[str, int, str, str, str], ...]
    level: str
    service: str
    minute: int


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Log:
    """Draw logs until the rules leave a line to count."""
    cases = iter(lambda: _draw(rng, lexicon), None)
    return next(case for case in cases if _counts(case, rules))


def _draw(rng: Random, lexicon: Lexicon) -> Log:
    """Draw 24 to 36 lines in order of time, with repeated messages and absent codes."""
    words = lexicon.words(rng, 14)
    levels, services = words[7:10], words[10:14]
    messages = [f"{words[2][:2]}{number}" for number in rng.sample(range(100, 999), 20)]
    count = rng.randrange(24, 37)
    minutes = sorted(rng.randrange(60) for _ in range(count))
    lines = tuple(
        (
            rng.choice(messages) if number > 15 else messages[number],
            minute,
            rng.choice(levels),
            rng.choice(services),
            rng.choice(["", *(str(rng.randrange(100, 600)) for _ in range(3))]),
        )
        for number, minute in enumerate(minutes)
    )
    return Log(
        source=f"{words[0]}.log",
        output=f"{words[1]}.json",
        fields=tuple(words[2:7]),
        lines=lines,
        level=levels[0],
        service=services[0],
        minute=lexicon.number(rng, 10, 40),
    )


def inputs(case: Log) -> tuple[File, ...]:
    """Return the log."""
    pairs = (zip(case.fields, line, strict=True) for line in case.lines)
    text = "".join(
        " ".join(f"{name}={value}" for name, value in line if value != "") + "\n" for line in pairs
    )
    return (File(path=case.source, content=text),)


_SENTENCES = {
    "repeats-first": (
        "Of lines with the same message keep the first.",
        "Where a message is repeated its first line counts.",
    ),
    "repeats-last": (
        "Of lines with the same message keep the last.",
        "Where a message is repeated its last line counts.",
    ),
    "with-code": (
        "Leave out lines that have no {code}.",
        "Lines without a value for {code} do not count.",
    ),
    "only-level": (
        "Use only lines where {level} is {wanted}.",
        "Lines count only if {level} equals {wanted}.",
    ),
    "not-service": (
        "Leave out lines where {service} is {unwanted}.",
        "Lines do not count if {service} equals {unwanted}.",
    ),
    "since": (
        "Use only lines where {minute} is at least {least}.",
        "Lines with {minute} below {least} do not count.",
    ),
    "busiest-first": (
        "Put the {service} with the most lines first, equal counts by name.",
        "Sort by falling count, equal counts by name.",
    ),
}


def goal(case: Log, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the source, each rule in the order of application, the grouping and the output."""
    _, minute, level, service, code = (f"`{name}`" for name in case.fields)
    said = say(
        _SENTENCES,
        rules,
        rng,
        ("rows",),
        minute=minute,
        level=level,
        service=service,
        code=code,
        wanted=f"`{case.level}`",
        unwanted=f"`{case.service}`",
        least=f"`{case.minute}`",
    )
    sorting = said.pop("busiest-first", None)
    opening = rng.choice(("Report on the log", "Make a report of the log"))
    return (
        Requirement(
            sentence=f"{opening} `{case.source}`, which must not change.",
            checks=("input-unchanged",),
        ),
        Requirement(
            sentence="Each line is key=value fields; the first field identifies a message."
        ),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *said.values(),
        Requirement(
            sentence=f"Count the lines of each {service}.",
            checks=("rows",),
        ),
        *([sorting.model_copy(update={"checks": ("order",)})] if sorting else []),
        Requirement(
            sentence=f"Save the result as `{case.output}`: a list of objects with the keys "
            f"{service} and count.",
            checks=("exists", "columns"),
        ),
    )


def reference(case: Log, rules: Rules) -> Script:
    """Read, apply the rules in order, count, sort, write."""
    message, minute, level, service, code = case.fields
    steps = {
        "repeats-first": ToolCall(
            tool="deduplicate", arguments={"column": message, "keep": "first"}
        ),
        "repeats-last": ToolCall(tool="deduplicate", arguments={"column": message, "keep": "last"}),
        "with-code": ToolCall(tool="drop-missing", arguments={"column": code}),
        "only-level": ToolCall(tool="keep-equal", arguments={"column": level, "value": case.level}),
        "not-service": ToolCall(
            tool="drop-equal", arguments={"column": service, "value": case.service}
        ),
        "since": ToolCall(
            tool="keep-at-least", arguments={"column": minute, "value": str(case.minute)}
        ),
    }
    sorting = {
        "busiest-first": ToolCall(tool="sort", arguments={"order": "descending"}),
        "quietest-first": ToolCall(tool="sort", arguments={"order": "ascending"}),
    }
    return (
        ToolCall(tool="read-log", arguments={"file": case.source}),
        *(call for rule, call in steps.items() if rule in rules),
        ToolCall(tool="count", arguments={"by": service}),
        *(call for rule, call in sorting.items() if rule in rules),
        ToolCall(tool="write-json", arguments={"file": case.output}),
    )


def alternative(case: Log, rules: Rules) -> Script:
    """Solve it in one pass by a program of its own."""
    arguments = {
        "source": case.source,
        "output": case.output,
        "fields": case.fields,
        "rules": sorted(rules),
        "level": case.level,
        "service": case.service,
        "minute": case.minute,
    }
    return by_python("logs", arguments)


def _counts(case: Log, rules: Rules) -> Counter[str]:
    """Count the lines of each service that the rules leave, without the tools."""
    lines = list(case.lines)
    if "repeats-first" in rules:
        lines = list({line[0]: line for line in reversed(lines)}.values())
    if "repeats-last" in rules:
        lines = list({line[0]: line for line in lines}.values())
    return Counter(
        service
        for _, minute, level, service, code in lines
        if ("with-code" not in rules or code)
        and ("only-level" not in rules or level == case.level)
        and ("not-service" not in rules or service != case.service)
        and ("since" not in rules or minute >= case.minute)
    )


def target(case: Log, rules: Rules) -> tuple[File, ...]:
    """Write the counts by name, or in the order asked for."""
    counts = _counts(case, rules)
    ranking = ("busiest-first" in rules) - ("quietest-first" in rules)
    names = sorted(counts, key=lambda name: (-ranking * counts[name], name))
    rows = [{case.fields[3]: name, "count": counts[name]} for name in names]
    return (File(path=case.output, content=json.dumps(rows) + "\n"),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if "busiest-first" in rules else base


FAMILY = Family(
    name="logs",
    tools=pick(
        TABLE_TOOLS,
        "read-log",
        "deduplicate",
        "drop-missing",
        "keep-equal",
        "drop-equal",
        "keep-at-least",
        "count",
        "sort",
        "write-json",
    ),
    rules={
        "repeats-first": Axis.DUPLICATES,
        "repeats-last": Axis.DUPLICATES,
        "with-code": Axis.MISSING,
        "only-level": Axis.SCOPE,
        "not-service": Axis.SCOPE,
        "since": Axis.DATES,
        "busiest-first": Axis.ORDER,
    },
    neighbours={
        "repeats-first": "repeats-last",
        "repeats-last": "repeats-first",
        "busiest-first": "quietest-first",
    },
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
