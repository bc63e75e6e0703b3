"""The table that a walk starts from, and the calls that its actual state allows."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from random import Random

from flywheel.families.lexicon import Lexicon
from flywheel.walk.graph import Fact, Facts
from schemas.file import File
from schemas.tool import ToolCall

LEAST_ROWS = 3
"""A step that leaves fewer is not taken."""
LEAST_SPAN = 2
"""Of numbers that a threshold is drawn from, so that each split has one."""


@dataclass(frozen=True, slots=True)
class Start:
    """A file to start from."""

    file: File
    facts: Facts
    columns: tuple[str, ...]
    """Words of the lexicon: what a call may name."""
    output: str
    """Name of the file to be made, without extension."""


@dataclass(frozen=True, slots=True)
class Table:
    """What the tools keep between calls."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, data: bytes) -> "Table":
        """Read the state file of the table tools."""
        header, *rows = csv.reader(io.StringIO(data.decode("utf-8"), newline=""))
        return cls(tuple(header), tuple(map(tuple, rows)))

    def cells(self, column: str) -> tuple[str, ...]:
        """Return a column."""
        at = self.header.index(column)
        return tuple(row[at] for row in self.rows)


def draw(rng: Random, lexicon: Lexicon) -> Start:
    """Draw 28 to 40 rows as CSV or log: a key with repeats, two names, an amount, a quantity."""
    words = lexicon.words(rng, 16)
    keys = [f"{words[2][:2]}{number}" for number in rng.sample(range(100, 999), 24)]
    rows = [
        (
            rng.choice(keys) if number > 19 else keys[number],
            rng.choice(words[7:11]),
            rng.choice(words[11:16]),
            rng.choice(["", *(f"{rng.randrange(4, 240) / 4:.2f}" for _ in range(4))]),
            str(rng.randrange(1, 40)),
        )
        for number in range(rng.randrange(28, 41))
    ]
    order = rng.sample(range(5), 5)
    columns = tuple(words[2 + at] for at in order)
    cells = [[row[at] for at in order] for row in rows]
    log = rng.random() < 0.5
    lines = [_fields(columns, row) if log else ",".join(row) for row in cells]
    text = "\n".join(lines if log else [",".join(columns), *lines]) + "\n"
    return Start(
        file=File(path=f"{words[0]}.{'log' if log else 'csv'}", content=text),
        facts=frozenset({Fact.LOG if log else Fact.CSV}),
        columns=columns,
        output=words[1],
    )


def _fields(columns: tuple[str, ...], row: list[str]) -> str:
    pairs = zip(columns, row, strict=True)
    return " ".join(f"{name}={cell}" for name, cell in pairs if cell != "")


def choose(
    tool: str, start: Start, table: Table | None, rng: Random, lexicon: Lexicon
) -> ToolCall | None:
    """Return a call of `tool` that the table's state allows; None where it allows none.

    Columns and values are those of the source, so that operands are words of the lexicon;
    thresholds are its numbers.
    """
    if tool.startswith("read-"):
        return ToolCall(tool=tool, arguments={"file": start.file.path})
    if tool.startswith("write-"):
        return ToolCall(tool=tool, arguments={"file": f"{start.output}.{tool[6:]}"})
    if table is None:
        return None
    able = list(_arguments(tool, start, table, rng, lexicon))
    return ToolCall(tool=tool, arguments=rng.choice(able)) if able else None


def _arguments(
    tool: str, start: Start, table: Table, rng: Random, lexicon: Lexicon
) -> Iterator[dict[str, str]]:
    columns = {name: table.cells(name) for name in table.header if name in start.columns}
    names = {name for name, cells in columns.items() if all(cell.isalpha() for cell in cells)}
    numbers = {name for name, cells in columns.items() if all(map(_number_or_gap, cells))}
    full = {name for name, cells in columns.items() if "" not in cells}
    match tool:
        case "deduplicate":
            yield from (
                {"column": name, "keep": keep}
                for name, keep in product(sorted(full - numbers), ("first", "last"))
                if len(columns[name]) / 2 < len(set(columns[name])) < len(columns[name])
            )
        case "drop-missing":
            yield from ({"column": name} for name in columns if name not in full)
        case "keep-equal" | "drop-equal":
            for name in sorted(names):
                for value, times in sorted(Counter(columns[name]).items()):
                    left = times if tool == "keep-equal" else len(table.rows) - times
                    if LEAST_ROWS <= left < len(table.rows):
                        yield {"column": name, "value": value}
        case "keep-at-least":
            for name in sorted(numbers & full):
                found = sorted(int(Decimal(cell)) for cell in columns[name])
                low, middle = found[0] + 1, found[len(found) // 2]
                if middle - low >= LEAST_SPAN:
                    yield {"column": name, "value": str(lexicon.number(rng, low, middle))}
        case "round":
            fractions = [name for name in sorted(numbers) if any("." in c for c in columns[name])]
            yield from (
                {"column": name, "ties": ties}
                for name, ties in product(fractions, ("half-even", "half-up"))
            )
        case "summarise":
            yield from (
                {"by": by, "column": column}
                for by, column in product(sorted(names), sorted(numbers))
                if len(set(columns[by])) >= LEAST_ROWS
            )
        case "count":
            yield from ({"by": by} for by in sorted(names) if len(set(columns[by])) >= LEAST_ROWS)
        case "sort":
            yield from ({"order": order} for order in ("ascending", "descending"))


def _number_or_gap(cell: str) -> bool:
    return cell.replace(".", "", 1).isdigit() or cell == ""
