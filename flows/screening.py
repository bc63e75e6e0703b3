"""Screening many tasks: exploit controls once a family, then shards of tasks, each recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from time import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.attempts import trip
from flows.runtime import Room, screening_version
from flywheel.errors import FlywheelError
from flywheel.screen import Screening
from flywheel.screen import screen as screen_task
from flywheel.screen.exploits import control, control_id
from flywheel.screen.receipt import receipt
from flywheel.store import append, read, transaction
from schemas.attempt import InfraStage, InfraStatus
from schemas.screening import (
    CheckKind,
    ControlReport,
    ReviewItem,
    ScreenCheck,
    ScreenVerdict,
)
from schemas.task import UNTRUSTED, TaskManifest

Controls = Mapping[str, ControlReport]
"""By control id."""


def screen_all(room: Room, run_id: str, tasks: Sequence[TaskManifest]) -> list[InfraStatus]:
    """Screen tasks and record receipts, references and what waits for a person, shard by shard.

    A run that was interrupted goes on: what is recorded is not among `tasks` the next time.

    Returns:
        The faults of the infrastructure; see `stop_at_faults`. An image that is missing or that
        this backend can't run is none: it is the task's, which stays unscreened.
    """
    size, faults = room.config.shard_size, list[InfraStatus]()
    controls = control_families(room, tasks)
    with room.progress.bar("screen", len(tasks)) as advance:
        for number, start in enumerate(range(0, len(tasks), size)):
            shard = tasks[start : start + size]
            run = screen_shard.with_options(task_run_name=f"screen-shard-{number:03d}")
            done, made = run(room, run_id, shard, controls, advance)
            with transaction(room.store):
                append(room.store, _whole(made))
                append(room.store, [screening.report for screening in done])
                append(room.store, [made.reference for made in done if made.reference])
                append(room.store, _for_review(shard, done))
            faults += [s.fault for s in done if s.fault and s.fault.stage is not InfraStage.IMAGE]
    return faults


def stop_at_faults(room: Room, faults: Sequence[InfraStatus], total: int) -> None:
    """Go on, unless too many of `total` tasks met a fault.

    Raises:
        CircuitBreaker: too many sandboxes failed.
    """
    if len(faults) > room.config.max_infra_share * total:
        trip("screen", faults, total, room.config.max_infra_share)


def control_families(room: Room, tasks: Iterable[TaskManifest]) -> Controls:
    """Return the controls that there are; first try the exploits where a family lacks them.

    A stranger's task has controls of its own, which are tried once all else is well with it.
    """
    known = {report.control_id: report for report in read(room.store, ControlReport)}
    wanted: dict[str, tuple[TaskManifest, str]] = {}
    for manifest in tasks:
        digest = room.environment_digest(manifest.brief.tools)
        identity = control_id(manifest, digest)
        if identity not in known and manifest.source.kind not in UNTRUSTED:
            wanted.setdefault(identity, (manifest, digest))
    with room.progress.bar("controls", len(wanted)) as advance:
        made = control_shard(room, list(wanted.values()), advance) if wanted else []
    return known | {report.control_id: report for report in made}


def _whole(made: Sequence[ControlReport]) -> list[ControlReport]:
    """Return the controls of which none was kept from being tried: the others are tried again."""
    return [report for report in made if all(c.killed is not None for c in report.controls)]


@task(name="exploit-controls", cache_policy=NO_CACHE)
def control_shard(
    room: Room, wanted: Sequence[tuple[TaskManifest, str]], advance: Callable[[], None]
) -> list[ControlReport]:
    """Try the exploits on one task of each family; each report is recorded as soon as it is there.

    Whoever interrupts has to try only the others again.
    """
    done = []
    with room.timed("attempts"), ThreadPoolExecutor(room.config.workers) as workers:
        tasks, digests = zip(*wanted, strict=True)
        for report in workers.map(partial(control, open_sandbox=room.backend.open), tasks, digests):
            append(room.store, _whole([report]))
            done.append(report)
            advance()
    return done


@task(name="screen-shard", cache_policy=NO_CACHE)
def screen_shard(
    room: Room,
    run_id: str,
    tasks: Sequence[TaskManifest],
    controls: Controls,
    advance: Callable[[], None],
) -> tuple[list[Screening], list[ControlReport]]:
    """Screen one shard of tasks; return what came of each, and controls made on the way."""
    done, made = list[Screening](), list[ControlReport]()
    with room.timed("attempts"), ThreadPoolExecutor(room.config.workers) as workers:
        for screening, own in workers.map(partial(_screen_one, room, run_id, controls), tasks):
            done.append(screening)
            made += own
            advance()
    return done, made


def _screen_one(
    room: Room, run_id: str, controls: Controls, manifest: TaskManifest
) -> tuple[Screening, list[ControlReport]]:
    """Screen one task, again where a sandbox failed; return controls made for it alone, too.

    Whatever a task brings about is its own: the others are screened all the same.
    """
    digest, made = room.environment_digest(manifest.brief.tools), list[ControlReport]()

    def cited() -> ControlReport:
        known = controls.get(control_id(manifest, digest))
        if known is None:
            made.append(control(manifest, digest, room.backend.open))
        return known or made[-1]

    for _ in range(room.config.retries + 1):
        try:
            screening = screen_task(
                manifest,
                room.backend.open,
                digest,
                run_id,
                time,
                cited,
                room.backend.search_image,
                room.own_checks,
            )
        except FlywheelError as error:
            evidence = f"{type(error).__name__}: {error}"
            lost = ScreenCheck(kind=CheckKind.BOOTS, passed=None, evidence=evidence)
            screening = Screening(receipt(manifest, digest, [lost], (), 0, 0.0), None)
        if screening.fault is None or not screening.fault.retryable:
            break
    return _stamped(screening, screening_version(room.plugins)), made


def _stamped(screening: Screening, version: str) -> Screening:
    """Return it with a receipt that hangs on the version of screening, too."""
    report = screening.report.model_copy(update={"harness_version": version})
    return replace(screening, report=report)


def _for_review(tasks: Sequence[TaskManifest], done: Sequence[Screening]) -> list[ReviewItem]:
    """Return what a person has to look at."""
    return [
        ReviewItem(
            version_id=manifest.version_id,
            name=f"{manifest.family} {manifest.source.uri}",
            reason=screening.report.reason,
            evidence=screening.report.evidence,
            raised_at=time(),
        )
        for manifest, screening in zip(tasks, done, strict=True)
        if screening.report.verdict is ScreenVerdict.QUARANTINED
    ]
