"""Exercising: running a program that an agent delivers, on inputs that it has not seen.

In: sets of artifacts. Out: the same sets, each with the outputs as further artifacts, to be graded
like the others. The sandbox in between holds no answer and no hidden test.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from flywheel.sandbox import BOOT_SECONDS, ExecResult, OpenSandbox, Sandbox, spec_for
from schemas.file import File
from schemas.task import Exercise, TaskManifest

Artifacts = Sequence[File]


def exercise(
    task: TaskManifest,
    sets: Sequence[Artifacts],
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> list[tuple[File, ...]]:
    """Run the grader's exercises on each set; without exercises return the sets as they are.

    All in one sandbox of the task's own kind, each run in a folder of its own with the artifacts
    and, in their place where paths coincide, the exercise's files. More than one set only for
    trusted scripts: what a run leaves behind outside its folder, the next one finds.

    Returns:
        Each set with one file an exercise. Whatever else a set holds where those go is left out.

    Raises:
        SandboxError: the sandbox failed; nothing was exercised.
    """
    grader, environment = task.sealed.grader, task.brief.environment
    if not grader.exercises:
        return [tuple(artifacts) for artifacts in sets]
    deadline = BOOT_SECONDS + grader.seconds * len(grader.exercises) * len(sets)
    spec = spec_for(environment, {}, deadline, labels)
    reserved = {PurePosixPath(each.output).parts[0] for each in grader.exercises}
    exercised = []
    with open_sandbox(spec) as sandbox:
        for number, artifacts in enumerate(sets):
            kept = [file for file in artifacts if PurePosixPath(file.path).parts[0] not in reserved]
            outputs = [
                _run(sandbox, each, artifacts, f"{number}/{index}", grader.seconds)
                for index, each in enumerate(grader.exercises)
            ]
            exercised.append((*kept, *outputs))
    return exercised


def _run(
    sandbox: Sandbox, exercise: Exercise, artifacts: Artifacts, folder: str, seconds: float
) -> File:
    sandbox.put(artifacts, folder)
    sandbox.put(exercise.files, folder)
    return File.of(exercise.output, _said(sandbox.call(exercise.argv, seconds, folder)).encode())


def _said(result: ExecResult) -> str:
    """Return the output, with a last line for each way in which it is not that of a clean exit."""
    text = result.output.decode("utf-8", errors="replace")
    marks = ["[output cut]"] if result.dropped else []
    if result.timed_out:
        marks.append("[timed out]")
    elif result.exit_code != 0:
        marks.append(f"[exit {result.exit_code}]")
    if marks and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{mark}\n" for mark in marks)
