"""Orders CSV → summary by group.

Goal: Summarise the orders in `reef.csv`. The first column identifies an order. Of rows with the
same order keep the last. Group by `oak`: count the rows and total `plume`, empty is 0 (columns:
`oak`, count, total). Save the result as `cider.csv`.
"""

import csv
import io
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.table import TABLE_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

Row = tuple[str, str, str, int, int | None]
"""Order, group, status, quantity, and the amount in quarters of a unit, None where missing."""


@dataclass(frozen=True)
class Orders:
    """One file of orders."""

    source: str
    output: str
    columns: tuple[str, ...]
    """Names of: order, group, status, quantity, amount."""
    rows: tuple[Row, ...]
    status: str
    quantity: int
    thing: str
    """What a row is, in the singular."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Orders:
    """Draw orders until the rules leave a row to summarise."""
    cases = iter(lambda: _draw(rng, lexicon), None)
    return next(case for case in cases if _kept(case, rules))


def _draw(rng: Random, lexicon: Lexicon) -> Orders:
    """Draw 24 to 36 rows with repeats, gaps and halves."""
    words = lexicon.words(rng, 14)
    groups, statuses = words[7:11], words[11:14]
    orders = [f"{words[2][:2]}{number}" for number in rng.sample(range(100, 999), 20)]
    rows = tuple(
        (
            rng.choice(orders) if number > 15 else orders[number],
            rng.choice(groups),
            rng.choice(statuses),
            rng.randrange(1, 30),
            rng.choice([None, *(rng.randrange(4, 240) for _ in range(4))]),
        )
        for number in range(rng.randrange(24, 37))
    )
    return Orders(
        source=f"{words[0]}.csv",
        output=f"{words[1]}.csv",
        columns=(words[2], words[3], words[4], words[5], words[6]),
        rows=rows,
        status=statuses[0],
        quantity=lexicon.number(rng, 6, 18),
        thing=lexicon.thing or "order",
    )


def inputs(case: Orders) -> tuple[File, ...]:
    """Return the CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(case.columns)
    for order, group, status, quantity, quarters in case.rows:
        amount = "" if quarters is None else f"{quarters // 4}.{quarters % 4 * 25:02d}"
        writer.writerow([order, group, status, quantity, amount])
    return (File(path=case.source, content=text.getvalue()),)


_SENTENCES = {
    "keep-last": (
        "Of rows with the same {thing} keep the last.",
        "Where a row's {thing} is repeated its last row counts.",
    ),
    "keep-first": (
        "Of rows with the same {thing} keep the first.",
        "Where a row's {thing} is repeated its first row counts.",
    ),
    "skip-missing": (
        "Leave out rows whose {amount} is empty.",
        "Rows without a value in {amount} do not count.",
    ),
    "only-status": (
        "Use only rows where {status} is {wanted}.",
        "Rows count only if {status} equals {wanted}.",
    ),
    "at-least": (
        "Use only rows where {quantity} is at least {least}.",
        "Rows with {quantity} below {least} do not count.",
    ),
    "half-even": (
        "Round each {amount} to a whole number, halves to the even one.",
        "Each {amount} is rounded to whole numbers with ties to even.",
    ),
    "half-up": (
        "Round each {amount} to a whole number, halves up.",
        "Each {amount} is rounded to whole numbers with ties upwards.",
    ),
    "largest-first": (
        "Put the group with the largest total first, equal totals by name.",
        "Sort by falling total, equal totals by name.",
    ),
}


def goal(case: Orders, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the source, each rule in the order of application, the grouping and the output."""
    _, group, status, quantity, amount = (f"`{name}`" for name in case.columns)
    said = say(
        _SENTENCES,
        rules,
        rng,
        ("rows",),
        thing=case.thing,
        amount=amount,
        status=status,
        quantity=quantity,
        wanted=f"`{case.status}`",
        least=f"`{case.quantity}`",
    )
    sorting = said.pop("largest-first", None)
    opening = rng.choice(("Summarise the {}s in", "Make a summary of the {}s in"))
    return (
        Requirement(
            sentence=f"{opening.format(case.thing)} `{case.source}`, which must not change.",
            checks=("input-unchanged",),
        ),
        Requirement(sentence=f"The first column identifies {_a(case.thing)}."),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *said.values(),
        Requirement(
            sentence=f"Group by {group}: count the rows and total {amount}, empty is 0 "
            f"(columns: {group}, count, total).",
            checks=("columns", "rows"),
        ),
        *([sorting.model_copy(update={"checks": ("order",)})] if sorting else []),
        Requirement(sentence=f"Save the result as `{case.output}`.", checks=("exists",)),
    )


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def reference(case: Orders, rules: Rules) -> Script:
    """Read, apply the rules in order, summarise, sort, write."""
    order, group, status, quantity, amount = case.columns
    steps = {
        "keep-last": ToolCall(tool="deduplicate", arguments={"column": order, "keep": "last"}),
        "keep-first": ToolCall(tool="deduplicate", arguments={"column": order, "keep": "first"}),
        "skip-missing": ToolCall(tool="drop-missing", arguments={"column": amount}),
        "only-status": ToolCall(
            tool="keep-equal", arguments={"column": status, "value": case.status}
        ),
        "at-least": ToolCall(
            tool="keep-at-least", arguments={"column": quantity, "value": str(case.quantity)}
        ),
        "half-even": ToolCall(tool="round", arguments={"column": amount, "ties": "half-even"}),
        "half-up": ToolCall(tool="round", arguments={"column": amount, "ties": "half-up"}),
    }
    sorting = {
        "largest-first": ToolCall(tool="sort", arguments={"order": "descending"}),
        "smallest-first": ToolCall(tool="sort", arguments={"order": "ascending"}),
    }
    return (
        ToolCall(tool="read-csv", arguments={"file": case.source}),
        *(call for rule, call in steps.items() if rule in rules),
        ToolCall(tool="summarise", arguments={"by": group, "column": amount}),
        *(call for rule, call in sorting.items() if rule in rules),
        ToolCall(tool="write-csv", arguments={"file": case.output}),
    )


def alternative(case: Orders, rules: Rules) -> Script:
    """Solve it in one pass by a program of its own."""
    arguments = {
        "source": case.source,
        "output": case.output,
        "rules": sorted(rules),
        "status": case.status,
        "quantity": case.quantity,
    }
    return by_python("orders", arguments)


def _kept(case: Orders, rules: Rules) -> list[Row]:
    """Return the rows that the rules leave, without the tools."""
    chosen = list(case.rows)
    if "keep-last" in rules:
        chosen = [r for i, r in enumerate(chosen) if all(r[0] != s[0] for s in chosen[i + 1 :])]
    if "keep-first" in rules:
        chosen = [r for i, r in enumerate(chosen) if all(r[0] != s[0] for s in chosen[:i])]
    if "skip-missing" in rules:
        chosen = [r for r in chosen if r[4] is not None]
    if "only-status" in rules:
        chosen = [r for r in chosen if r[2] == case.status]
    if "at-least" in rules:
        chosen = [r for r in chosen if r[3] >= case.quantity]
    return chosen


def target(case: Orders, rules: Rules) -> tuple[File, ...]:
    """Work the summary out in exact quarters, by name or in the order asked for."""
    counts: dict[str, int] = defaultdict(int)
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for _, group, _, _, quarters in _kept(case, rules):
        counts[group] += 1
        totals[group] += _rounded(Fraction(quarters or 0, 4), rules)
    names = sorted(counts)
    if {"largest-first", "smallest-first"} & rules:
        names.sort(key=lambda name: totals[name], reverse="largest-first" in rules)
    lines = [f"{case.columns[1]},count,total"]
    lines += [f"{name},{counts[name]},{float(totals[name])}" for name in names]
    return (File(path=case.output, content="\n".join(lines) + "\n"),)


def _rounded(amount: Fraction, rules: Rules) -> Fraction:
    """Round a non-negative amount; Python's `round` of a Fraction takes ties to even."""
    if "half-even" in rules:
        return Fraction(round(amount))
    if "half-up" in rules:
        return Fraction(int(amount + Fraction(1, 2)))
    return amount


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if "largest-first" in rules else base


FAMILY = Family(
    name="orders",
    tools=pick(
        TABLE_TOOLS,
        "read-csv",
        "deduplicate",
        "drop-missing",
        "keep-equal",
        "keep-at-least",
        "round",
        "summarise",
        "sort",
        "write-csv",
    ),
    rules={
        "keep-last": Axis.DUPLICATES,
        "keep-first": Axis.DUPLICATES,
        "skip-missing": Axis.MISSING,
        "only-status": Axis.SCOPE,
        "at-least": Axis.SCOPE,
        "half-even": Axis.ROUNDING,
        "half-up": Axis.ROUNDING,
        "largest-first": Axis.ORDER,
    },
    neighbours={
        "keep-last": "keep-first",
        "keep-first": "keep-last",
        "half-even": "half-up",
        "half-up": "half-even",
        "largest-first": "smallest-first",
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
