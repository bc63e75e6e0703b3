"""Rows 1 to 3 of the loop: propose, fingerprint and split, screen."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import time

from flows.pool import load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flywheel.propose import propose as propose_tasks
from flywheel.propose import wishes
from flywheel.screen import Screening
from flywheel.screen import screen as screen_task
from flywheel.splits import assign_splits, combination, fingerprint, lineage
from flywheel.store import read
from schemas.config import Cycle
from schemas.hypothesis import Hypothesis, HypothesisVerdict
from schemas.lineage import Fingerprint, SplitAssignment
from schemas.task import ScreenReport, ScreenVerdict, TaskManifest


def open_hypotheses(room: Room) -> tuple[Hypothesis, ...]:
    """Return the hypotheses that no cycle has judged."""
    judged = {verdict.hypothesis_id for verdict in read(room.store, HypothesisVerdict)}
    return tuple(h for h in read(room.store, Hypothesis) if h.hypothesis_id not in judged)


@step("propose")
def propose(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Families and open hypotheses in, new task manifests out."""
    known = read(room.store, TaskManifest)
    held = Counter(task.source.kind for task in known)
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
    """Manifests in, receipts and reference attempts out, by execution."""
    tasks = load_pool(room).unscreened()
    done: list[Screening] = []
    with (
        room.timed("attempts"),
        room.progress.bar("screen", len(tasks)) as advance,
        ThreadPoolExecutor(cycle.config.workers) as workers,
    ):
        for screening in workers.map(partial(_screen_one, room, cycle), tasks):
            done.append(screening)
            advance()
    reports: list[ScreenReport] = [screening.report for screening in done]
    references = [attempt for screening in done for attempt in screening.references]
    accepted = sum(report.verdict is ScreenVerdict.ACCEPTED for report in reports)
    out = Counter(r.reason for r in reports if r.verdict is not ScreenVerdict.ACCEPTED)
    killed, mutants = sum(r.mutants_killed for r in reports), sum(r.mutants for r in reports)
    said = f"{accepted} of {len(reports)} accepted; out: {tally(out)}; "
    return [reports, references], said + f"{killed} of {mutants} mutants failed"


def _screen_one(room: Room, cycle: Cycle, task: TaskManifest) -> Screening:
    digest = room.environment_digest(task.brief.tools)
    return screen_task(task, room.backend.open, digest, cycle.cycle_id, time)
