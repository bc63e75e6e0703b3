"""The tasks that a stage may use: admitted to a split, with a receipt in force."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from flows.runtime import AND_SCREENING, Room, screening_version
from flywheel.graders import GRADERS, grader_version
from flywheel.propose import holdout_uri
from flywheel.screen.flake import is_flaky
from flywheel.store import ReferenceRuns, read, reference_runs
from schemas.config import CycleConfig
from schemas.lineage import Split, SplitAssignment
from schemas.screening import ReviewDecision, Ruling, ScreenReport, ScreenVerdict, Trust
from schemas.task import SourceKind, TaskManifest

EVALUATED = {Split.DEV: SourceKind.EVALUATION, Split.HOLDOUT: SourceKind.HOLDOUT}
"""What tasks that judge policies are made as: a stranger's task steers nothing."""


@dataclass(frozen=True)
class Pool:
    """All tasks with what is known about them."""

    tasks: Mapping[str, TaskManifest]
    """By version id: every task ever proposed."""
    assignments: tuple[SplitAssignment, ...]
    receipts: Mapping[str, ScreenReport]
    """By version id, in force: same environment, harness and grader as now."""
    rulings: Mapping[str, Ruling]
    """By item id: what a person last decided about a task quarantined for that reason."""
    flaky: frozenset[str]
    """Version ids whose reference fails too often under the conditions of now."""

    @cached_property
    def admitted(self) -> Mapping[str, SplitAssignment]:
        """By version id: tasks that a split took in."""
        return {event.version_id: event for event in self.assignments if event.admitted}

    @cached_property
    def splits(self) -> Mapping[str, Split]:
        """By task id."""
        return {event.task_id: event.split for event in self.admitted.values()}

    @cached_property
    def components(self) -> Mapping[str, str]:
        """By task id."""
        return {event.task_id: event.component for event in self.admitted.values()}

    @cached_property
    def trust(self) -> Mapping[str, Trust]:
        """By version id: the tier of the tasks that may be used."""
        return {
            version: tier
            for version, report in self.receipts.items()
            if (tier := self._tier(report)) is not None and version not in self.flaky
        }

    def _tier(self, report: ScreenReport) -> Trust | None:
        if report.verdict is ScreenVerdict.ACCEPTED:
            return report.trust
        let_in = self.rulings.get(report.item_id) is Ruling.ACCEPT
        quarantined = report.verdict is ScreenVerdict.QUARANTINED
        return Trust.REVIEWED if quarantined and let_in else None

    def unscreened(self) -> list[TaskManifest]:
        """Return admitted tasks without a receipt in force."""
        return [self.tasks[version] for version in self.admitted if version not in self.receipts]

    def accepted(self, split: Split) -> list[TaskManifest]:
        """Return the tasks of a split that passed screening, in a fixed order."""
        return [
            self.tasks[version]
            for version, event in self.admitted.items()
            if event.split is split and version in self.trust and self._fits(version, split)
        ]

    def _fits(self, version: str, split: Split) -> bool:
        """Tell whether a task may judge, and is trusted enough: nobody can look at the holdout."""
        task = self.tasks[version]
        if task.source.kind is not EVALUATED.get(split, task.source.kind):
            return False
        if split is not Split.HOLDOUT:
            return True
        grader = task.sealed.grader
        return self.trust[version] is Trust.VERIFIED and grader.instrument is None


def holdout_in_force(pool: Pool, config: CycleConfig) -> list[SplitAssignment]:
    """Return the assignments of the holdout generation that the configuration names.

    They make up the holdout's version, whether or not each task can be attempted at present.
    """
    return [
        event
        for version, event in pool.admitted.items()
        if event.split is Split.HOLDOUT
        and (source := pool.tasks[version].source).kind is SourceKind.HOLDOUT
        and source.uri == holdout_uri(config)
    ]


def load_pool(room: Room) -> Pool:
    """Read the pool from the store."""
    tasks = read(room.store, TaskManifest)
    receipts = receipts_in_force(room, tasks)
    return Pool(
        tasks={task.version_id: task for task in tasks},
        assignments=read(room.store, SplitAssignment),
        receipts=receipts,
        rulings={
            decision.item_id: decision.ruling for decision in read(room.store, ReviewDecision)
        },
        flaky=_flaky(room, receipts),
    )


def receipts_in_force(
    room: Room, tasks: Sequence[TaskManifest], *, unscreened: bool = False
) -> dict[str, ScreenReport]:
    """Return version id → receipt, of those made by today's environment, screening and graders.

    `unscreened`: also the ones that say that nothing is known.
    """
    by_version = {task.version_id: task for task in tasks}
    screening = screening_version(room.plugins)
    graders = {program: grader_version(program) for program in GRADERS}
    digests = {
        tools: room.environment_digest(tools) for tools in {task.brief.tools for task in tasks}
    }
    found = [
        report
        for report in read(room.store, ScreenReport)
        if (task := by_version.get(report.version_id)) is not None
        and report.harness_version == screening
        and report.environment_digest == digests[task.brief.tools]
        and report.grader_version == task.sealed.grader.version
        and report.grader_version == graders.get(task.sealed.grader.program)
    ]
    known = {r.version_id: r for r in found if r.verdict is not ScreenVerdict.UNSCREENED}
    return {**({r.version_id: r for r in found} if unscreened else {}), **known}


def _flaky(room: Room, receipts: Mapping[str, ScreenReport]) -> frozenset[str]:
    """Return the tasks whose reference fails too often under today's conditions."""
    return frozenset(
        found.version_id
        for found in reference_runs(room.store)
        if found.version_id in receipts
        and _conditions(found) == _conditions(receipts[found.version_id])
        and is_flaky(found.runs, found.passed)
    )


def _conditions(found: ReferenceRuns | ScreenReport) -> tuple[str, str, str]:
    harness = found.harness_version.partition(AND_SCREENING)[0]
    return found.environment_digest, harness, found.grader_version
