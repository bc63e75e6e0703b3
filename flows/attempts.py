"""Making attempts: one Prefect task a shard; a shard that is there is never made again."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.runtime import Room
from flywheel.attempt import make_setting
from flywheel.collect import Order, collect, infrastructure_faults
from flywheel.errors import FlywheelError
from flywheel.policy import Policy
from flywheel.store import Store, append, ingest_shards, read_shard, write_shard
from schemas.attempt import Attempt, AttemptKey, Purpose, Sampling
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

    Raises:
        CircuitBreaker: the share of infrastructure faults exceeds the configured one.
    """
    size = cycle.config.shard_size
    shards = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    paths = []
    with room.progress.bar(name, len(wanted)) as advance:
        for number, shard in enumerate(shards):
            digest = content_id("shard", [order.key for order in shard])
            path = folder / f"{name}-{number:03d}-{digest}.parquet"
            run = make_shard.with_options(task_run_name=f"{name}-shard-{number:03d}")
            paths.append(run(room, cycle, shard, policies, path, advance))
    made = tuple(attempt for path in paths for attempt in read_shard(path))
    _break_circuit(name, made, cycle.config.max_infra_share)
    append(store, [order.setting for order in wanted]) if store is room.store else None
    ingest_shards(store, paths)
    return made


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


def _break_circuit(name: str, made: Sequence[Attempt], limit: float) -> None:
    faults = infrastructure_faults(made)
    if len(faults) > limit * len(made):
        codes = sorted({f"{fault.stage.value}/{fault.code}" for fault in faults})
        raise CircuitBreaker(
            f"{name}: {len(faults)} of {len(made)} attempts ended in infrastructure faults "
            f"(allowed share {limit:g}): {', '.join(codes)}. First: {faults[0].evidence}. "
            "The attempts are kept in their shards; mend the cause and run the same command"
        )
