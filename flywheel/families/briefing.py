"""Shipments CSV → summary by group, where the goal leaves open what only the user knows.

Goal: Summarise the shipments in `reef.csv`, which must not change. Not every `oak` counts: ask
about status. Group by `plume`: count the rows and total `cider`. Save the result as `dune.csv`.
"""

from collections import defaultdict
from dataclasses import dataclass
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.families.told import ASK
from flywheel.tools import pick
from flywheel.tools.table import TABLE_TOOLS
from flywheel.tools.user import ask_tool
from schemas.file import File
from schemas.task import Requirement, ScriptedUser
from schemas.tool import Script, ToolCall

Row = tuple[str, str, str, str, int, int]
"""Shipment, usual group, other group, status, quantity, and the amount in quarters of a unit."""


@dataclass(frozen=True)
class Shipments:
    """One file of shipments."""

    source: str
    output: str
    columns: tuple[str, ...]
    """Names of: shipment, usual group, other group, status, quantity, amount."""
    rows: tuple[Row, ...]
    status: str
    quantity: int
    thing: str
    """What a row is, in the singular."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Shipments:
    """Draw shipments until the rules leave a row to summarise."""
    cases = iter(lambda: _draw(rng, lexicon), None)
    return next(case for case in cases if _kept(case, rules))


def _draw(rng: Random, lexicon: Lexicon) -> Shipments:
    """Draw 24 to 36 rows, the later ones with repeats."""
    words = lexicon.words(rng, 19)
    groups, others, statuses = words[8:12], words[12:16], words[16:19]
    keys = [f"{words[2][:2]}{number}" for number in rng.sample(range(100, 999), 20)]
    rows = tuple(
        (
            rng.choice(keys) if number > 15 else keys[number],
            rng.choice(groups),
            rng.choice(others),
            rng.choice(statuses),
            rng.randrange(1, 30),
            rng.randrange(4, 240),
        )
        for number in range(rng.randrange(24, 37))
    )
    return Shipments(
        source=f"{words[0]}.csv",
        output=f"{words[1]}.csv",
        columns=tuple(words[2:8]),
        rows=rows,
        status=statuses[0],
        quantity=lexicon.number(rng, 6, 18),
        thing=lexicon.thing or "shipment",
    )


def inputs(case: Shipments) -> tuple[File, ...]:
    """Return the CSV file."""
    lines = [case.columns, *((*map(str, row[:5]), f"{row[5] / 4:.2f}") for row in case.rows)]
    return (File(path=case.source, content="".join(f"{','.join(line)}\n" for line in lines)),)


_REPEATS = ("Where a {key} is repeated one row counts", "Of rows with the same {key} use one")
_STATUS = ("Not every {status} counts", "Which rows to use depends on {status}")
_QUANTITY = ("Rows with a small {quantity} do not count", "Use only rows with enough {quantity}")
_GROUP = (
    "Count the rows and total {amount} by group (columns: the grouping column, count, total)",
    "For each group count rows and total {amount} (columns: the one grouped by, count, total)",
)
_ORDER = ("The groups are to be sorted", "Put the groups in order")
_ASKED = {
    "last-counts": ("repeats", _REPEATS, "The last one counts."),
    "first-counts": ("repeats", _REPEATS, "The first one counts."),
    "only-status": ("status", _STATUS, "Use only rows where {status} is {wanted}."),
    "not-status": ("status", _STATUS, "Use all rows but those where {status} is {wanted}."),
    "at-least": ("quantity", _QUANTITY, "Use only rows where {quantity} is at least {least}."),
    "other-group": ("group", _GROUP, "Group by {other}."),
    "largest-first": ("order", _ORDER, "Largest total first, equal totals by name."),
    "smallest-first": ("order", _ORDER, "Smallest total first, equal totals by name."),
}
"""Rule → topic, wordings of what is left open, what the user knows."""
_TOPICS = ("repeats", "status", "quantity", "group", "order", "deadline", "format")
_AXES = {"repeats": Axis.DUPLICATES, "group": Axis.OUTPUT, "order": Axis.ORDER}
_AFTER = {"quantity": "status", "order": "group"}


def _literals(case: Shipments) -> dict[str, str]:
    names = ("key", "group", "other", "status", "quantity", "amount", "wanted", "least")
    values = (*case.columns, case.status, case.quantity)
    return {name: f"`{value}`" for name, value in zip(names, values, strict=True)}


def goal(case: Shipments, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the source, what to ask about in the order of application, and the output."""
    literals = _literals(case)
    asking = {
        rule: [f"{text}{ASK}{topic}." for text in wordings]
        for rule, (topic, wordings, _) in _ASKED.items()
    }
    said = say(asking, rules, rng, ("rows",), **literals)
    sorting = [said.pop(rule) for rule in ("largest-first", "smallest-first") if rule in said]
    grouping = said.pop("other-group", None) or Requirement(
        sentence="Group by {group}: count the rows and total {amount} "
        "(columns: {group}, count, total).".format(**literals)
    )
    opening = rng.choice(("Summarise", "Make a summary of"))
    return (
        Requirement(
            sentence=f"{opening} the {case.thing}s in `{case.source}`, which must not change.",
            checks=("input-unchanged",),
        ),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *said.values(),
        grouping.model_copy(update={"checks": ("columns", "rows")}),
        *(one.model_copy(update={"checks": ("order",)}) for one in sorting),
        Requirement(sentence=f"Save the result as `{case.output}`.", checks=("exists",)),
    )


def user(case: Shipments, rules: Rules) -> ScriptedUser | None:
    """Return who knows what each rule asks for; some of it only once its purpose is known."""
    literals = _literals(case)
    known = [asked for rule, asked in _ASKED.items() if rule in rules]
    answers = {topic: text.format(**literals) for topic, _, text in known}
    after = {topic: first for topic, first in _AFTER.items() if {topic, first} <= answers.keys()}
    return ScriptedUser(answers=answers, after=after) if answers else None


def reference(case: Shipments, rules: Rules) -> Script:
    """Read, ask for each rule and follow it, summarise, sort, write."""
    key, group, other, status, quantity, amount = case.columns
    steps = {
        "last-counts": _call("deduplicate", column=key, keep="last"),
        "first-counts": _call("deduplicate", column=key, keep="first"),
        "only-status": _call("keep-equal", column=status, value=case.status),
        "not-status": _call("drop-equal", column=status, value=case.status),
        "at-least": _call("keep-at-least", column=quantity, value=str(case.quantity)),
        "other-group": _call("summarise", by=other, column=amount),
        "largest-first": _call("sort", order="descending"),
        "smallest-first": _call("sort", order="ascending"),
    }
    calls = [_call("read-csv", file=case.source)]
    for rule, step in steps.items():
        if rule in rules:
            calls += [_call("ask", about=_ASKED[rule][0]), step]
        elif rule == "other-group":
            calls.append(_call("summarise", by=group, column=amount))
    return (*calls, _call("write-csv", file=case.output))


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def alternative(case: Shipments, rules: Rules) -> Script:
    """Solve it in one pass by a program of its own, which was told what the user knows."""
    told = {"rules": sorted(rules), "status": case.status, "quantity": case.quantity}
    return by_python("briefing", {"source": case.source, "output": case.output, **told})


def _kept(case: Shipments, rules: Rules) -> list[Row]:
    """Return the rows that the rules leave, without the tools."""
    chosen = list(case.rows)
    if "last-counts" in rules:
        chosen = list({row[0]: row for row in chosen}.values())
    if "first-counts" in rules:
        chosen = list({row[0]: row for row in reversed(chosen)}.values())
    return [
        row
        for row in chosen
        if ("only-status" not in rules or row[3] == case.status)
        and ("not-status" not in rules or row[3] != case.status)
        and ("at-least" not in rules or row[4] >= case.quantity)
    ]


def target(case: Shipments, rules: Rules) -> tuple[File, ...]:
    """Work the summary out in exact quarters, by name or in the order asked for."""
    at = 2 if "other-group" in rules else 1
    groups: dict[str, list[int]] = defaultdict(list)
    for _, group, other, _, _, quarters in _kept(case, rules):
        groups[other if at == 2 else group].append(quarters)
    ranking = ("largest-first" in rules) - ("smallest-first" in rules)
    names = sorted(groups, key=lambda name: (-ranking * sum(groups[name]), name))
    lines = [f"{case.columns[at]},count,total"]
    lines += [f"{n},{len(groups[n])},{sum(groups[n]) / 4}" for n in names]
    return (File(path=case.output, content="\n".join(lines) + "\n"),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if {"largest-first", "smallest-first"} & rules else base


FAMILY = Family(
    name="briefing",
    tools=pick(
        (ask_tool(*_TOPICS), *TABLE_TOOLS),
        "ask",
        "read-csv",
        "deduplicate",
        "keep-equal",
        "drop-equal",
        "keep-at-least",
        "summarise",
        "sort",
        "write-csv",
    ),
    rules={rule: _AXES.get(topic, Axis.SCOPE) for rule, (topic, *_) in _ASKED.items()},
    neighbours={
        "last-counts": "first-counts",
        "first-counts": "last-counts",
        "only-status": "not-status",
        "not-status": "only-status",
        "largest-first": "smallest-first",
        "smallest-first": "largest-first",
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
    user=user,
    depth=lambda case, rules: len(reference(case, rules)) - len(rules),
    rounds=lambda case, rules: len(rules),
)
