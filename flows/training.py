"""Training arms side by side: a process each, which dies with its parent."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from flywheel.errors import TrainingError
from flywheel.train import train_sft
from schemas.config import TrainConfig
from schemas.training import PolicyVersion, SftExample


@dataclass(frozen=True, slots=True)
class TrainOrder:
    """What one arm is trained on."""

    parent: str
    rows: tuple[SftExample, ...]
    rehearsal: tuple[SftExample, ...]
    seed: int


def train_arms(
    folder: Path,
    wanted: Sequence[TrainOrder],
    config: TrainConfig,
    workers: int,
    on_arm: Callable[[], None],
) -> list[PolicyVersion]:
    """Train one version for each order, `workers` at a time, one thread each."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_alone) as pool:
        futures = [pool.submit(_train, folder, order, config) for order in wanted]
        for future in futures:
            future.add_done_callback(lambda _: on_arm())
        try:
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise TrainingError(
                "a training process was killed, likely for want of memory: lower workers or "
                "train.batch and run the same command"
            ) from error


def _train(folder: Path, order: TrainOrder, config: TrainConfig) -> PolicyVersion:
    return train_sft(folder, order.parent, order.rows, order.rehearsal, config, order.seed)


def _alone() -> None:
    """Use one thread, so that arms side by side are equal, and never outlive the parent."""
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
