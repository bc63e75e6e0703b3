"""The tool-dependency graph: nodes are tools, an edge goes from what one leaves to who needs it."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Fact(StrEnum):
    """What may be true between two calls."""

    CSV = "csv"
    """There is a CSV file to load."""
    LOG = "log"
    """There is a log to load."""
    ROWS = "rows"
    """The table's rows are the source's."""
    COLUMNS = "columns"
    """The order of the table's columns is known."""
    REPEATS = "repeats"
    """A column has a value twice."""
    GAPS = "gaps"
    """A column has empty cells."""
    FRACTIONS = "fractions"
    """A column has numbers that are not whole."""
    NUMBERS = "numbers"
    """A column has numbers only."""
    NAMES = "names"
    """A column has names only."""
    MIXED = "mixed"
    """Rows of many kinds, of which one may be kept."""
    SPARE = "spare"
    """A name that can be spared."""
    LOW = "low"
    """Numbers that can be spared."""
    SUMMARY = "summary"
    """The table has one row a group, with a number last."""
    UNSORTED = "unsorted"
    """That table is in the order of its groups' names."""
    SAVED = "saved"
    """The result is in a file."""


Facts = frozenset[Fact]
_CELLS = {
    *(Fact.ROWS, Fact.REPEATS, Fact.GAPS, Fact.FRACTIONS),
    *(Fact.NUMBERS, Fact.NAMES, Fact.MIXED, Fact.SPARE, Fact.LOW),
}
_GROUPED = {Fact.SUMMARY, Fact.COLUMNS, Fact.UNSORTED, Fact.SPARE}


@dataclass(frozen=True)
class Node:
    """What a tool needs, what it leaves behind, and what is no longer true after it."""

    needs: Set[Fact]
    leaves: Set[Fact] = frozenset()
    takes: Set[Fact] = frozenset()


GRAPH = {
    "read-csv": Node({Fact.CSV}, _CELLS | {Fact.COLUMNS}, {Fact.CSV}),
    "read-log": Node({Fact.LOG}, _CELLS, {Fact.LOG}),
    "deduplicate": Node({Fact.REPEATS}, takes={Fact.REPEATS}),
    "drop-missing": Node({Fact.GAPS}, takes={Fact.GAPS}),
    "keep-equal": Node({Fact.MIXED, Fact.NAMES}, takes={Fact.MIXED}),
    "drop-equal": Node({Fact.SPARE, Fact.NAMES}, takes={Fact.SPARE}),
    "keep-at-least": Node({Fact.LOW, Fact.NUMBERS}, takes={Fact.LOW}),
    "round": Node({Fact.FRACTIONS}, takes={Fact.FRACTIONS}),
    "summarise": Node({Fact.ROWS, Fact.NAMES, Fact.NUMBERS}, _GROUPED, _CELLS - {Fact.NAMES}),
    "count": Node({Fact.ROWS, Fact.NAMES}, _GROUPED, _CELLS - {Fact.NAMES}),
    "sort": Node({Fact.UNSORTED}, takes={Fact.UNSORTED}),
    "write-csv": Node({Fact.COLUMNS}, {Fact.SAVED}),
    "write-json": Node({Fact.SUMMARY}, {Fact.SAVED}),
}
"""Tool → node, for the tools on one table."""


def edges() -> Iterator[tuple[str, str, Fact]]:
    """Yield each dependency: who leaves, who needs, and what."""
    for one, left in GRAPH.items():
        for other, node in GRAPH.items():
            for fact in sorted(left.leaves & node.needs):
                yield one, other, fact


def after(facts: Facts, tool: str) -> Facts:
    """Return what is true once `tool` was called."""
    return facts - GRAPH[tool].takes | GRAPH[tool].leaves


@cache
def next_tools(facts: Facts, left: int) -> tuple[str, ...]:
    """Return the tools that can be called now, if `left` calls are to end in saving, and only then.

    Empty: no way leads there.
    """
    return tuple(
        tool
        for tool, node in GRAPH.items()
        if node.needs <= facts
        and (Fact.SAVED in node.leaves) == (left == 1)
        and (left == 1 or next_tools(after(facts, tool), left - 1))
    )
