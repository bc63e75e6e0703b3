"""How sound screened tasks are: wrong answers caught and references passed, family by family."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random

from benchmarks.screening.product import Screened, screen_tasks, task_of
from flywheel.errors import ManifestError
from flywheel.families import Rules
from flywheel.families.catalogue import FAMILIES
from flywheel.intervals import clopper_pearson
from flywheel.propose import cells
from flywheel.sandbox import Backend
from schemas.screening import ScreenReport, ScreenVerdict
from schemas.task import TaskManifest


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many."""

    count: int
    of: int

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.count + other.count, self.of + other.of)

    def __str__(self) -> str:
        """Say both numbers and the 95 % Clopper-Pearson interval of the rate."""
        lower, upper = clopper_pearson(self.count, self.of)
        return f"{self.count}/{self.of} [{lower:.4f}, {upper:.4f}]"


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a family's tasks."""

    family: str
    combinations: Rate
    """Rule combinations with a task, of those of up to three rules that go together."""
    accepted: Rate
    references: Rate
    wrong: Rate
    """Mutants, shortened references and perturbed artifacts that the grader failed."""
    exploits: Rate
    """Killed, of those that could be tried."""
    seconds: float
    faults: tuple[str, ...]
    """Survivors and tasks that were not accepted, by name; exploits alive or untried."""


def measure(family: str, count: int, seed: int, backend: Backend, workers: int) -> Row:
    """Screen `count` tasks of a family over its rule combinations, on seeds from `seed` on."""
    wanted = cells(FAMILIES, [family])
    tasks = _tasks(family, [cell.rules for cell in wanted], count, seed)
    screened = screen_tasks(tasks, backend, workers)
    reports = screened.reports
    controls = [control for report in screened.controls for control in report.controls]
    killed = Counter(control.killed for control in controls)
    accepted = sum(report.verdict is ScreenVerdict.ACCEPTED for report in reports)
    return Row(
        family=family,
        combinations=Rate(len({task.rules for task in tasks}), len(wanted)),
        accepted=Rate(accepted, len(reports)),
        references=_rate([(r.references_passed, r.references) for r in reports]),
        wrong=_rate([(r.mutants_killed, r.mutants) for r in reports]),
        exploits=Rate(killed[True], killed[True] + killed[False]),
        seconds=screened.seconds,
        faults=tuple(_faults(tasks, screened)),
    )


def total(rows: Sequence[Row]) -> Row:
    """Return the sum over families."""
    empty = Rate(0, 0)
    return Row(
        family="all",
        combinations=sum((row.combinations for row in rows), empty),
        accepted=sum((row.accepted for row in rows), empty),
        references=sum((row.references for row in rows), empty),
        wrong=sum((row.wrong for row in rows), empty),
        exploits=sum((row.exploits for row in rows), empty),
        seconds=sum(row.seconds for row in rows),
        faults=(),
    )


def _tasks(family: str, combinations: list[Rules], count: int, seed: int) -> list[TaskManifest]:
    """Return `count` tasks, combinations in turn and in random order, those never live left out."""
    shuffled = Random(seed).sample(combinations, len(combinations))
    made: list[TaskManifest] = []
    for offset, rules in zip(range(10 * count), cycle(shuffled), strict=False):
        if len(made) == count:
            return made
        try:
            made.append(task_of(family, rules, seed + offset))
        except ManifestError:
            continue
    return made


def _rate(pairs: Sequence[tuple[int, int]]) -> Rate:
    return sum((Rate(*pair) for pair in pairs), Rate(0, 0))


def _faults(tasks: Sequence[TaskManifest], screened: Screened) -> Iterator[str]:
    for control in (control for tried in screened.controls for control in tried.controls):
        if not control.killed:
            state = "alive" if control.killed is False else "not tried"
            yield f"exploit {control.name} {state}: {control.evidence}"
    for task, report in zip(tasks, screened.reports, strict=True):
        if report.verdict is not ScreenVerdict.ACCEPTED or report.survivors:
            yield f"seed {task.seed}, {'+'.join(task.rules)}: {_why(report)}"


def _why(report: ScreenReport) -> str:
    bad = [f"{c.kind}: {c.evidence}" for c in report.checks if c.passed is False]
    survivors = f"survivors: {', '.join(report.survivors)}" if report.survivors else ""
    return "; ".join(filter(None, [report.reason, survivors, *bad]))
