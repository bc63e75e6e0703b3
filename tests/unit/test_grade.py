"""Grading around the grader programs: what they are given, where, and whose fault is whose."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from flywheel.errors import SandboxError
from flywheel.grade import grade_artifacts, grade_sets, right_answer
from flywheel.graders import ABSOLUTE, grader_source
from flywheel.sandbox import Backend, ExecResult, Sandbox, SandboxSpec
from flywheel.sandbox.choose import open_backend
from schemas.attempt import Grade, InfraStage, Verdict
from schemas.file import File
from schemas.task import Exercise, TaskManifest
from tests.graded_tasks import LABELS, graded_task
from tests.real_tasks import faulty

TREE = (File.of("bin/run.sh", b"#!/bin/sh\n", 0o755), File.of("etc/deep/conf", b"a=1\n", 0o600))
GIVEN = (File.of("given/in.csv", b"a,1\n"), File.of("scratch.txt", b"mine\n"))
FILES = ("input-unchanged", "exists", "paths", "contents", "modes")
PRINTS = Exercise(
    name="prints",
    files=(File.of("in.txt", b"3"),),
    argv=("/usr/bin/env", "python3", "-I", "main.py"),
)
MAIN = File.of("main.py", b"print(2 * int(open('in.txt').read()))\n")
ANSWER = File(path=PRINTS.output, content="6\n")


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("bubblewrap")


class Opened:
    """Opens sandboxes of a backend and remembers what they were started with."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.specs = backend, list[SandboxSpec]()

    @contextmanager
    def __call__(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        self.specs.append(spec)
        with self.backend.open(spec) as sandbox:
            yield sandbox


def tree_task() -> TaskManifest:
    return graded_task(
        "files", FILES, expected=TREE, files=GIVEN, protected=("given/in.csv",), seconds=7.0
    )


def exercised_task() -> TaskManifest:
    return graded_task("files", ("answers",), expected=(ANSWER,), exercises=(PRINTS,), seconds=3.0)


def graded(task: TaskManifest, artifacts: Sequence[File], backend: Backend) -> Grade:
    grade, infra = grade_artifacts(task, artifacts, backend.open, LABELS)
    assert infra is None
    return grade


def failed(grade: Grade) -> set[str]:
    return {check.name for check in grade.checks if not check.passed}


def test_a_right_answer_is_what_is_expected_and_what_is_protected(backend: Backend) -> None:
    task = tree_task()
    assert right_answer(task) == (*TREE, GIVEN[0])
    assert graded(task, right_answer(task), backend).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("artifacts", "wrong"),
    [
        ((*TREE, GIVEN[0]), set()),
        ((*reversed(TREE), GIVEN[0]), set()),
        ((*TREE, File.of("given/in.csv", b"a,2\n")), {"input-unchanged"}),
        (TREE, {"input-unchanged"}),
        ((TREE[0], File.of(TREE[1].path, TREE[1].data(), 0o644), GIVEN[0]), {"modes"}),
        ((TREE[1], GIVEN[0]), {"exists", "paths", "contents", "modes"}),
        ((File.of("bin/run.sh", b"#!/bin/sh\n", 0o000), TREE[1], GIVEN[0]), {"modes"}),
    ],
)
def test_trees_are_graded_with_their_folders_and_modes(
    backend: Backend, artifacts: tuple[File, ...], wrong: set[str]
) -> None:
    assert failed(graded(tree_task(), artifacts, backend)) == wrong


def test_a_grader_gets_the_protected_inputs_only_sealed_and_lists_of_modes(
    backend: Backend,
) -> None:
    seen: dict[str, str] = {}

    @contextmanager
    def looked_into(spec: SandboxSpec) -> Iterator[Sandbox]:
        with backend.open(spec) as sandbox:
            yield sandbox
            for file in sandbox.tree(".").files:
                seen[file.path] = f"{file.mode:o}"
            seen["sets"] = sandbox.get("sets/1.modes").decode()
            seen["expected"] = sandbox.get("expected/output.modes").decode()

    grade_sets(tree_task(), [(), TREE], looked_into, LABELS)
    modes = "0755 bin/run.sh\n0600 etc/deep/conf\n"
    assert seen == {
        "expected": modes,
        "expected/inputs/given/in.csv": "444",
        "expected/output.modes": "444",
        "expected/output/bin/run.sh": "444",
        "expected/output/etc/deep/conf": "444",
        "sets": modes,
        "sets/0.modes": "444",
        "sets/1.modes": "444",
        "sets/1/bin/run.sh": "444",
        "sets/1/etc/deep/conf": "444",
    }


def test_several_sets_take_one_boot_in_the_base_image(backend: Backend) -> None:
    opened = Opened(backend)
    right = right_answer(tree_task())
    verdicts = [g.verdict for g in grade_sets(tree_task(), [right, TREE, right], opened, LABELS)]
    assert verdicts == [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED]
    (spec,) = opened.specs
    assert (spec.image, spec.workdir, spec.folders) == (None, "/workspace", ())
    assert spec.deadline == 60.0 + 3 * 7.0


def test_exercises_run_before_grading_in_a_sandbox_of_their_own(backend: Backend) -> None:
    opened, task = Opened(backend), exercised_task()
    wrong = File.of("main.py", b"print(int(open('in.txt').read()) + 2)\n")
    sets = [[MAIN], [wrong], [ANSWER]]
    verdicts = [grade.verdict for grade in grade_sets(task, sets, opened, LABELS)]
    assert verdicts == [Verdict.PASSED, Verdict.FAILED, Verdict.FAILED]
    assert [set(spec.programs) for spec in opened.specs] == [set(), {"files"}]


def dies(program: str, code: str = "worker-lost") -> object:
    def meddle(argv: list[str], call: object) -> ExecResult:
        if argv[0] == program:
            stage = InfraStage.TOOL if code == "worker-lost" else InfraStage.ENGINE
            raise SandboxError(stage, code, "planted")
        return call()  # type: ignore[operator, no-any-return]

    return meddle


def test_a_program_that_kills_its_exercise_twice_has_failed(backend: Backend) -> None:
    opened = Opened(backend)
    meddled = faulty(opened, dies(PRINTS.argv[0]))  # type: ignore[arg-type]
    grade, infra = grade_artifacts(exercised_task(), [MAIN], meddled, LABELS)
    assert (grade.verdict, failed(grade), infra) == (Verdict.FAILED, {"gradable"}, None)
    assert [set(spec.programs) for spec in opened.specs] == [set(), set(), {"files"}]


@pytest.mark.parametrize(
    ("program", "code", "stage"),
    [("files", "worker-lost", InfraStage.TOOL), (PRINTS.argv[0], "gone", InfraStage.ENGINE)],
)
def test_a_fault_that_the_artifacts_can_not_have_caused_grades_nothing(
    backend: Backend, program: str, code: str, stage: InfraStage
) -> None:
    meddled = faulty(backend.open, dies(program, code))  # type: ignore[arg-type]
    grade, infra = grade_artifacts(exercised_task(), [MAIN], meddled, LABELS)
    assert (grade.verdict, infra and infra.stage) == (Verdict.UNGRADED, stage)


def test_an_artifact_in_the_way_of_an_exercises_input_has_failed(backend: Backend) -> None:
    """The input can't be written where the agent left a folder."""
    grade = graded(exercised_task(), [MAIN, File.of("in.txt/x", b"")], backend)
    assert failed(grade) == {"gradable"}


def test_a_grader_gets_the_seconds_that_its_task_says(backend: Backend) -> None:
    slow = graded_task("harbor", ("reward",), expected=(verifier("sleep 3"),), seconds=0.5)
    grade, infra = grade_artifacts(slow, (), backend.open, LABELS)
    assert grade.verdict is Verdict.UNGRADED
    assert "timed out" in grade.evidence
    assert infra is not None


def verifier(script: str) -> File:
    return File.of("test.sh", f"{script}\n".encode(), 0o755)


def harbor_task(script: str) -> TaskManifest:
    return graded_task("harbor", ("reward",), expected=(verifier(script),), workdir="/app/src")


def test_hidden_tests_find_the_tree_in_the_workdir_with_its_modes(backend: Backend) -> None:
    task = harbor_task(
        "set -e; test $PWD = /app/src; test $(ls | wc -l) = 1; bin/ok; touch /solution/x\n"
        "stat -c %a bin/ok /tests/test.sh > /logs/verifier/seen\n"
        'test "$(cat /logs/verifier/seen | tr -d "\\n")" = 750755\n'
        "echo 1 > /logs/verifier/reward.txt"
    )
    artifacts = [File.of("bin/ok", b"#!/bin/sh\nexit 0\n", 0o750)]
    grade = graded(task, artifacts, backend)
    assert grade.verdict is Verdict.PASSED, grade.checks


def test_each_set_of_hidden_tests_has_a_sandbox_of_its_own(backend: Backend) -> None:
    opened = Opened(backend)
    task = harbor_task(
        "test -e planted && r=0 || r=1; touch planted /tmp/x; echo $r > /logs/verifier/reward.txt"
    )
    grades = grade_sets(task, [(), (File.of("planted", b""),), ()], opened, LABELS)
    assert [grade.verdict for grade in grades] == [
        Verdict.PASSED,
        Verdict.FAILED,
        Verdict.PASSED,
    ]
    assert len(opened.specs) == 3
    for spec in opened.specs:
        assert spec.workdir == "/app/src"
        assert {"/tests", "/logs", "/solution"} < set(spec.folders)
        assert spec.deadline == 80.0


def test_hidden_tests_run_in_the_image_of_their_task(backend: Backend) -> None:
    task = json.loads(harbor_task("true").model_dump_json(exclude_computed_fields=True))
    task["brief"]["environment"]["image"] = "needs-docker:1"
    with pytest.raises(SandboxError, match="needs-docker:1"):
        grade_sets(TaskManifest.model_validate_json(json.dumps(task)), [()], backend.open, LABELS)


def test_artifacts_that_bring_hidden_tests_down_have_failed_where_those_work_without_them(
    backend: Backend,
) -> None:
    script = "test -e bomb && exit 1; echo 0 > /logs/verifier/reward.txt"
    grade = graded(harbor_task(script), [File.of("bomb", b"")], backend)
    assert failed(grade) == {"gradable"}
    broken, infra = grade_artifacts(harbor_task("exit 1"), (), backend.open, LABELS)
    assert broken.verdict is Verdict.UNGRADED
    assert infra is not None
    assert infra.code == "right-answer-ungraded"


def test_graders_of_absolute_paths_ship() -> None:
    assert all(grader_source(name) for name in ABSOLUTE)
