"""Grading: in a second, clean sandbox that holds the grader, the right answer and the artifacts.

A grade exists only where the grader finished and said so. A grader that falls over is run again on
the same artifacts in a fresh sandbox. If it falls over again while it can still grade the right
answer, the artifacts did it: that is the attempt's failure. If it can't, nothing is graded.
"""

from collections.abc import Mapping, Sequence

from flywheel.errors import SandboxError
from flywheel.graders import grader_source
from flywheel.sandbox import ExecResult, OpenSandbox, Sandbox, SandboxSpec
from schemas.attempt import CheckResult, Grade, InfraStage, InfraStatus, Verdict
from schemas.task import File, Grader, TaskManifest

GRADE_SECONDS = 20.0
"""For one set of artifacts."""
BOOT_SECONDS = 60.0
"""Allowed on top of the work's own seconds before a sandbox is killed from outside."""
ARTIFACTS_CAN_CAUSE = frozenset({InfraStage.TOOL, InfraStage.MEMORY, InfraStage.DEADLINE})
"""Ends of the grader's sandbox that are tried again and then held against the artifacts."""
GRADABLE = "gradable"
"""The check that an artifact fails when it brings the grader down."""

Artifacts = Sequence[File]


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
        control = _grade_once(task, right_answer(task), open_sandbox, labels)
    except SandboxError as error:
        return ungraded(task.sealed.grader, str(error)), error.status
    if control.verdict is Verdict.PASSED:
        return _brought_down(task.sealed.grader, grade.evidence), None
    fault = InfraStatus(
        stage=InfraStage.GRADER,
        code="right-answer-ungraded",
        evidence=f"artifacts: {grade.evidence}; right answer: {control.evidence}",
        retryable=False,
    )
    return ungraded(task.sealed.grader, grade.evidence), fault


def _grade_once(
    task: TaskManifest,
    artifacts: Artifacts,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> Grade:
    """Grade once; a sandbox that dies under the grader is a grader that fell over."""
    try:
        (grade,) = grade_sets(task, [artifacts], open_sandbox, labels)
    except SandboxError as error:
        if error.status.stage not in ARTIFACTS_CAN_CAUSE:
            raise
        return ungraded(task.sealed.grader, str(error))
    return grade


def grade_sets(
    task: TaskManifest,
    sets: Sequence[Artifacts],
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> list[Grade]:
    """Grade several sets in one boot, each from its own folder in a process of its own.

    More than one set only for trusted scripts: hostile artifacts get a sandbox each.

    Raises:
        SandboxError: the sandbox failed; nothing was graded.
    """
    grader = task.sealed.grader
    spec = SandboxSpec(
        programs={grader.program: grader_source(grader.program)},
        deadline=BOOT_SECONDS + GRADE_SECONDS * len(sets),
        labels=labels,
    )
    with open_sandbox(spec) as sandbox:
        sandbox.put(grader.expected, "expected/output", read_only=True)
        sandbox.put(task.brief.environment.files, "expected/inputs", read_only=True)
        return [_grade(sandbox, grader, f"sets/{n}", files) for n, files in enumerate(sets)]


def right_answer(task: TaskManifest) -> tuple[File, ...]:
    """Return the artifacts that a perfect attempt leaves behind."""
    return (*task.sealed.grader.expected, *task.brief.environment.files)


def _grade(sandbox: Sandbox, grader: Grader, folder: str, artifacts: Artifacts) -> Grade:
    sandbox.put(artifacts, folder, read_only=True)
    argv = [grader.program, folder, "expected", *grader.checks]
    return _read(grader, sandbox.call(argv, GRADE_SECONDS))


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
