"""Rows 1 to 3 of the loop: propose, fingerprint and split, screen."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import time

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.attempts import trip
from flows.pool import load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flywheel.propose import propose as propose_tasks
from flywheel.propose import wishes
from flywheel.screen import Screening
from flywheel.screen import screen as screen_task
from flywheel.splits import assign_splits, combination, fingerprint, lineage
from flywheel.store import append, read, transaction
from schemas.attempt import InfraStatus
from schemas.config import Cycle
from schemas.hypothesis import Hypothesis, HypothesisVerdict, Judgement
from schemas.lineage import Fingerprint, SplitAssignment
from schemas.task import ScreenVerdict, TaskManifest

MAX_CHANCES = 2
"""Cycles that a hypothesis gets to be tested in."""


def open_hypotheses(room: Room) -> tuple[Hypothesis, ...]:
    """Return the hypotheses without a verdict, and those that one cycle could not test."""
    verdicts: dict[str, list[Judgement]] = {}
    for verdict in read(room.store, HypothesisVerdict):
        verdicts.setdefault(verdict.hypothesis_id, []).append(verdict.judgement)
    return tuple(
        h
        for h in read(room.store, Hypothesis)
        if set(found := verdicts.get(h.hypothesis_id, [])) <= {Judgement.NOT_TESTED}
        and len(found) < MAX_CHANCES
    )


@step("propose")
def propose(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Families and open hypotheses in, new task manifests out."""
    known = read(room.store, TaskManifest)
    held = {task.source.uri for task in known}
    covered = Counter(combination(task.family, task.rules) for task in known)
    wanted = wishes(cycle.config, open_hypotheses(room), held)
    tasks = propose_tasks(cycle.config, wanted, cycle.number, covered)
    kinds = Counter(task.source.kind.value for task in tasks)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return [tasks], f"{len(tasks)} tasks of {sum(wish.count for wish in wanted)} asked ({counts})"


@step("split")
def split(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Manifests in; fingerprints, lineage and split assignments out."""
    known = read(room.store, SplitAssignment)
    seen = {event.version_id for event in known}
    tasks = [task for task in read(room.store, TaskManifest) if task.version_id not in seen]
    marks = [fingerprint(task) for task in tasks]
    by_task = {mark.task_id: mark for mark in (*read(room.store, Fingerprint), *marks)}
    events = assign_splits(tasks, known, by_task, cycle.cycle_id)
    edges = [edge for task in tasks for edge in lineage(task)]
    splits = Counter(event.split.value for event in events if event.admitted)
    kept_out = Counter(event.reason for event in events if not event.admitted)
    said = ", ".join(f"{count} {name}" for name, count in sorted(splits.items()))
    return [marks, edges, events], f"{said}; kept out: {tally(kept_out)}"


@step("screen")
def screen(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Manifests in, receipts and reference attempts out, by execution; recorded shard by shard."""
    tasks, size = load_pool(room).unscreened(), cycle.config.shard_size
    faults: list[InfraStatus] = []
    with room.progress.bar("screen", len(tasks)) as advance:
        for number, start in enumerate(range(0, len(tasks), size)):
            run = screen_shard.with_options(task_run_name=f"screen-shard-{number:03d}")
            done = run(room, cycle, tasks[start : start + size], advance)
            with transaction(room.store):
                append(room.store, [screening.report for screening in done])
                append(room.store, [made for screening in done for made in screening.references])
            faults += [screening.fault for screening in done if screening.fault is not None]
    if len(faults) > cycle.config.max_infra_share * len(tasks):
        trip("screen", faults, len(tasks), cycle.config.max_infra_share)
    return [], _screened(room, cycle)


@task(name="screen-shard", cache_policy=NO_CACHE)
def screen_shard(
    room: Room, cycle: Cycle, tasks: Sequence[TaskManifest], advance: Callable[[], None]
) -> list[Screening]:
    """Screen one shard of tasks."""
    done = []
    with room.timed("attempts"), ThreadPoolExecutor(cycle.config.workers) as workers:
        for screening in workers.map(partial(_screen_one, room, cycle), tasks):
            done.append(screening)
            advance()
    return done


def _screen_one(room: Room, cycle: Cycle, manifest: TaskManifest) -> Screening:
    """Screen one task, again where a sandbox failed."""
    digest = room.environment_digest(manifest.brief.tools)
    for _ in range(cycle.config.retries + 1):
        screening = screen_task(manifest, room.backend.open, digest, cycle.cycle_id, time)
        if screening.fault is None or not screening.fault.retryable:
            break
    return screening


def _screened(room: Room, cycle: Cycle) -> str:
    """Say what screening came to for the tasks proposed in this cycle."""
    pool = load_pool(room)
    mine = [
        pool.receipts.get(version)
        for version, event in pool.admitted.items()
        if event.cycle_id == cycle.cycle_id
    ]
    reports = [report for report in mine if report is not None]
    out = Counter(r.reason for r in reports if r.verdict is not ScreenVerdict.ACCEPTED)
    out.update({"unscreened": len(mine) - len(reports)} if len(mine) > len(reports) else {})
    killed, mutants = sum(r.mutants_killed for r in reports), sum(r.mutants for r in reports)
    accepted = sum(report.verdict is ScreenVerdict.ACCEPTED for report in reports)
    said = f"{accepted} of {len(mine)} accepted; out: {tally(out)}; "
    return said + f"{killed} of {mutants} mutants failed"
