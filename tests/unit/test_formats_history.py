"""Tasks from a git history: which commits become one, and what can't fool their hidden tests."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from flywheel.formats.clone import tree_at
from flywheel.formats.collection import FormatError
from flywheel.formats.history import Origin, Skipped, tasks_from_history
from flywheel.formats.measure import measure, pytest_command, unittest_command
from flywheel.formats.swebench_rows import row_of_task, task_of_row
from flywheel.grade import grade_artifacts
from flywheel.sandbox import OpenSandbox, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from schemas.attempt import Verdict
from schemas.file import File
from schemas.task import TaskManifest
from tests.histories import (
    CALC,
    LABELS,
    TEST,
    attempt,
    commit,
    git,
    grade,
    graded,
    method,
    passed,
)

MUL = "def mul(a, b):\n    return a * b\n"
WITH_MUL = TEST + method("test_mul", "self.assertEqual(calc.mul(2, 3), 6)", "Products of two.")
FLAKY = WITH_MUL + method(
    "test_dice", "import os; self.assertEqual(calc.two(), 2); self.assertLess(os.urandom(1)[0], 1)"
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A history; the commits by what they are."""
    folder = tmp_path_factory.mktemp("history") / "calc-repo"
    commits = {
        "root": commit(
            folder, {"calc.py": CALC, "tests/test_calc.py": TEST, "README.md": "calc\n"}
        ),
        "good": commit(
            folder, {"calc.py": CALC + MUL, "tests/test_calc.py": WITH_MUL, "README.md": "mul\n"}
        ),
        "passes-before": commit(
            folder,
            {
                "calc.py": "# arithmetic\n" + CALC + MUL,
                "tests/test_calc.py": WITH_MUL + method("test_three", "calc.add(1, 2)"),
            },
        ),
        "tests-only": commit(folder, {"tests/test_calc.py": WITH_MUL}),
        "flaky": commit(
            folder,
            {
                "calc.py": CALC + MUL + "def two():\n    return 2\n",
                "tests/test_calc.py": FLAKY,
            },
        ),
        "fails-after": commit(
            folder,
            {
                "calc.py": CALC + MUL + "def three():\n    return 4\n",
                "tests/test_calc.py": WITH_MUL
                + method("test_3", "self.assertEqual(calc.three(), 3)"),
            },
        ),
    }
    return folder, commits


@pytest.fixture(scope="module")
def made(repository: tuple[Path, dict[str, str]]) -> list[TaskManifest | Skipped]:
    """What became of each commit, newest first."""
    return mine(repository[0])


def mine(folder: Path, limit: int = 20) -> list[TaskManifest | Skipped]:
    origin = Origin(folder, "https://example.org/calc", "MIT")
    return list(
        tasks_from_history(origin, unittest_command(20.0), Bubblewrap().open, LABELS, limit)
    )


@pytest.fixture(scope="module")
def task(made: list[TaskManifest | Skipped]) -> TaskManifest:
    (task,) = [item for item in made if isinstance(item, TaskManifest)]
    return task


def plus(task: TaskManifest, *files: File) -> tuple[File, ...]:
    """The tree that the reference leaves, with `files` put over it."""
    tree = {file.path: file for file in task.brief.environment.files}
    return tuple({**tree, **{file.path: file for file in files}}.values())


def test_exactly_the_commit_that_makes_a_test_pass_becomes_a_task(
    repository: tuple[Path, dict[str, str]], made: list[TaskManifest | Skipped], task: TaskManifest
) -> None:
    _, commits = repository
    reasons = {item.commit: item.reason for item in made if isinstance(item, Skipped)}
    assert reasons == {
        commits["passes-before"]: "nothing-fixed",
        commits["tests-only"]: "no-code-and-tests",
        commits["flaky"]: "nothing-fixed",
        commits["fails-after"]: "nothing-fixed",
    }
    assert commits["good"] in task.source.uri
    assert task.brief.environment.repository is not None
    assert task.brief.environment.repository.commit == commits["root"]


def numbered() -> OpenSandbox:
    """Open sandboxes whose workspace says which one it is."""
    counted = count(1)

    @contextmanager
    def opened(spec: SandboxSpec) -> Iterator[Sandbox]:
        with Bubblewrap().open(spec) as box:
            box.put([File(path="run", content=str(next(counted)))])
            yield box

    return opened


def test_tests_that_differ_between_runs_decide_nothing() -> None:
    methods = (
        method(f"test_{''.join(runs)}", f"assert open('run').read() in {runs!r}")
        for runs in ("34", "3", "4", "1234", "134", "234", "12")
    )
    test = "import unittest\nclass T(unittest.TestCase):\n" + "".join(methods)
    tree = {"test_a.py": File(path="test_a.py", content=test)}
    measured = measure(tree, tree, unittest_command(20.0), numbered(), LABELS)
    assert list(measured.fail_to_pass) == ["test_a.T.test_34"]
    assert measured.pass_to_pass == ("test_a.T.test_1234",)


def test_the_lists_hold_what_execution_showed(task: TaskManifest) -> None:
    (text,) = [f.content for f in task.sealed.grader.expected if f.path == "tests.json"]
    lists = json.loads(text)
    assert lists["fail_to_pass"] == ["tests.test_calc.T.test_mul"]
    assert lists["pass_to_pass"] == ["tests.test_calc.T.test_add"]


def test_the_statement_comes_from_the_failing_tests_and_not_from_the_commit(
    task: TaskManifest,
) -> None:
    goal = task.brief.goal
    for word in ("tests.test_calc.T.test_mul", "Products of two.", "no attribute 'mul'"):
        assert word in goal
    assert "answer" not in goal
    assert "return a * b" not in goal
    assert goal == " ".join(item.sentence for item in task.sealed.requirements)
    assert {c for item in task.sealed.requirements for c in item.checks} == {
        "fail-to-pass",
        "pass-to-pass",
    }


def test_the_agent_gets_the_tree_before_without_history_or_hidden_tests(task: TaskManifest) -> None:
    files = {file.path: file.content for file in task.brief.environment.files}
    assert files == {"calc.py": CALC, "tests/test_calc.py": TEST, "README.md": "calc\n"}


def test_the_reference_holds_the_code_part_of_the_diff_only_and_passes(task: TaskManifest) -> None:
    (call,) = task.sealed.reference
    assert "calc.py" in call.arguments["command"]
    assert "test_calc" not in call.arguments["command"]
    assert "README" not in call.arguments["command"]
    tree = attempt(task, task.sealed.reference)
    assert {f.path: f.content for f in tree}["calc.py"] == CALC + MUL
    assert passed(task, tree)


def test_doing_nothing_or_the_wrong_thing_fails_with_the_evidence(task: TaskManifest) -> None:
    nothing = grade(task, task.brief.environment.files)
    assert [word for word, _ in nothing.values()] == [False, True]
    assert "tests.test_calc.T.test_mul: error" in nothing["fail-to-pass"][1]
    assert "exit 1" in nothing["fail-to-pass"][1]
    assert "no attribute" in nothing["fail-to-pass"][1]
    wrong = plus(task, File(path="calc.py", content=CALC + MUL.replace("*", "+")))
    assert not grade(task, wrong)["fail-to-pass"][0]
    regression = plus(task, File(path="calc.py", content=CALC.replace("+", "-") + MUL))
    assert [word for word, _ in grade(task, regression).values()] == [True, False]


PASSING = "import unittest\nclass T(unittest.TestCase):\n" + "".join(
    method(name, "pass") for name in ("test_add", "test_mul")
)
PATCHER = "import unittest\nunittest.TestCase.run = lambda self, result=None: None\n"
SKIPPER = "import unittest\ndef mul(a, b): raise unittest.SkipTest\n"
REPORTER = (
    "import json, os, stat\nlines = [dict(nonce='', test=f'tests.test_calc.T.{name}', "
    "status='passed', message='', doc='') for name in ('test_add', 'test_mul')]\n"
    "lines.append(dict(nonce='', event='end'))\nfor fd in range(3, 64):\n"
    "    try:\n        if stat.S_ISFIFO(os.fstat(fd).st_mode):\n"
    "            os.write(fd, ''.join(json.dumps(line) + '\\n' for line in lines).encode())\n"
    "            os._exit(0)\n    except OSError: pass\n"
)
"""Writes a whole run's reports into the runner's pipe, without the word that only it has."""


@pytest.mark.parametrize(
    "planted",
    [
        File(path="tests/test_calc.py", content=PASSING),
        File(path="tests/__init__.py", content=PATCHER),
        File(path="conftest.py", content=PATCHER),
        File(path="tests/conftest.py", content=PATCHER),
        File(path="sitecustomize.py", content=PATCHER),
        File(path="usercustomize.py", content=PATCHER),
        File(path="a.pth", content="import os; os._exit(0)\n"),
        File(path="unittest.py", content="import os; os._exit(0)\n"),
        File(path="unittest/__init__.py", content="import os; os._exit(0)\n"),
        File(path="json.py", content="import os; os._exit(0)\n"),
        File(path="traceback.py", content="import os; os._exit(0)\n"),
        File(path="tests", content="no folder\n"),
        File(path="calc.py", content=f"{CALC}import os; os._exit(0)\n"),
        File(path="calc.py", content=f"{CALC}raise SystemExit(0)\n"),
        File(path="calc.py", content=CALC + REPORTER),
        File(path="calc.py", content=f"{CALC}import unittest\n" + PATCHER),
        File(
            path="calc.py", content=f"{CALC}def mul(a, b): raise __import__('unittest').SkipTest\n"
        ),
    ],
    ids=lambda file: f"{file.path}-{len(file.content)}",
)
def test_no_planted_file_makes_the_hidden_tests_pass(task: TaskManifest, planted: File) -> None:
    tree = {file.path: file for file in task.brief.environment.files}
    if planted.path == "tests":
        del tree["tests/test_calc.py"]
    assert not grade(task, {**tree, planted.path: planted}.values())["fail-to-pass"][0]


WRITER = (
    "import glob, os\nfor f in glob.glob('/proc/[0-9]*/fd/*'):\n    try:\n"
    "        if f.split('/')[2] != str(os.getpid()): open(f, 'w').write('graded\\n')\n"
    "    except OSError: pass\n"
)


def test_code_under_test_can_not_write_into_the_graders_output(task: TaskManifest) -> None:
    tree = plus(task, File(path="calc.py", content=CALC + WRITER))
    assert [word for word, _ in grade(task, tree).values()] == [False, True]


def test_code_that_kills_its_grader_fails(task: TaskManifest) -> None:
    tree = plus(task, File(path="calc.py", content="import os\nos.kill(-1, 9)\n"))
    assert graded(task, tree).verdict is Verdict.UNGRADED
    result, fault = grade_artifacts(task, tree, Bubblewrap().open, LABELS)
    assert (result.verdict, fault) == (Verdict.FAILED, None)


def test_planted_byte_code_does_not_stand_in_for_a_hidden_test(
    task: TaskManifest, tmp_path: Path
) -> None:
    (tmp_path / "test_calc.py").write_text(PASSING)
    script = "import py_compile, sys; py_compile.compile('test_calc.py', 'x.pyc', 'test_calc.py', "
    script += "invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    subprocess.run(["/usr/bin/env", "python3", "-c", script], cwd=tmp_path, check=True)
    data = (tmp_path / "x.pyc").read_bytes()
    names = [f"tests/__pycache__/test_calc.cpython-3{n}.pyc" for n in range(9, 15)]
    tree = plus(task, *(File.of(name, data) for name in names))
    assert not grade(task, tree)["fail-to-pass"][0]


def test_a_task_from_a_history_is_written_as_a_row_and_read_back_with_the_clone(
    task: TaskManifest, repository: tuple[Path, dict[str, str]]
) -> None:
    row = row_of_task(task)
    again = task_of_row(row, {str(row["repo"]): repository[0]})
    assert row_of_task(again) == row
    assert again.brief.environment.files == task.brief.environment.files
    assert passed(again, attempt(again, again.sealed.reference))
    assert not passed(again, again.brief.environment.files)


def test_tests_of_the_agents_own_do_no_harm(task: TaskManifest) -> None:
    tree = plus(
        task,
        File(path="calc.py", content=CALC + MUL),
        File(path="tests/test_calc.py", content=PASSING),
        File(path="tests/test_more.py", content="raise RuntimeError\n"),
        File(path="expected/run.sh", content="#!/bin/sh\n", mode=0o755),
    )
    assert passed(task, tree)


def with_plan(task: TaskManifest, changes: Mapping[str, object], without: str = "") -> TaskManifest:
    """The task with another `tests.json`, and without one of the grader's files."""
    files = {f.path: f for f in task.sealed.grader.expected if f.path != without}
    plan = json.loads(files["tests.json"].content) | dict(changes)
    files["tests.json"] = File(path="tests.json", content=json.dumps(plan))
    grader = task.sealed.grader.model_copy(update={"expected": tuple(files.values())})
    sealed = task.sealed.model_copy(update={"grader": grader})
    return task.model_copy(update={"sealed": sealed})


def test_tests_that_hang_fail_in_time_and_say_so(task: TaskManifest) -> None:
    hang = "import os\nif os.fork(): os.setsid() if 0 else None\nwhile True: pass\n"
    results = grade(
        with_plan(task, {"seconds": 1.0}), plus(task, File(path="calc.py", content=hang))
    )
    assert [word for word, _ in results.values()] == [False, False]
    assert all("did not end in time" in evidence for _, evidence in results.values())


def test_a_run_that_breaks_off_fails_even_where_the_listed_tests_had_passed(
    task: TaskManifest,
) -> None:
    listed = {"fail_to_pass": ["tests.test_calc.T.test_add"]}
    stops = plus(task, File(path="calc.py", content=CALC + "def mul(a, b): quit()\n" + STOP))
    results = grade(with_plan(task, listed), stops)
    assert [word for word, _ in results.values()] == [False, False]
    assert "broke off" in results["fail-to-pass"][1]


def test_a_listed_test_that_is_reported_twice_fails(task: TaskManifest) -> None:
    (text,) = [f.content for f in task.sealed.grader.expected if f.path == "tests.json"]
    twice = {"command": f"{json.loads(text)['command']} tests/test_calc.py"}
    right = plus(task, File(path="calc.py", content=CALC + MUL))
    results = grade(with_plan(task, twice), right)
    assert [word for word, _ in results.values()] == [False, False]
    assert "reported 2 times" in results["fail-to-pass"][1]


STOP = "import os\ndef quit(): os._exit(0)\n"


def test_a_flood_of_output_fails_and_the_evidence_stays_short(task: TaskManifest) -> None:
    flood = "while True: print('x' * 100000)\n"
    results = grade(
        with_plan(task, {"seconds": 5.0}), plus(task, File(path="calc.py", content=flood))
    )
    assert [word for word, _ in results.values()] == [False, False]
    assert all(len(evidence) <= 3000 for _, evidence in results.values())


@pytest.mark.parametrize(
    ("changes", "without"),
    [({}, "runner.py"), ({"fail_to_pass": []}, ""), ({"command": "exec /no/such/program"}, "")],
)
def test_a_runner_that_does_not_start_or_an_empty_list_grades_nothing(
    task: TaskManifest, changes: Mapping[str, object], without: str
) -> None:
    right = plus(task, File(path="calc.py", content=CALC + MUL))
    assert graded(with_plan(task, changes, without), right).verdict is Verdict.UNGRADED


def test_a_hostile_repository_runs_nothing_and_its_links_are_refused(tmp_path: Path) -> None:
    folder, proof = tmp_path / "hostile", tmp_path / "proof"
    commit(folder, {"calc.py": CALC, "tests/test_calc.py": TEST})
    (folder / "link").symlink_to("/etc/passwd")
    last = commit(folder, {"calc.py": CALC + MUL, "tests/test_calc.py": WITH_MUL})
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "alias.x"):
        git(folder, "config", key, f"touch {proof}")
    git(folder, "config", "filter.x.smudge", f"touch {proof}")
    git(folder, "config", "diff.x.textconv", f"touch {proof}")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    (folder / ".git" / "hooks" / "post-checkout").write_text(f"#!/bin/sh\ntouch {proof}\n")
    (item,) = mine(folder)
    assert isinstance(item, Skipped)
    assert (item.commit, item.reason) == (last, "unreadable")
    assert "symbolic link" in item.evidence
    assert not proof.exists()


def test_a_tree_too_large_to_come_back_from_a_sandbox_is_refused(tmp_path: Path) -> None:
    name = commit(tmp_path / "large", {"data.txt": "x" * 600_000})
    with pytest.raises(FormatError, match="at most 1000 and 524288 can be put into a task"):
        tree_at(tmp_path / "large", name)


def test_a_tree_is_read_whole_with_modes_and_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "modes"
    folder.mkdir()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "data.bin").write_bytes(b"\xff\0\n")
    name = commit(folder, {"a b/ü.txt": "x"})
    tree = tree_at(folder, name)
    assert {path: (file.data(), file.mode) for path, file in tree.items()} == {
        "run.sh": (b"#!/bin/sh\n", 0o755),
        "data.bin": (b"\xff\0\n", 0o644),
        "a b/ü.txt": (b"x", 0o644),
    }


def test_pytest_runs_where_it_exists_and_its_absence_is_a_reason(
    repository: tuple[Path, dict[str, str]],
) -> None:
    origin = Origin(repository[0], "https://example.org/calc", "MIT")
    items = list(tasks_from_history(origin, pytest_command(20.0), Bubblewrap().open, LABELS, 3))
    assert {item.reason for item in items if isinstance(item, Skipped)} == {
        "nothing-fixed",
        "no-code-and-tests",
    }
    assert any("reported nothing" in item.evidence for item in items if isinstance(item, Skipped))
