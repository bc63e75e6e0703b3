"""What a set of tasks covers: capabilities, kinds of rules, pairs of rules, and what it does not.

Wording, names and personas never count: two tasks that differ by them alone cover the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from flywheel.families import Axis, Family
from schemas.task import Capability, TaskManifest

Pair = frozenset[str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of tasks; a zero is something that no task asks for."""

    tasks: Mapping[str, int]
    """Family → tasks."""
    capabilities: Mapping[tuple[Capability, str], int]
    """Capability and family → tasks."""
    axes: Mapping[tuple[Axis, str], int]
    """Kind of rule and family → tasks."""
    pairs: Mapping[str, tuple[int, int]]
    """Family → pairs of rules that some task has live together, and pairs that can be."""
    things: Mapping[tuple[str, Capability], int]
    """Business object and capability → tasks; the empty name is the family's own object."""

    @property
    def gaps(self) -> list[str]:
        """What no task asks for, in words."""
        reached = {capability for (capability, _), count in self.capabilities.items() if count}
        used = {axis for (axis, _), count in self.axes.items() if count}
        return [
            *(f"capability {c.value}" for c in Capability if c not in reached),
            *(f"rules about {axis.value}" for axis in Axis if axis not in used),
            *(
                f"{of - got} of {of} rule pairs in {name}"
                for name, (got, of) in sorted(self.pairs.items())
                if got < of
            ),
        ]


def coverage(tasks: Sequence[TaskManifest], families: Iterable[Family[Any]]) -> Coverage:
    """Count what `tasks` cover of what `families` could."""
    by_name = {family.name: family for family in families}
    capabilities: Counter[tuple[Capability, str]] = Counter()
    axes: Counter[tuple[Axis, str]] = Counter()
    things: Counter[tuple[str, Capability]] = Counter()
    got: dict[str, set[Pair]] = {name: set() for name in by_name}
    for task in tasks:
        for capability in task.features.capabilities if task.features else ():
            capabilities[capability, task.family] += 1
            things[task.features.thing if task.features else "", capability] += 1
        if task.family in by_name:
            rules = by_name[task.family].rules  # another version of it may have had others
            axes.update((rules[rule], task.family) for rule in task.rules if rule in rules)
            got[task.family] |= pairs_of(task.rules)
    possible = {name: possible_pairs(family) for name, family in by_name.items()}
    return Coverage(
        tasks=Counter(task.family for task in tasks),
        capabilities=capabilities,
        axes=axes,
        pairs={name: (len(got[name] & pairs), len(pairs)) for name, pairs in possible.items()},
        things=things,
    )


def pairs_of(rules: Iterable[str]) -> set[Pair]:
    """Return the pairs of rules; a rule alone is the pair of itself."""
    members = sorted(rules)
    return {frozenset(pair) for pair in combinations(members, 2)} or {frozenset(members)}


def possible_pairs(family: Family[Any]) -> set[Pair]:
    """Return the pairs of rules that can be live together."""
    return {pair for pair in map(frozenset, combinations(family.rules, 2)) if family.allows(pair)}


def new_pairs(rules: Iterable[str], covered: Set[Pair]) -> int:
    """Return how many pairs of `rules` no task has yet."""
    return len(pairs_of(rules) - covered)
