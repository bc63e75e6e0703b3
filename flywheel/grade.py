"""Grading: in a second, clean sandbox that holds the grader, the right answer and the artifacts.

A grader with exercises gets their outputs too, made in a sandbox without answers in between.

A grade exists only where the grader finished and said so. A grader that falls over is run again on
the same artifacts in a fresh sandbox. If it falls over again while it can still grade the right
answer, the artifacts did it: that is the attempt's failure. If it can't, nothing is graded.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType

from flywheel.errors import SandboxError
from flywheel.exercise import Artifacts, exercise
from flywheel.graders import ABSOLUTE, grader_source
from flywheel.sandbox import BOOT_SECONDS as BOOT_SECONDS
from flywheel.sandbox import ExecResult, OpenSandbox, Sandbox, SandboxSpec, spec_for
from schemas.attempt import CheckResult, Grade, InfraStage, InfraStatus, Verdict
from schemas.file import File
from schemas.task import Grader, TaskManifest

ARTIFACTS_CAN_CAUSE = frozenset({InfraStage.TOOL, InfraStage.MEMORY, InfraStage.DEADLINE})
"""Ends of the grader's sandbox that are tried again and then held against the artifacts."""
GRADABLE = "gradable"
"""The check that an artifact fails when it brings the grader down."""
FOLDERS = ("/tests", "/logs", "/solution")
"""What a grader of absolute paths may write to besides the workdir."""
MODES_READERS = ABSOLUTE | {"files"}
"""Those that are told the modes of files."""
GRADING = "/grading"
"""Where such a grader finds artifacts and expectation: not in the workdir, which it fills."""


def grade_artifacts(
    task: TaskManifest,
    artifacts: Artifacts,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> tuple[Grade, InfraStatus | None]:
    """Grade one set of artifacts, with the rule for grader faults.

    Returns:
        A grade and no fault, or an ungraded one and the fault that is not the policy's doing.
    """
    try:
        for _ in range(2):
            grade = _grade_once(task, artifacts, open_sandbox, labels)
            if grade.verdict is not Verdict.UNGRADED:
                return grade, None
        works, evidence = _grader_works(task, open_sandbox, labels)
    except SandboxError as error:
        return ungraded(task.sealed.grader, str(error)), error.status
    if works:
        return _brought_down(task.sealed.grader, grade.evidence), None
    fault = InfraStatus(
        stage=InfraStage.GRADER,
        code="right-answer-ungraded",
        evidence=f"artifacts: {grade.evidence}; right answer: {evidence}",
        retryable=False,
    )
    return ungraded(task.sealed.grader, grade.evidence), fault


def _grade_once(
    task: TaskManifest,
    artifacts: Artifacts,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> Grade:
    """Grade once; a sandbox that dies under exercises or grader is a grader that fell over."""
    try:
        (grade,) = grade_sets(task, [artifacts], open_sandbox, labels)
    except SandboxError as error:
        if error.status.stage not in ARTIFACTS_CAN_CAUSE:
            raise
        return ungraded(task.sealed.grader, str(error))
    return grade


def _grader_works(
    task: TaskManifest, open_sandbox: OpenSandbox, labels: Mapping[str, str]
) -> tuple[bool, str]:
    """Tell whether the grader works without these artifacts, and what it says if it doesn't.

    It has to pass the right answer. Hidden tests have none that is known without running
    something: they have to reach a verdict on the untouched environment.
    """
    if task.sealed.grader.program in ABSOLUTE:
        (grade,) = _grade_all(task, [task.brief.environment.files], open_sandbox, labels)
        return grade.verdict is not Verdict.UNGRADED, grade.evidence
    (grade,) = _grade_all(task, [right_answer(task)], open_sandbox, labels)
    return grade.verdict is Verdict.PASSED, grade.evidence


def grade_sets(
    task: TaskManifest,
    sets: Sequence[Artifacts],
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[Grade]:
    """Exercise and grade several sets, each from its own folder in a process of its own.

    One boot for all, and one for their exercises; graders of absolute paths take one a set. More
    than one set only for trusted scripts: hostile artifacts get a sandbox each. `variables` are
    set in the grader's sandbox, on top of its own.

    Raises:
        SandboxError: the sandbox failed; nothing was graded.
    """
    exercised = exercise(task, sets, open_sandbox, labels)
    return _grade_all(task, exercised, open_sandbox, labels, variables)


def _grade_all(
    task: TaskManifest,
    sets: Sequence[Artifacts],
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[Grade]:
    """Grade sets that hold the outputs of their exercises already."""
    if task.sealed.grader.program not in ABSOLUTE:
        with _open_grader(task, len(sets), open_sandbox, labels, variables) as sandbox:
            return _grade_in(sandbox, task, sets, ".")
    grades = []
    for artifacts in sets:
        with _open_grader(task, 1, open_sandbox, labels, variables) as sandbox:
            grades += _grade_in(sandbox, task, [artifacts], GRADING)
    return grades


def _open_grader(
    task: TaskManifest,
    sets: int,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
    variables: Mapping[str, str],
) -> AbstractContextManager[Sandbox]:
    """Start the grader's sandbox: the base image, or the task's own for its own tests."""
    grader, environment = task.sealed.grader, task.brief.environment
    programs = {grader.program: grader_source(grader.program)}
    deadline = BOOT_SECONDS + grader.seconds * sets
    if grader.program not in ABSOLUTE:
        return open_sandbox(
            SandboxSpec(programs=programs, deadline=deadline, labels=labels, environment=variables)
        )
    spec = spec_for(environment, programs, deadline, labels)
    folders = tuple(dict.fromkeys((*spec.folders, *FOLDERS, GRADING)))
    own = {**spec.environment, **variables}
    return open_sandbox(replace(spec, folders=folders, environment=own))


def right_answer(task: TaskManifest) -> tuple[File, ...]:
    """Return the artifacts that a perfect attempt leaves behind, the exercises' outputs included.

    It is graded without exercising.
    """
    return (*task.sealed.grader.expected, *_protected(task))


def _protected(task: TaskManifest) -> list[File]:
    wanted = set(task.sealed.grader.protected)
    return [file for file in task.brief.environment.files if file.path in wanted]


def _grade_in(
    sandbox: Sandbox, task: TaskManifest, sets: Sequence[Artifacts], home: str
) -> list[Grade]:
    """Grade sets below the folder `home` of an open sandbox.

    The files are sealed, but for graders of absolute paths, which need them with their modes.
    """
    grader, expected = task.sealed.grader, f"{home}/expected"
    sealed = grader.program not in ABSOLUTE
    _put(sandbox, grader, grader.expected, expected, "output", sealed=sealed)
    sandbox.put(_protected(task), f"{expected}/inputs", read_only=sealed)
    grades = []
    for number, artifacts in enumerate(sets):
        _put(sandbox, grader, artifacts, f"{home}/sets", str(number), sealed=sealed)
        argv = [grader.program, f"{home}/sets/{number}", expected, *grader.checks]
        grades.append(_read(grader, sandbox.call(argv, grader.seconds)))
    return grades


def _put(
    sandbox: Sandbox, grader: Grader, files: Artifacts, folder: str, name: str, *, sealed: bool
) -> None:
    """Put files into the folder `name` of `folder`, and beside it their modes for who reads them.

    Sealing takes their modes: `NAME.modes` has a line for each, `0755 path`, sorted by path.
    """
    sandbox.put(files, f"{folder}/{name}", read_only=sealed)
    if grader.program in MODES_READERS:
        by_path = sorted(files, key=lambda file: file.path)
        lines = (f"{file.mode:04o} {file.path}\n" for file in by_path)
        sandbox.put([File(path=f"{name}.modes", content="".join(lines), mode=0o444)], folder)


def _read(grader: Grader, result: ExecResult) -> Grade:
    """Read the grader's lines; anything but a complete, signed-off result is ungraded."""
    lines = result.output.decode("utf-8", errors="replace").splitlines()
    rows = [line.split("\t", 2) for line in lines[:-1]]
    named = tuple(row[0] for row in rows)
    complete = lines[-1:] == ["graded"] and named == grader.checks and not result.dropped
    if result.exit_code != 0 or result.timed_out or not complete:
        cause = "timed out" if result.timed_out else f"exit {result.exit_code}"
        return ungraded(grader, f"{cause}: {' | '.join(lines[-3:])[:500]}")
    checks = tuple(
        CheckResult(name=name, passed=word == "pass", evidence=evidence)
        for name, word, evidence in rows
    )
    passed = all(check.passed for check in checks)
    return Grade(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        checks=checks,
        grader_version=grader.version,
    )


def _brought_down(grader: Grader, evidence: str) -> Grade:
    check = CheckResult(name=GRADABLE, passed=False, evidence=evidence)
    return Grade(
        verdict=Verdict.FAILED, checks=(check,), evidence=evidence, grader_version=grader.version
    )


def ungraded(grader: Grader, evidence: str = "") -> Grade:
    """Return the grade of what was not graded."""
    return Grade(verdict=Verdict.UNGRADED, evidence=evidence, grader_version=grader.version)
