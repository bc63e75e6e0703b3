"""Small tasks with any grader, for tests of grading alone."""

from flywheel.graders import grader_version
from flywheel.tools import SUBMIT_TOOL
from schemas.file import File
from schemas.task import (
    Brief,
    Budget,
    Environment,
    Exercise,
    Grader,
    Sealed,
    Source,
    SourceKind,
    TaskManifest,
)
from schemas.tool import ToolCall

LABELS = {"run": "grade-test", "attempt": "a"}


def graded_task(
    program: str,
    checks: tuple[str, ...],
    *,
    expected: tuple[File, ...] = (),
    files: tuple[File, ...] = (),
    protected: tuple[str, ...] = (),
    exercises: tuple[Exercise, ...] = (),
    seconds: float = 20.0,
    workdir: str = "/workspace",
) -> TaskManifest:
    """A task that is graded by `program` and whose agent may do nothing but submit."""
    grader = Grader(
        program=program,
        version=grader_version(program),
        checks=checks,
        expected=expected,
        protected=protected,
        exercises=exercises,
        seconds=seconds,
    )
    return TaskManifest(
        family="test",
        family_version="1",
        rules=(),
        seed=0,
        operands=(),
        brief=Brief(
            goal="submit",
            environment=Environment(files=files, workdir=workdir),
            tools=(SUBMIT_TOOL,),
            artifacts=("./",),
            budget=Budget(),
        ),
        sealed=Sealed(grader=grader, reference=(ToolCall(tool="submit", arguments={}),)),
        features=None,
        source=Source(kind=SourceKind.SEED, uri="test", licence="Apache-2.0"),
    )
