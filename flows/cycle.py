"""Where a cycle begins, goes on after an interruption, and ends."""

import time
from pathlib import Path

from flows.runtime import FINISHED, Room, unfinished
from flywheel.errors import ConfigError
from flywheel.store import append, close, mark_stage, open_store, read, sweep, transaction
from flywheel.train import sweep_versions, untrained
from schemas.config import Cycle, CycleConfig
from schemas.evaluation import Promotion


def begin(room: Room) -> Cycle:
    """Return the interrupted cycle, or start the next one from the promoted parent.

    What a killed run left behind (sandboxes, half-written files) is removed first.

    Raises:
        ConfigError: the interrupted cycle began in another environment, so that its receipts and
            settings would not hold for what is still to be done.
    """
    cycle = unfinished(room.store)
    if cycle is not None:
        if cycle.environment != room.environment:
            raise ConfigError(
                f"{cycle.cycle_id} began with sandbox {cycle.sandbox} ({cycle.environment}), which "
                f"is {room.environment} now (another Python, image or version of this program): "
                "bring that back, or close the cycle as abandoned with `flywheel run --abandon`"
            )
        room.progress.say(f"{cycle.cycle_id} goes on where it was, with its own configuration")
    else:
        cycle = Cycle(
            number=len(read(room.store, Cycle)) + 1,
            parent=_parent(room),
            config=room.config,
            sandbox=room.backend.name,
            environment=room.environment,
            started_at=time.time(),
        )
        append(room.store, [cycle])
        room.progress.say(f"{cycle.cycle_id} starts from {cycle.parent}")
    clean(room, cycle)
    return cycle


def clean(room: Room, cycle: Cycle) -> None:
    """Remove what killed runs left behind; what is still in use is not touched."""
    room.backend.reap()
    for folder in (room.shards(cycle), room.holdout_shards):
        sweep(folder)
    sweep_versions(room.policies)


def finish(room: Room, cycle: Cycle) -> None:
    """Mark the cycle complete; the next run starts the next one."""
    room.backend.reap()
    seconds = time.time() - cycle.started_at
    with transaction(room.store):
        mark_stage(
            room.store, cycle.cycle_id, FINISHED, cycle.config_digest, seconds, room.account()
        )


def abandon(config: CycleConfig) -> str:
    """Close the interrupted cycle without a verdict, and say so; what it made stays in the store.

    Raises:
        ConfigError: no cycle was interrupted.
    """
    store = open_store(Path(config.home) / "flywheel.duckdb", clock=time.time)
    try:
        cycle = unfinished(store)
        if cycle is None:
            raise ConfigError(f"{config.home}: no cycle is unfinished, there is none to abandon")
        with transaction(store):
            mark_stage(
                store, cycle.cycle_id, FINISHED, cycle.config_digest, 0.0, "abandoned: no verdict"
            )
    finally:
        close(store)
    return f"{cycle.cycle_id} is abandoned: its parent {cycle.parent} stays the parent"


def _parent(room: Room) -> str:
    promotions = read(room.store, Promotion)
    if promotions:
        return max(promotions, key=lambda promotion: promotion.cycle_id).next_parent
    policy = untrained(room.policies, room.config.seed)
    append(room.store, [policy])
    return policy.version
