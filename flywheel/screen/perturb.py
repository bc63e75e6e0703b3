"""Wrong answers made from a right one, whatever the task: a good grader fails each of them.

Each is a right set of artifacts with one thing broken: the shape kept and a value changed, a
constant in place of an answer, an old state, an answer written elsewhere, a protected input
modified.
"""

from collections.abc import Iterator

from flywheel.screen.edits import REVERSED, edited
from flywheel.screen.lint import artifacts_written
from schemas.file import File
from schemas.task import TaskManifest

Artifacts = tuple[File, ...]
CODE_GRADERS = frozenset({"harbor", "tests"})
"""Graders of other people's tasks: what a small edit does to an answer is not known there."""
MOST_FILES = 3
"""Files of a folder that are edited: the grader treats all of them alike."""


def perturb(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    """Yield wrong sets of artifacts by name.

    Args:
        task: names the protected inputs and the grader.
        right: what a right solution left behind.
    """
    protected = set(task.sealed.grader.protected)
    made = [file for file in artifacts_written(task, right) if file.path not in protected]
    initial = {file.path: file for file in task.brief.environment.files}
    for file in made[:MOST_FILES]:
        yield f"constant:{file.path}", _replaced(right, file, _with(file, b"42\n"))
        yield f"emptied:{file.path}", _replaced(right, file, _with(file, b""))
        yield f"elsewhere:{file.path}", _replaced(right, file, None)
        if file.path in initial:
            yield f"stale:{file.path}", _replaced(right, file, initial[file.path])
        if _edits_count(task):
            for name, data in edited(file):
                if name != REVERSED or "order" in task.sealed.grader.checks:
                    yield f"{name}:{file.path}", _replaced(right, file, _with(file, data))
    for path in protected:
        (input_file,) = (file for file in right if file.path == path)
        changed = _with(input_file, input_file.data() + b"\n")
        yield f"input-modified:{path}", _replaced(right, input_file, changed)
        yield f"input-removed:{path}", _replaced(right, input_file, None)
    if "modes" in task.sealed.grader.checks:
        yield from _other_modes(right)
    if "paths" in task.sealed.grader.checks and right:
        stray = File(path=f"{right[0].path}.bak", content="stray\n")
        yield "stray-file", (*right, stray)


def _edits_count(task: TaskManifest) -> bool:
    """Tell whether the bytes of an artifact are the answer, and not a program that gives it."""
    grader = task.sealed.grader
    return not grader.exercises and grader.program not in CODE_GRADERS


def _replaced(right: Artifacts, old: File, new: File | None) -> Artifacts:
    others = ((new if file is old else file) for file in right)
    return tuple(file for file in others if file is not None)


def _with(file: File, data: bytes) -> File:
    return File.of(file.path, data, file.mode)


def _other_modes(right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    for file in right[:1]:
        other = File.of(file.path, file.data(), file.mode ^ 0o002)
        yield f"other-mode:{file.path}", _replaced(right, file, other)
