"""Rows 1 to 3 of the loop: propose, fingerprint and split, screen."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows.pool import load_pool
from flows.runtime import Room
from flows.screening import screen_all, stop_at_faults
from flows.step import Records, step, tally
from flywheel.formats import read_folder
from flywheel.generate import as_imported
from flywheel.plugins import run_proposer
from flywheel.propose import LICENCE, wishes
from flywheel.propose import propose as propose_tasks
from flywheel.splits import assign_splits, cell_of, combination, fingerprint, lineage, split_of
from flywheel.store import read
from flywheel.walk import walked
from schemas.base import seed_from
from schemas.config import Cycle
from schemas.hypothesis import Hypothesis, HypothesisVerdict, Judgement
from schemas.lineage import Fingerprint, Split, SplitAssignment
from schemas.screening import Proposal, ScreenVerdict
from schemas.task import UNTRUSTED, Source, SourceKind, TaskManifest

NAMED = 3
"""Imports that could not be read and that a stage's line names; a file lists all."""
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
    held = {task.source.uri for task in known if task.source.kind not in UNTRUSTED}
    covered = Counter(combination(task.family, task.rules) for task in known)
    wanted = wishes(cycle.config, open_hypotheses(room), held, room.families)
    made = propose_tasks(cycle.config, wanted, cycle.number, covered, room.families)
    imported, refused = _imported(cycle)
    _write_refused(room, cycle, refused)
    proposed, proposals = _proposed(room, cycle)
    tasks = (*made, *_walked(room, cycle), *imported, *proposed)
    kinds = Counter(task.source.kind.value for task in tasks)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    asked = sum(wish.count for wish in wanted)
    said = f"{len(made)} tasks of {asked} asked ({counts})"
    return [tasks, proposals], said + _told(refused)


def _imported(cycle: Cycle) -> tuple[list[TaskManifest], list[str]]:
    """Read the configured folders; return their tasks, and what could not be read and why."""
    read_in = [read_folder(Path(folder)) for folder in cycle.config.propose.folders]
    strangers = (as_imported(task) for found in read_in for task in found.tasks)
    tasks = {task.version_id: task for task in strangers}
    refused = [
        ": ".join(part for part in (refusal.path, refusal.field, refusal.reason) if part)
        for found in read_in
        for refusal in found.refused
    ]
    return list(tasks.values()), refused


def _told(refused: Sequence[str]) -> str:
    """Name the first that could not be read, and count the others."""
    if not refused:
        return ""
    more = len(refused) - len(refused[:NAMED])
    return f"; {len(refused)} in folders not read: " + "; ".join(
        [*refused[:NAMED], *([f"{more} more (reports/refused-….txt)"] if more else [])]
    )


def _write_refused(room: Room, cycle: Cycle, refused: Sequence[str]) -> None:
    """List all that could not be read, a line each."""
    if refused:
        out = room.home / "reports" / f"refused-{cycle.cycle_id}.txt"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(f"{line}\n" for line in refused), "utf-8")


def _walked(room: Room, cycle: Cycle) -> list[TaskManifest]:
    """Walk the graph of tools; keep the training tasks that come of it."""
    source = Source(kind=SourceKind.COVERAGE, uri="walk", licence=LICENCE)
    ways = (
        seed_from(cycle.config.seed, cycle.number, "walk", number) >> 32
        for number in range(cycle.config.propose.walks)
    )
    walks = walked(ways, room.backend.open, cycle.config.budget, source)
    return [task for task in walks if split_of(cell_of(task)) is Split.TRAIN]


def _proposed(room: Room, cycle: Cycle) -> tuple[list[TaskManifest], list[Proposal]]:
    """Ask the user's own proposers; what they make gets no trust for who made it."""
    most, made = cycle.config.propose.per_proposer, list[tuple[Proposal, TaskManifest | None]]()
    for name, proposer in sorted(room.plugins.proposers.items()):
        seed = seed_from(cycle.config.seed, cycle.number, name) >> 32
        made += run_proposer(name, proposer, most, seed, cycle.cycle_id)
    return [task for _, task in made if task is not None], [proposal for proposal, _ in made]


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
    tasks = load_pool(room).unscreened()
    stop_at_faults(room, screen_all(room, cycle.cycle_id, tasks), len(tasks))
    return [], _screened(room, cycle)


def _screened(room: Room, cycle: Cycle) -> str:
    """Say what screening came to for the tasks proposed in this cycle."""
    pool = load_pool(room)
    mine = [
        pool.receipts.get(version)
        for version, event in pool.admitted.items()
        if event.cycle_id == cycle.cycle_id
    ]
    reports = [report for report in mine if report is not None]
    waiting = sum(report.verdict is ScreenVerdict.QUARANTINED for report in reports)
    out = Counter(r.reason for r in reports if r.verdict is not ScreenVerdict.ACCEPTED)
    out.update({"unscreened": len(mine) - len(reports)} if len(mine) > len(reports) else {})
    killed, mutants = sum(r.mutants_killed for r in reports), sum(r.mutants for r in reports)
    accepted = sum(report.verdict is ScreenVerdict.ACCEPTED for report in reports)
    said = f"{accepted} of {len(mine)} accepted; out: {tally(out)}; "
    said += f"{waiting} wait for a person; " if waiting else ""
    return said + f"{killed} of {mutants} mutants failed"
