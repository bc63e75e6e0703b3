"""Proposing tasks: a founding pool, evaluation tasks, coverage, and what hypotheses ask for."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, islice

import numpy as np

from flywheel.errors import ConfigError, ManifestError
from flywheel.families import Family, Rules, make_task
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.splits import combination, split_of
from schemas.base import seed_from
from schemas.config import CycleConfig
from schemas.hypothesis import Hypothesis
from schemas.lineage import Split
from schemas.task import Source, SourceKind, TaskManifest

LICENCE = "Apache-2.0"
SEED_URI = "seed"


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


def cells(config: CycleConfig) -> tuple[Cell, ...]:
    """Return every cell of the configured families with at most `max_rules` rules.

    Raises:
        ConfigError: a family is unknown.
    """
    found = []
    for name in config.propose.families:
        family = family_called(name)
        for size in range(1, config.propose.max_rules + 1):
            for rules in map(frozenset, combinations(family.rules, size)):
                if family.allows(rules):
                    found.append(Cell(name, rules))
    return tuple(found)


def family_called(name: str) -> "Family[object]":
    """Return a family by name.

    Raises:
        ConfigError: there is none; the message lists those that ship.
    """
    if name not in FAMILIES:
        raise ConfigError(
            f"propose.families: no family {name!r}; there are {', '.join(sorted(FAMILIES))}"
        )
    return FAMILIES[name]


def holdout_uri(config: CycleConfig) -> str:
    """Return the source of the holdout tasks that are in force."""
    return f"holdout-{config.propose.holdout_generation}"


def wishes(
    config: CycleConfig, hypotheses: Sequence[Hypothesis], held: Collection[str]
) -> tuple[Wish, ...]:
    """Return what this cycle should propose.

    Args:
        config: the cycle's configuration.
        hypotheses: open ones; each gets `per_hypothesis` train tasks with its rules live.
        held: sources (uris) of the tasks that exist: the founding pool, dev and each generation
            of the holdout are made once.
    """
    by_split: dict[Split, list[Cell]] = {split: [] for split in Split}
    for cell in cells(config):
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
                )
            )
        left -= count
    if left:
        wanted.append(Wish(SourceKind.COVERAGE, Split.TRAIN, left, train, "coverage"))
    return tuple(wanted)


def propose(
    config: CycleConfig, wanted: Sequence[Wish], number: int, covered: Counter[str]
) -> tuple[TaskManifest, ...]:
    """Make the tasks wished for, least covered cells first; the same arguments, the same tasks.

    Args:
        config: families, budget and seed.
        wanted: what to make.
        number: the cycle's number, which sets the seeds apart.
        covered: how many tasks each cell has already.

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
        for index, cell in enumerate(islice(_least_covered(wish.cells, counts, rng), wish.count)):
            counts[cell.name] += 1
            seed = seed_from(config.seed, number, order, index) >> 32
            source = Source(
                kind=wish.kind,
                uri=wish.uri,
                licence=LICENCE,
                hypothesis=wish.hypothesis,
            )
            task = _made(family_called(cell.family), cell, seed, wish.split, config, source)
            if task is not None:
                made.append(task)
    return tuple(made)


def _least_covered(
    among: Sequence[Cell], counts: Mapping[str, int], rng: np.random.Generator
) -> Iterator[Cell]:
    """Go round the cells for ever, families in turn, least covered first, ties by chance."""
    shuffled = [among[i] for i in rng.permutation(len(among))]
    shuffled.sort(key=lambda cell: counts.get(cell.name, 0))
    families = {
        cell.family: cycle([c for c in shuffled if c.family == cell.family]) for cell in shuffled
    }
    for family in cycle(sorted(families)):
        yield next(families[family])


def _made(
    family: "Family[object]",
    cell: Cell,
    seed: int,
    split: Split,
    config: CycleConfig,
    source: Source,
) -> TaskManifest | None:
    """Make one task; None where this cell can't be live (another cell's turn will come)."""
    try:
        return make_task(family, cell.rules, seed, Lexicon(split), config.budget, source)
    except ManifestError:
        return None
