"""Harbor's own oracle and nop on exported tasks, against what the product's receipt says."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.screening.harbor import Harbor
from benchmarks.screening.product import first_task, screen_tasks
from flywheel.errors import ManifestError
from flywheel.formats.harbor_export import write_harbor
from flywheel.sandbox import Backend
from flywheel.sandbox.container import IMAGE
from schemas.screening import CheckKind, ScreenReport
from schemas.task import TaskManifest

CONCURRENT = 2


@dataclass(frozen=True, slots=True)
class Compared:
    """One task, judged by both."""

    family: str
    rules: tuple[str, ...]
    oracle: float | str
    """Harbor's reward of the reference, or why there is none."""
    nop: float | str
    reference_passes: bool | None
    """What the receipt says."""
    no_op_fails: bool | None
    verdict: str

    @property
    def agrees(self) -> bool:
        """Tell whether both pass the reference and fail doing nothing."""
        product = (self.reference_passes, self.no_op_fails)
        return product == (True, True) and (self.oracle, self.nop) == (1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Agreement:
    """All families."""

    version: str
    compared: tuple[Compared, ...]
    left_out: tuple[str, ...]
    """Families that Harbor can't hold, with the reason."""


def compare(harbor: Harbor, families: Sequence[str], backend: Backend, workers: int) -> Agreement:
    """Export a task of each family as it is, run oracle and nop on it, and screen it."""
    version = harbor.check()
    with tempfile.TemporaryDirectory(dir=harbor.folder, ignore_cleanup_errors=True) as name:
        folder = Path(name) / "tasks"
        tasks, left_out = _exported([first_task(family) for family in families], folder)
        reports = screen_tasks(tasks, backend, workers).reports
        oracle, nop = (harbor.run_job(folder, agent, CONCURRENT) for agent in ("oracle", "nop"))
    compared = [
        Compared(
            family=task.family,
            rules=task.rules,
            oracle=oracle.rewards[task.family],
            nop=nop.rewards[task.family],
            reference_passes=_passed(report, CheckKind.REFERENCE_PASSES),
            no_op_fails=_passed(report, CheckKind.NO_OP_FAILS),
            verdict=report.verdict.value,
        )
        for task, report in zip(tasks, reports, strict=True)
    ]
    return Agreement(version, tuple(compared), tuple(left_out))


def _exported(tasks: Sequence[TaskManifest], home: Path) -> tuple[list[TaskManifest], list[str]]:
    """Write each task that Harbor can hold below `home`, in a folder named after its family."""
    written, refused = [], []
    for task in tasks:
        try:
            write_harbor(task, home / task.family, IMAGE)
        except ManifestError as problem:
            refused.append(f"{task.family}: {problem}")
        else:
            written.append(task)
    return written, refused


def _passed(report: ScreenReport, kind: CheckKind) -> bool | None:
    return next((check.passed for check in report.checks if check.kind == kind), None)
