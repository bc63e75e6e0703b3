"""Probing difficulty: which tasks the parent policy tries, and how often."""

from collections.abc import Collection, Sequence

import numpy as np

from schemas.config import ProbeConfig
from schemas.task import TaskManifest


def choose_probes(
    pool: Sequence[TaskManifest],
    measured: Collection[str],
    config: ProbeConfig,
    rng: np.random.Generator,
) -> tuple[TaskManifest, ...]:
    """Return the tasks to probe at the current setting, families in equal parts.

    Args:
        pool: train tasks.
        measured: task ids that have a posterior at this setting already: they come last.
        config: how many tasks.
        rng: decides among equals.
    """
    shuffled = [pool[i] for i in rng.permutation(len(pool))]
    shuffled.sort(key=lambda task: task.task_id in measured)
    queues: dict[str, list[TaskManifest]] = {}
    for task in shuffled:
        queues.setdefault(task.family, []).append(task)
    ranked = [
        (rank, family, task) for family, queue in queues.items() for rank, task in enumerate(queue)
    ]
    ranked.sort(key=lambda item: item[:2])
    return tuple(task for _, _, task in ranked[: config.tasks])
