"""Proposing tasks: a founding pool, evaluation tasks, coverage, and what hypotheses ask for."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from flywheel.coverage import new_pairs, pairs_of
from flywheel.errors import ConfigError, ManifestError
from flywheel.families import Family, Rules
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair, make_task
from flywheel.splits import combination, split_of
from schemas.base import seed_from
from schemas.config import CycleConfig
from schemas.hypothesis import Hypothesis
from schemas.lineage import Split
from schemas.task import Source, SourceKind, TaskManifest

LICENCE = "Apache-2.0"
SEED_URI = "seed"
TWIN_SHARE = 5
"""One in so many of a hypothesis's tasks is the twin of another: the same case without the rule."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A family with a set of rules that can be live together."""

    family: str
    rules: Rules

    @property
    def name(self) -> str:
        """`family:rule+rule`."""
        return combination(self.family, self.rules)


@dataclass(frozen=True, slots=True)
class Wish:
    """Where tasks are wanted, and how many."""

    kind: SourceKind
    split: Split
    count: int
    cells: tuple[Cell, ...]
    uri: str
    """Source of the tasks."""
    hypothesis: str | None = None
    twins: int = 0
    """How many of them are the twins of others: the same case without a rule asked for."""
    asked: Rules = frozenset()
    """The rules that a hypothesis asks for."""


Families = Mapping[str, Family[Any]]


def cells(
    families: Families, names: Iterable[str], max_rules: int = 3, axes: Collection[str] = ()
) -> tuple[Cell, ...]:
    """Return every cell of the families named, with at most `max_rules` rules of kinds `axes`.

    Raises:
        ConfigError: a family is unknown.
    """
    found = []
    for name in names:
        family = family_called(families, name)
        wanted = [rule for rule, axis in family.rules.items() if not axes or axis in axes]
        for size in range(1, max_rules + 1):
            for rules in map(frozenset, combinations(wanted, size)):
                if family.allows(rules):
                    found.append(Cell(name, rules))
    return tuple(found)


def family_called(families: Families, name: str) -> Family[Any]:
    """Return a family by name.

    Raises:
        ConfigError: there is none; the message lists those that are known.
    """
    if name not in families:
        raise ConfigError(f"families: no family {name!r}; there are {', '.join(sorted(families))}")
    return families[name]


def holdout_uri(config: CycleConfig) -> str:
    """Return the source of the holdout tasks that are in force."""
    return f"holdout-{config.propose.holdout_generation}"


def wishes(
    config: CycleConfig,
    hypotheses: Sequence[Hypothesis],
    held: Collection[str],
    families: Families = FAMILIES,
) -> tuple[Wish, ...]:
    """Return what this cycle should propose.

    Args:
        config: the cycle's configuration.
        hypotheses: open ones; each gets `per_hypothesis` train tasks with its rules live.
        held: sources (uris) of the tasks that exist: the founding pool, dev and each generation
            of the holdout are made once.
        families: by name.
    """
    asked_for = config.propose
    by_split: dict[Split, list[Cell]] = {split: [] for split in Split}
    for cell in cells(families, asked_for.families, asked_for.max_rules, asked_for.axes):
        by_split[split_of(cell.name)].append(cell)
    train = tuple(by_split[Split.TRAIN])
    seed_rules = frozenset(config.propose.seed_rules)
    founding = tuple(c for c in train if not seed_rules or c.rules <= seed_rules)
    wanted = []
    if SEED_URI not in held:
        count = config.propose.seed_tasks
        wanted.append(Wish(SourceKind.SEED, Split.TRAIN, count, founding, SEED_URI))
    for kind, split, count, uri in (
        (SourceKind.EVALUATION, Split.DEV, config.propose.dev_tasks, "dev"),
        (SourceKind.HOLDOUT, Split.HOLDOUT, config.propose.holdout_tasks, holdout_uri(config)),
    ):
        if uri not in held:
            wanted.append(Wish(kind, split, count, tuple(by_split[split]), uri))
    left = config.propose.new_tasks
    for hypothesis in hypotheses:
        asked = frozenset(hypothesis.change.rules)
        matching = tuple(
            c for c in train if c.family == hypothesis.change.family and asked <= c.rules
        )
        count = min(left, config.propose.per_hypothesis) if matching else 0
        if count:
            wanted.append(
                Wish(
                    SourceKind.HYPOTHESIS,
                    Split.TRAIN,
                    count,
                    matching,
                    "hypothesis",
                    hypothesis.hypothesis_id,
                    twins=count // TWIN_SHARE if asked else 0,
                    asked=asked,
                )
            )
        left -= count
    if left:
        wanted.append(Wish(SourceKind.COVERAGE, Split.TRAIN, left, train, "coverage"))
    return tuple(wanted)


def propose(
    config: CycleConfig,
    wanted: Sequence[Wish],
    number: int,
    covered: Counter[str],
    families: Families = FAMILIES,
) -> tuple[TaskManifest, ...]:
    """Make the tasks wished for, least covered cells first; the same arguments, the same tasks.

    Args:
        config: families, budget and seed.
        wanted: what to make.
        number: the cycle's number, which sets the seeds apart.
        covered: how many tasks each cell has already.
        families: by name.

    Raises:
        ConfigError: a wish has no cell to make tasks in.
    """
    made: list[TaskManifest] = []
    counts = Counter(covered)
    for order, wish in enumerate(wanted):
        if not wish.cells:
            raise ConfigError(
                f"propose: no {wish.split.value} cell for {wish.kind.value} tasks; allow more "
                "families, more rules (seed_rules) or a larger max_rules"
            )
        rng = np.random.default_rng(seed_from(config.seed, number, order, wish.kind))
        chosen = least_covered(wish.cells, counts, rng)
        for index, cell in enumerate(islice(chosen, wish.count - wish.twins)):
            seed = seed_from(config.seed, number, order, index) >> 32
            family = family_called(families, cell.family)
            twin = index < wish.twins and len(cell.rules) > 1  # without its only rule, no task
            made += _made(family, cell, seed, wish, config, with_twin=twin, index=index)
    return tuple(made)


def least_covered(
    among: Sequence[Cell], counts: Counter[str], rng: np.random.Generator
) -> Iterator[Cell]:
    """Go round the cells for ever, families in turn, and count them in `counts`.

    Next is the cell with the most pairs of rules that no task has yet, so that rules are covered
    pairwise before they are covered deeper; then the least covered one, ties by chance.
    """
    shuffled = [among[i] for i in rng.permutation(len(among))]
    covered = {cell.family: set[frozenset[str]]() for cell in among}
    for cell in (cell for cell in among if counts[cell.name]):
        covered[cell.family] |= pairs_of(cell.rules)
    while True:
        for family in sorted(covered):
            cell = min(
                (cell for cell in shuffled if cell.family == family),
                key=lambda cell: (-new_pairs(cell.rules, covered[cell.family]), counts[cell.name]),
            )
            counts[cell.name] += 1
            covered[family] |= pairs_of(cell.rules)
            yield cell


def _made(
    family: Family[Any],
    cell: Cell,
    seed: int,
    wish: Wish,
    config: CycleConfig,
    *,
    with_twin: bool,
    index: int,
) -> list[TaskManifest]:
    """Make one task, or a pair; none where this cell can't be live (another's turn will come)."""
    things = config.propose.things
    lexicon = Lexicon(wish.split, things[index % len(things)] if things else "")
    source = Source(kind=wish.kind, uri=wish.uri, licence=LICENCE, hypothesis=wish.hypothesis)
    try:
        if with_twin:
            rule = min(wish.asked)
            return [*make_pair(family, cell.rules, rule, seed, lexicon, config.budget, source)]
        return [make_task(family, cell.rules, seed, lexicon, config.budget, source)]
    except ManifestError:
        return []
