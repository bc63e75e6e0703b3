"""The tasks that a stage may use: admitted to a split, with a receipt in force."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from flows.runtime import Room
from flywheel.attempt import HARNESS_VERSION
from flywheel.propose import holdout_uri
from flywheel.store import read
from schemas.config import CycleConfig
from schemas.lineage import Split, SplitAssignment
from schemas.task import ScreenReport, ScreenVerdict, TaskManifest


@dataclass(frozen=True)
class Pool:
    """All tasks with what is known about them."""

    tasks: Mapping[str, TaskManifest]
    """By version id: every task ever proposed."""
    assignments: tuple[SplitAssignment, ...]
    receipts: Mapping[str, ScreenReport]
    """By version id, in force: same environment, harness and grader as now."""

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
    def trust(self) -> Mapping[str, str]:
        """By version id: the tier of accepted tasks."""
        return {
            version: report.trust
            for version, report in self.receipts.items()
            if report.verdict is ScreenVerdict.ACCEPTED
        }

    def unscreened(self) -> list[TaskManifest]:
        """Return admitted tasks without a receipt in force."""
        return [
            self.tasks[version]
            for version in self.admitted
            if version not in self.receipts
            or self.receipts[version].verdict is ScreenVerdict.UNSCREENED
        ]

    def accepted(self, split: Split) -> list[TaskManifest]:
        """Return the tasks of a split that passed screening, in a fixed order."""
        return [
            self.tasks[version]
            for version, event in self.admitted.items()
            if event.split is split and version in self.trust
        ]


def holdout_in_force(pool: Pool, config: CycleConfig) -> list[SplitAssignment]:
    """Return the assignments of the holdout generation that the configuration names.

    They make up the holdout's version, whether or not each task can be attempted at present.
    """
    return [
        event
        for version, event in pool.admitted.items()
        if event.split is Split.HOLDOUT and pool.tasks[version].source.uri == holdout_uri(config)
    ]


def load_pool(room: Room) -> Pool:
    """Read the pool from the store."""
    tasks = {task.version_id: task for task in read(room.store, TaskManifest)}
    digests = {
        tools: room.environment_digest(tools)
        for tools in {task.brief.tools for task in tasks.values()}
    }
    receipts = {
        report.version_id: report
        for report in read(room.store, ScreenReport)
        if report.harness_version == HARNESS_VERSION
        and report.environment_digest == digests[tasks[report.version_id].brief.tools]
        and report.grader_version == tasks[report.version_id].sealed.grader.version
        and report.verdict is not ScreenVerdict.UNSCREENED
    }
    return Pool(tasks=tasks, assignments=read(room.store, SplitAssignment), receipts=receipts)
