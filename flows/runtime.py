"""Composition root: a configuration in, everything that the steps need out."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flows.progress import Progress
from flywheel.sandbox import Backend
from flywheel.sandbox.choose import open_backend
from flywheel.store import (
    Store,
    append,
    close,
    mark_stage,
    open_holdout,
    open_store,
    read,
    sweep,
    transaction,
)
from flywheel.tools import programs_for
from flywheel.train import untrained
from schemas.base import content_id
from schemas.config import Cycle, CycleConfig
from schemas.evaluation import Promotion
from schemas.task import ToolSpec

FINISHED = "cycle"
"""The stage whose mark says that a cycle is complete."""


@dataclass
class Room:
    """What one cycle works with. Only its owner process touches the store."""

    config: CycleConfig
    home: Path
    store: Store
    backend: Backend
    progress: Progress
    began: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    """Wall seconds of attempts, training and statistics: the rest is orchestration."""

    @property
    def policies(self) -> Path:
        """Folder of policy versions."""
        return self.home / "policies"

    def shards(self, cycle: Cycle) -> Path:
        """Folder of a cycle's shards."""
        return self.home / "shards" / cycle.cycle_id

    @property
    def holdout_shards(self) -> Path:
        """Folder of the holdout's shards, outside everything that is published."""
        return self.home / "holdout" / "shards"

    @contextmanager
    def open_holdout(self) -> Iterator[Store]:
        """Open the holdout's own file for one counted read."""
        store = open_holdout(self.home / "holdout" / "holdout.duckdb", clock=time.time)
        try:
            yield store
        finally:
            close(store)

    def environment_digest(self, tools: Sequence[ToolSpec]) -> str:
        """Return what a task's sandboxes are made of: backend and tool programs."""
        return content_id("env", self.backend.digest, programs_for(tools))

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count wall time towards `what`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings[what] = self.timings.get(what, 0.0) + time.perf_counter() - began

    def account(self) -> str:
        """Say where this process's wall time went; orchestration is all that is not named."""
        wall = time.perf_counter() - self.began
        rest = wall - sum(self.timings.values())
        named = "".join(f"{what} {seconds:.1f} s, " for what, seconds in self.timings.items())
        return f"{wall:.1f} s: {named}orchestration {rest:.1f} s ({100 * rest / wall:.0f} %)"


@contextmanager
def open_room(config: CycleConfig, progress: Progress) -> Iterator[Room]:
    """Open the store and the sandbox backend for one run.

    Raises:
        StoreError: another run holds the store.
        ConfigError: no sandbox backend works here.
    """
    home = Path(config.home)
    (home / "holdout").mkdir(parents=True, exist_ok=True)
    backend = open_backend(config.sandbox)
    store = open_store(home / "flywheel.duckdb", clock=time.time)
    try:
        yield Room(config=config, home=home, store=store, backend=backend, progress=progress)
    finally:
        close(store)


def begin(room: Room) -> Cycle:
    """Return the unfinished cycle, or start the next one from the promoted parent.

    What an interrupted run left behind (sandboxes, half-written shards) is removed first.
    """
    cycles = read(room.store, Cycle)
    if cycles and not _finished(room.store, cycles[-1]):
        cycle = cycles[-1]
        room.progress.say(f"{cycle.cycle_id} goes on where it was, with its own configuration")
    else:
        cycle = Cycle(
            number=len(cycles) + 1,
            parent=_parent(room),
            config=room.config,
            started_at=time.time(),
        )
        append(room.store, [cycle])
        room.progress.say(f"{cycle.cycle_id} starts from {cycle.parent}")
    room.config = cycle.config
    room.backend.reap(cycle.cycle_id)
    for folder in (room.shards(cycle), room.holdout_shards):
        sweep(folder)
    return cycle


def finish(room: Room, cycle: Cycle) -> None:
    """Mark the cycle complete."""
    seconds = time.time() - cycle.started_at
    with transaction(room.store):
        mark_stage(
            room.store, cycle.cycle_id, FINISHED, cycle.config_digest, seconds, room.account()
        )


def _parent(room: Room) -> str:
    promotions = read(room.store, Promotion)
    if promotions:
        return max(promotions, key=lambda promotion: promotion.cycle_id).next_parent
    policy = untrained(room.policies, room.config.seed)
    append(room.store, [policy])
    return policy.version


def _finished(store: Store, cycle: Cycle) -> bool:
    row = store.connection.execute(
        "SELECT 1 FROM stages WHERE cycle_id = ? AND stage = ?", [cycle.cycle_id, FINISHED]
    ).fetchone()
    return row is not None
