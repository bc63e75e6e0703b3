"""Making attempts: one Prefect task a shard; a shard that is there is never made again."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.runtime import Room
from flywheel.attempt import make_setting
from flywheel.collect import Order, collect, infrastructure_faults, order_again
from flywheel.errors import FlywheelError
from flywheel.policy import Policy
from flywheel.store import Store, append, ingest_shards, read_attempts, read_shard, write_shard
from schemas.attempt import Attempt, AttemptKey, InfraStatus, Purpose, Sampling
from schemas.base import content_id
from schemas.config import Cycle
from schemas.task import TaskManifest


class CircuitBreaker(FlywheelError):
    """Too many infrastructure faults: the cycle stops before they are taken for the model's."""


def orders(
    room: Room,
    cycle: Cycle,
    purpose: Purpose,
    arm: str,
    policy_version: str,
    sampling: Sampling,
    indexed: Sequence[tuple[TaskManifest, int]],
) -> list[Order]:
    """Return one order for each task and index."""
    made = []
    for manifest, index in indexed:
        digest = room.environment_digest(manifest.brief.tools)
        setting = make_setting(manifest, policy_version, digest, sampling)
        key = AttemptKey(
            run_id=cycle.cycle_id,
            purpose=purpose,
            arm=arm,
            task_id=manifest.task_id,
            version_id=manifest.version_id,
            setting_id=setting.setting_id,
            index=index,
        )
        made.append(Order(task=manifest, setting=setting, key=key))
    return made


def fulfil(
    room: Room,
    cycle: Cycle,
    name: str,
    wanted: Sequence[Order],
    policies: Mapping[str, Policy],
    store: Store,
    folder: Path,
) -> tuple[Attempt, ...]:
    """Make the attempts ordered, shard by shard, load them into `store` and return them.

    Where an earlier run stopped at too many infrastructure faults, the orders that ended in one
    are tried again; all tries are kept.

    Raises:
        CircuitBreaker: the share of infrastructure faults exceeds the configured one.
    """
    limit = cycle.config.max_infra_share
    made, paths, fresh = _make(room, cycle, name, wanted, policies, folder)
    while len(faults := infrastructure_faults(made)) > limit * len(wanted):
        if fresh:
            trip(name, faults, len(wanted), limit)
        again = [order_again(o, tries) for o in wanted if faulted(tries := _tries_of(o, made))]
        more, further, fresh = _make(room, cycle, name, again, policies, folder)
        made, paths = (*made, *more), [*paths, *further]
    if store is room.store:
        append(store, [order.setting for order in wanted])
    ingest_shards(store, paths)
    return made


def collected(room: Room, cycle: Cycle, *, trajectories: bool) -> tuple[Attempt, ...]:
    """Return every try that a cycle collected, from the store."""
    mine = "run_id = ? AND purpose = 'collect'"
    return read_attempts(room.store, mine, [cycle.cycle_id], trajectories=trajectories)


def trip(name: str, faults: Sequence[InfraStatus], total: int, limit: float) -> None:
    """Stop the cycle.

    Raises:
        CircuitBreaker: always; it says which faults, and that nothing is lost.
    """
    codes = sorted({f"{fault.stage.value}/{fault.code}" for fault in faults})
    raise CircuitBreaker(
        f"{name}: {len(faults)} of {total} ended in infrastructure faults (allowed share "
        f"{limit:g}): {', '.join(codes)}. First: {faults[0].evidence}. What was made is kept: "
        "mend the cause and run the same command"
    )


def faulted(tries: Sequence[Attempt]) -> bool:
    """Tell whether the last of an order's tries ended in an infrastructure fault."""
    return bool(infrastructure_faults(tries))


def _tries_of(order: Order, made: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in made if a.key.model_copy(update={"try_number": 0}) == order.key]


def _make(
    room: Room,
    cycle: Cycle,
    name: str,
    wanted: Sequence[Order],
    policies: Mapping[str, Policy],
    folder: Path,
) -> tuple[tuple[Attempt, ...], list[Path], bool]:
    """Return the attempts, their shards, and whether any shard had to be made."""
    size = cycle.config.shard_size
    shards = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    paths, fresh = [], False
    with room.progress.bar(name, len(wanted)) as advance:
        for number, shard in enumerate(shards):
            digest = content_id("shard", [order.key for order in shard])
            path = folder / f"{name}-{number:03d}-{digest}.parquet"
            fresh = fresh or not path.exists()
            run = make_shard.with_options(task_run_name=f"{name}-shard-{number:03d}")
            paths.append(run(room, cycle, shard, policies, path, advance))
    return tuple(attempt for path in paths for attempt in read_shard(path)), paths, fresh


@task(name="attempt-shard", cache_policy=NO_CACHE, retries=1, retry_delay_seconds=2)
def make_shard(
    room: Room,
    cycle: Cycle,
    shard: Sequence[Order],
    policies: Mapping[str, Policy],
    path: Path,
    advance: Callable[[], None],
) -> Path:
    """Make one shard of attempts, unless it is there already."""
    if path.exists():
        for _ in shard:
            advance()
        return path
    by_policy: dict[str, list[Order]] = {}
    for order in shard:
        by_policy.setdefault(order.setting.policy_version, []).append(order)
    with room.timed("attempts"):
        made = [
            attempt
            for version, group in by_policy.items()
            for attempt in collect(
                group,
                policies[version],
                room.backend.open,
                time,
                workers=cycle.config.workers,
                retries=cycle.config.retries,
                on_attempt=advance,
            )
        ]
    return write_shard(path, made)
