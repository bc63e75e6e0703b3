"""Graders against solutions written from the goal text alone.

Their authors saw a task's goal, files and tool descriptions, and neither the family's code nor its
grader. Each wrote a right program and one with a single plausible mistake. Rule mutants come from
the families themselves and are near tautology; these are not.
"""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from flywheel.act import take_artifacts
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.grade import grade_sets
from flywheel.intervals import clopper_pearson
from flywheel.sandbox import Backend, SandboxSpec
from schemas.attempt import Grade, Verdict
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget, TaskManifest
from tests.real_tasks import SEED

FOLDER = Path(__file__).parent.parent / "blind"
TASKS: dict[str, dict[str, object]] = json.loads((FOLDER / "tasks.json").read_text("utf-8"))
LABELS = {"run": "blind", "attempt": "blind"}


def task_of(name: str) -> TaskManifest:
    """The very task that the authors were given."""
    given = TASKS[name]
    family = FAMILIES[str(given["family"])]
    rules = frozenset(given["rules"])  # type: ignore[arg-type]
    seed = int(str(given["seed"]))
    return make_task(family, rules, seed, Lexicon(Split.DEV), Budget(), SEED)


def left_by(
    task: TaskManifest, programs: list[str], backend: Backend
) -> Iterator[tuple[File, ...]]:
    """What each program leaves behind, in a folder of its own."""
    spec = SandboxSpec(programs={}, deadline=120.0, labels=LABELS)
    with backend.open(spec) as sandbox:
        for number, program in enumerate(programs):
            folder = f"run-{number}"
            sandbox.put(task.brief.environment.files, folder)
            argv = ["/usr/bin/env", "python3", "-c", program]
            result = sandbox.call(argv, 30.0, folder)
            assert result.exit_code == 0, result.output.decode()
            yield take_artifacts(task.brief, sandbox, folder)[0]


@cache
def judged(name: str, backend: Backend) -> tuple[Grade, Grade]:
    """The grades of the right and of the wrong solution."""
    task = task_of(name)
    programs = [(FOLDER / name / f"{kind}.py").read_text("utf-8") for kind in ("right", "wrong")]
    sets = list(left_by(task, programs, backend))
    right, wrong = grade_sets(task, sets, backend.open, LABELS)
    return right, wrong


@pytest.mark.parametrize("name", TASKS)
def test_a_right_solution_passes_and_a_wrong_one_fails(bubblewrap: Backend, name: str) -> None:
    right, wrong = judged(name, bubblewrap)
    note = (FOLDER / name / "note.txt").read_text("utf-8")
    assert right.verdict is Verdict.PASSED, (note, right.checks)
    assert wrong.verdict is Verdict.FAILED, note


def test_there_are_enough_of_them_to_say_something(bubblewrap: Backend) -> None:
    """No error among so many of each: at most 6 % of such solutions are judged wrongly."""
    assert clopper_pearson(0, len(TASKS))[1] < 0.06
    assert {str(given["family"]) for given in TASKS.values()} == set(FAMILIES)
    assert sum(path.is_dir() for path in os.scandir(FOLDER)) == len(TASKS)
