"""Wrong answers made from a right one, whatever the task: a good grader fails each of them.

Each is a right set of artifacts with one thing broken: the shape kept and a value changed, a
constant in place of an answer, an old state, an answer written elsewhere, a protected input
modified.
"""

from collections.abc import Iterator

from flywheel.graders import ABSOLUTE
from flywheel.screen.edits import REVERSED, edited
from flywheel.screen.lint import artifacts_written
from schemas.file import FILE_MODE, MAX_FILE_BYTES, MAX_PATH, File, is_folder
from schemas.task import UNTRUSTED, TaskManifest

Artifacts = tuple[File, ...]
MOST_FILES = 3
"""Files of a folder that are edited: the grader treats all of them alike."""
CONSTANTS = (b"42\n", b"17\n")
"""The first that is not the answer is written in its place."""
STRAY = "stray-of-screening"


def perturb(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    """Yield wrong sets of artifacts by name: never the right one itself.

    Args:
        task: names the protected inputs and the grader.
        right: what a right solution left behind.
    """
    for name, artifacts in _broken(task, right):
        if artifacts != right:
            yield name, artifacts


def artifacts_are_code(task: TaskManifest) -> bool:
    """Tell whether the artifacts are programs: what an edit does to one is not known."""
    return bool(task.sealed.grader.exercises) or task.sealed.grader.program == "tests"


def _broken(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    protected = set(task.sealed.grader.protected)
    made = [file for file in artifacts_written(task, right) if file.path not in protected]
    initial = {file.path: file for file in task.brief.environment.files}
    for file in made[:MOST_FILES]:
        for name, data in _contents(task, file):
            if len(data) <= MAX_FILE_BYTES:
                yield f"{name}:{file.path}", _replaced(right, file, _with(file, data))
        yield f"elsewhere:{file.path}", _replaced(right, file, None)
        if file.path in initial:
            yield f"stale:{file.path}", _replaced(right, file, initial[file.path])
    for file in right:
        if file.path in protected:
            changed = _with(file, file.data() + b"\n")
            yield f"input-modified:{file.path}", _replaced(right, file, changed)
            yield f"input-removed:{file.path}", _replaced(right, file, None)
    yield from _other_modes(task, right)
    yield from _stray(task, right)


def _contents(task: TaskManifest, file: File) -> Iterator[tuple[str, bytes]]:
    """Yield other contents of a file by name."""
    right, foreign = file.data().strip(), task.source.kind in UNTRUSTED
    yield "constant", next(other for other in CONSTANTS if other.strip() != right)
    if right:
        yield "emptied", b""
    if artifacts_are_code(task):
        return
    ordered = foreign or "order" in task.sealed.grader.checks
    for name, data in edited(file, open_databases=not foreign):
        if name != REVERSED or ordered:
            yield name, data


def _replaced(right: Artifacts, old: File, new: File | None) -> Artifacts:
    others = ((new if file is old else file) for file in right)
    return tuple(file for file in others if file is not None)


def _with(file: File, data: bytes) -> File:
    return File.of(file.path, data, file.mode)


def _other_modes(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    """Yield another mode of one file, where modes are checked.

    An outsider's grader that says nothing of modes is tried too, where a mode was set on purpose.
    """
    checked = "modes" in task.sealed.grader.checks
    for file in right if checked else _made_by_a_stranger(task, right):
        if checked or file.mode != FILE_MODE:
            mode = file.mode ^ 0o002 if checked else FILE_MODE
            other = File.of(file.path, file.data(), mode)
            yield f"other-mode:{file.path}", _replaced(right, file, other)
            return


def _stray(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    """Yield a file too many, where such are checked.

    An outsider's grader that says nothing of them is tried too, where a whole folder is graded.
    """
    folders = [path for path in task.brief.artifacts if is_folder(path)]
    if "paths" not in task.sealed.grader.checks:
        folders = folders if _made_by_a_stranger(task, right) else []
    paths = [f"{folder.removeprefix('./')}{STRAY}" for folder in folders]
    there = {file.path for file in right}
    for path in [path for path in paths if len(path) <= MAX_PATH and path not in there][:1]:
        yield "stray-file", (*right, File(path=path, content="stray\n"))


def _made_by_a_stranger(task: TaskManifest, right: Artifacts) -> Artifacts:
    """Return what an outsider's solution made, but for graders that are verifiers of their own.

    Those see the whole workspace, and are not made to notice modes and files beside the answer.
    """
    if task.source.kind not in UNTRUSTED or task.sealed.grader.program in ABSOLUTE:
        return ()
    return artifacts_written(task, right)
