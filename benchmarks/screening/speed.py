"""Screening the same task by the product and by Harbor, on one engine, in one run."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.screening.harbor import Harbor, Job, built, write_solution
from benchmarks.screening.product import Judged, judge, screen_tasks, solutions, tasks_of
from flywheel.sandbox import Backend
from schemas.attempt import Verdict
from schemas.screening import ScreenVerdict
from schemas.task import TaskManifest

FAMILY, RULES = "orders", frozenset({"keep-last", "half-even", "largest-first"})
WORKERS = 4
CONCURRENT = (2, 4)
"""Harbor's `--n-concurrent`: the better one counts."""


@dataclass(frozen=True, slots=True)
class Product:
    """Screening by the product on one backend."""

    backend: str
    tasks: int
    accepted: int
    controls_seconds: float
    seconds: float
    """Controls included."""

    @property
    def tasks_per_hour(self) -> float:
        return 3600 * self.tasks / self.seconds


@dataclass(frozen=True, slots=True)
class Peer:
    """The same solutions run as trials by Harbor."""

    version: str
    tasks: int
    trials: int
    distinct: int
    """Different scripts among them: screening repeats the reference."""
    jobs: Mapping[int, Job]
    """By trials at a time."""
    judged: Sequence[Judged]
    """By the product, task by task."""

    @property
    def best(self) -> int:
        """The number of trials at a time that took least."""
        return min(self.jobs, key=lambda concurrent: self.jobs[concurrent].seconds)

    def tasks_per_hour(self, concurrent: int) -> float:
        return 3600 * self.tasks / self.jobs[concurrent].seconds

    def disagreements(self, concurrent: int) -> list[str]:
        """Return the solutions whose reward is not what the product's verdict says."""
        rewards = self.jobs[concurrent].rewards
        verdicts = {
            f"{number}-{name}": verdict
            for number, judged in enumerate(self.judged)
            for name, verdict in judged.verdicts.items()
        }
        return [
            f"{name}: product {verdict.value}, Harbor {rewards[name]}"
            for name, verdict in verdicts.items()
            if rewards[name] != {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0}.get(verdict)
        ]


def time_product(backend: Backend, count: int, seed: int) -> Product:
    """Screen `count` tasks with the whole list of checks."""
    screened = screen_tasks(tasks_of(FAMILY, RULES, seed, count), backend, WORKERS)
    accepted = sum(r.verdict is ScreenVerdict.ACCEPTED for r in screened.reports)
    return Product(backend.name, count, accepted, screened.controls_seconds, screened.seconds)


def time_harbor(harbor: Harbor, backend: Backend, count: int, seed: int) -> Peer:
    """Run every solution of `count` tasks by Harbor, and judge each by the product.

    Images are built before the clock starts and removed in the end.
    """
    version, tasks = harbor.check(), tasks_of(FAMILY, RULES, seed, count)
    judged = [judge(task, backend) for task in tasks]
    with ExitStack() as opened:
        home = Path(
            opened.enter_context(
                tempfile.TemporaryDirectory(dir=harbor.folder, ignore_cleanup_errors=True)
            )
        )
        for number, task in enumerate(tasks):
            _write(task, number, home, opened)
        jobs = {c: harbor.run_job(home / "trials", "oracle", c) for c in CONCURRENT}
    scripts = [list(solutions(task).values()) for task in tasks]
    return Peer(
        version=version,
        tasks=count,
        trials=sum(map(len, scripts)),
        distinct=sum(len(set(map(str, each))) for each in scripts),
        jobs=jobs,
        judged=judged,
    )


def _write(task: TaskManifest, number: int, home: Path, opened: ExitStack) -> None:
    """Build a task's images, and write a folder for each of its solutions."""
    images = opened.enter_context(built(task, home / "build" / str(number)))
    for name, script in solutions(task).items():
        write_solution(task, script, images, home / "trials" / f"{number}-{name}")
