"""Exercises: hidden runs of a delivered program, without an answer in sight."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from flywheel.exercise import exercise
from flywheel.sandbox import Backend, Sandbox, SandboxSpec
from flywheel.sandbox.choose import open_backend
from schemas.file import File
from schemas.task import Exercise
from tests.graded_tasks import LABELS, graded_task

RUN = ("/usr/bin/env", "python3", "-I", "sum.py", "in.txt")
SUM = b"import sys\nprint(sum(map(int, open(sys.argv[1]).read().split())))\n"
OUTPUT = "exercises/two.txt"


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("bubblewrap")


def given(name: str = "two", data: bytes = b"1\n2\n", argv: tuple[str, ...] = RUN) -> Exercise:
    return Exercise(name=name, files=(File.of("in.txt", data),), argv=argv)


def exercised(
    backend: Backend,
    artifacts: Sequence[File],
    *exercises: Exercise,
    seconds: float = 5.0,
) -> dict[str, bytes]:
    """Exercise one set; return path → bytes of what is then graded."""
    task = graded_task("files", ("answers",), exercises=exercises, seconds=seconds)
    (made,) = exercise(task, [artifacts], backend.open, LABELS)
    return {file.path: file.data() for file in made}


def shell(backend: Backend, script: str, *artifacts: File, seconds: float = 5.0) -> bytes:
    """Return what an exercise that runs a command line is graded by."""
    tried = given(argv=("/bin/sh", "-c", script))
    return exercised(backend, artifacts, tried, seconds=seconds)[OUTPUT]


def test_a_delivered_program_is_run_on_each_hidden_input(backend: Backend) -> None:
    made = exercised(backend, [File.of("sum.py", SUM)], given(), given("none", b""))
    assert made == {"sum.py": SUM, OUTPUT: b"3\n", "exercises/none.txt": b"0\n"}


def test_each_run_starts_from_the_artifacts_with_their_modes(backend: Backend) -> None:
    counting = ("/bin/sh", "-c", "./count; ls")
    count = File.of("count", b"#!/bin/sh\necho x >> log; wc -l < log\n", 0o755)
    made = exercised(
        backend, [count], *(given(name, argv=counting) for name in ("first", "second"))
    )
    del made["count"]
    assert set(made.values()) == {b"1\ncount\nin.txt\nlog\n"}


def test_several_sets_share_one_sandbox_and_keep_their_own_outputs(backend: Backend) -> None:
    opened: list[SandboxSpec] = []

    @contextmanager
    def counted(spec: SandboxSpec) -> Iterator[Sandbox]:
        opened.append(spec)
        with backend.open(spec) as sandbox:
            yield sandbox

    task = graded_task("files", ("answers",), exercises=(given(),), workdir="/a/b")
    sets = [[File.of("sum.py", SUM)], [File.of("sum.py", b"print(7)")], []]
    made = exercise(task, sets, counted, LABELS)
    assert [files[-1].data() for files in made[:2]] == [b"3\n", b"7\n"]
    assert made[2][-1].data().endswith(b"[exit 2]\n")
    (spec,) = opened
    assert (spec.workdir, spec.programs, spec.labels) == ("/a/b", {}, LABELS)


def test_nothing_of_the_answers_is_in_the_sandbox(backend: Backend) -> None:
    answer = File(path=OUTPUT, content="the-answer-is-3")
    search = "grep -rsl -D skip the-answer / --exclude-dir=proc --exclude-dir=usr; ls -R /workspace"
    tried = given(argv=("/bin/sh", "-c", search))
    task = graded_task("files", ("answers",), expected=(answer,), exercises=(tried,), seconds=20.0)
    ((output,),) = exercise(task, [()], backend.open, LABELS)
    assert output.data().split() == b"/workspace: 0 /workspace/0: 0 /workspace/0/0: in.txt".split()


def test_without_exercises_no_sandbox_is_started() -> None:
    def never(spec: SandboxSpec) -> Sandbox:
        raise AssertionError(spec)

    artifacts = (File.of("a", b"x"),)
    assert exercise(graded_task("files", ("bytes",)), [artifacts], never, {}) == [artifacts]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "graded"),
    [
        ("printf 3", b"3"),
        ("true", b""),
        ("echo 3; exit 4", b"3\n[exit 4]\n"),
        ("printf 3; exit 4", b"3\n[exit 4]\n"),
        ("exit 4", b"[exit 4]\n"),
        ("kill -9 $$", b"[exit -9]\n"),
        ("printf '\\377\\000ok'", "\ufffd\0ok".encode()),
        ("echo out; echo err >&2", b"out\nerr\n"),
    ],
)
def test_what_is_not_a_clean_exit_is_told_on_a_last_line(
    backend: Backend, script: str, graded: bytes
) -> None:
    assert shell(backend, script) == graded


def test_a_program_that_does_not_end_is_timed_out(backend: Backend) -> None:
    assert shell(backend, "echo 3; sleep 60", seconds=0.5) == b"3\n[timed out]\n"


def test_a_flood_is_cut_and_says_so(backend: Backend) -> None:
    lines = shell(backend, "yes | head -c 100000; exit 1").splitlines()
    assert lines[-2:] == [b"[output cut]", b"[exit 1]"]
    assert len(lines) < 10_000


def test_a_program_that_is_not_there_is_the_artifacts_fault(backend: Backend) -> None:
    tried = given(argv=("/no/such/program",))
    assert exercised(backend, [], tried)[OUTPUT].endswith(b"[exit 127]\n")


def test_a_planted_output_or_input_does_not_stand(backend: Backend) -> None:
    planted = [
        File.of("in.txt", b"100\n", 0o444),
        File.of(OUTPUT, b"3\n"),
        File.of("./exercises/other.txt", b"3\n"),
        File.of("sum.py", SUM + b"print(open('exercises/two.txt').read())"),
    ]
    made = exercised(backend, planted, given())
    assert made.keys() == {"in.txt", "sum.py", OUTPUT}
    assert made[OUTPUT] == b"3\n3\n\n"


def test_an_exercise_whose_output_would_leave_its_folder_can_not_be_made() -> None:
    with pytest.raises(ValidationError, match=r"exercise.name 'a/../../b'"):
        given("a/../../b")
