"""Tasks by the dozen, outside a cycle, and telling a family's own tasks from those of strangers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import cycle

import numpy as np

from flywheel.errors import ConfigError, ManifestError
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair, make_task
from flywheel.propose import LICENCE, Families, cells, family_called, least_covered
from flywheel.splits import split_of
from schemas.base import seed_from
from schemas.lineage import Split
from schemas.task import Budget, Source, SourceKind, TaskManifest


def generated(families: Families, names: Iterable[str], seed: int) -> Iterator[TaskManifest]:
    """Yield training tasks for ever, families in turn, uncovered pairs of rules first.

    Raises:
        ConfigError: a family is unknown.
    """
    source = Source(kind=SourceKind.COVERAGE, uri=f"generated-{seed}", licence=LICENCE)
    train = [c for c in cells(families, names) if split_of(c.name) is Split.TRAIN]
    chosen = least_covered(train, Counter(), np.random.default_rng(seed))
    for index, cell in enumerate(chosen):
        with suppress(ManifestError):  # another cell's turn will come
            yield make_task(
                families[cell.family],
                cell.rules,
                seed_from(seed, index) >> 32,
                Lexicon(Split.TRAIN),
                Budget(),
                source,
            )


def paired(families: Families, name: str, rule: str, seed: int) -> Iterator[TaskManifest]:
    """Yield matched pairs for ever: a task with `rule` live, then the same case without it.

    Raises:
        ConfigError: the family is unknown, or has no such rule.
    """
    family = family_called(families, name)
    with_rule = [c for c in cells(families, [name]) if rule in c.rules and len(c.rules) > 1]
    if not with_rule:
        raise ConfigError(f"family {name}: no rule {rule!r}; there are {', '.join(family.rules)}")
    source = Source(kind=SourceKind.COVERAGE, uri=f"paired-{seed}", licence=LICENCE)
    for index, cell in enumerate(cycle(with_rule)):
        with suppress(ManifestError):
            number = seed_from(seed, index) >> 32
            lexicon = Lexicon(Split.TRAIN)
            yield from make_pair(family, cell.rules, rule, number, lexicon, Budget(), source)


def is_generated(families: Families, task: TaskManifest) -> bool:
    """Tell whether a task is, byte for byte, what one of these families makes.

    Whoever hands over a task can write any source into it; this can't be forged.
    """
    family = families.get(task.family)
    if family is None or task.family_version != family.version or task.features is None:
        return False
    for split in Split:
        lexicon = Lexicon(split, task.features.thing)
        with suppress(ManifestError):
            budget, source = task.brief.budget, task.source
            made = make_task(family, frozenset(task.rules), task.seed, lexicon, budget, source)
            if made.version_id == task.version_id:
                return True
    return False


def as_imported(task: TaskManifest) -> TaskManifest:
    """Return a task of unknown hands as what it is; see `is_generated` for those that are not."""
    source = Source.model_validate({**dict(task.source), "kind": SourceKind.IMPORTED})
    return task.with_source(source)
