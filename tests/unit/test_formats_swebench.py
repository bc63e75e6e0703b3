"""SWE-bench rows and task repositories: what is read, refused, run and written back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.formats.collection import FormatError
from flywheel.formats.documents import Value
from flywheel.formats.patch import applied_by, applying, touched
from flywheel.formats.swebench import read_task_repo, recognise_swebench, write_task_repo
from flywheel.formats.swebench_rows import read_rows, row_of_task, task_of_row, write_rows
from flywheel.graders.reports import Outcome, read_junit, read_log
from schemas.file import File
from schemas.task import TaskManifest
from tests.histories import CALC, TEST, attempt, commit, git, grade, method, passed

Row = dict[str, Value]
MUL = "def mul(a, b):\n    return a * b\n"
WITH_MUL = TEST + method("test_mul", "self.assertEqual(calc.mul(2, 3), 6)")
SCRIPT = (
    "echo preparing\n: '>>>>> Start Test Output'\necho '>>>>> Start Test Output'\n"
    "python3 -m unittest -v tests.test_calc\ncode=$?\necho '>>>>> End Test Output'\n"
    'echo ">>>>> Test Exit Code: $code"\ntrue\n'
)
KEPT: Row = {
    "hints_text": "look",
    "created_at": "2024-01-01T00:00:00Z",
    "version": "1.0",
    "environment_setup_commit": "0" * 40,
    "log_parser": "parse_log_django",
    "eval_type": "pass_and_fail",
    "split": "test",
    "datasets": ["a/b"],
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swebench") / "calc"
    commit(folder, {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TEST})
    commit(folder, {"calc.py": CALC + MUL, "tests/test_calc.py": WITH_MUL})
    return folder


@pytest.fixture(scope="module")
def row(clone: Path) -> Row:
    """An instance as swebench 5.0.2 has it, of a repository whose tests print as Django's do."""
    return {
        "instance_id": "who__calc-1",
        "repo": "who/calc",
        "base_commit": git(clone, "rev-parse", "HEAD^").strip(),
        "patch": git(clone, "diff", "HEAD^", "HEAD", "--", "calc.py"),
        "test_patch": git(clone, "diff", "HEAD^", "HEAD", "--", "tests"),
        "problem_statement": "Products are missing.",
        "FAIL_TO_PASS": json.dumps(["test_mul (tests.test_calc.T.test_mul)"]),
        "PASS_TO_PASS": json.dumps(["test_add (tests.test_calc.T.test_add)"]),
        "image": "swebench/sweb.eval.x86_64.who_1776_calc-1:latest",
        "eval_script": SCRIPT,
        **KEPT,
    }


def test_a_row_becomes_a_task_with_everything_in_its_place(row: Row) -> None:
    task = task_of_row(row)
    environment = task.brief.environment
    assert (task.family, task.brief.goal) == ("swebench", "Products are missing.")
    assert environment.image == row["image"]
    assert environment.workdir == "/testbed"
    assert environment.repository is not None
    assert environment.repository.url == "https://github.com/who/calc"
    assert environment.repository.commit == row["base_commit"]
    assert [tool.name for tool in task.brief.tools] == ["bash", "submit"]
    assert task.brief.artifacts == ("./",)
    assert task.sealed.grader.checks == ("fail-to-pass", "pass-to-pass")
    assert json.loads(task.outside["split"]) == "test"
    assert json.loads(task.outside["flywheel_component"]) == "who/calc"
    assert str(row["test_patch"]) not in task.brief.model_dump_json()


def test_a_row_comes_back_as_it_was_with_and_without_a_clone(row: Row, clone: Path) -> None:
    assert row_of_task(task_of_row(row)) == row
    assert row_of_task(task_of_row(row, {"who/calc": clone})) == row


@given(
    statement=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    added=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])),
    extra=st.dictionaries(
        st.text(min_size=1, max_size=20).map("x_".__add__),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3),
        ),
        max_size=4,
    ),
    tests=st.lists(st.text("abc[] -/:é", min_size=1, max_size=9), min_size=1, unique=True),
)
def test_any_row_survives_the_way_into_a_task_and_back(
    statement: str, added: str, extra: Row, tests: list[str]
) -> None:
    patch = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{added}\n"
    names = json.dumps([f"t::{name}" for name in tests])
    row: Row = {
        "instance_id": "a__b-1",
        "repo": "a/b",
        "base_commit": "1" * 40,
        "patch": patch,
        "test_patch": patch.replace("x", "tests/test_x.py"),
        "problem_statement": statement,
        "FAIL_TO_PASS": names,
        "PASS_TO_PASS": "[]",
        "image": "i@sha256:" + "0" * 64,
        "eval_script": "true",
        **extra,
    }
    task = task_of_row(row)
    assert row_of_task(task) == row
    assert (
        TaskManifest.model_validate_json(
            task.model_dump_json(exclude={"task_id", "version_id", "prompt_hash"})
        )
        == task
    )


def test_a_row_of_an_older_release_gets_its_image_and_pytest_on_the_test_files(row: Row) -> None:
    later = ("image", "eval_script", "log_parser", "eval_type", "split", "datasets")
    old = {name: value for name, value in row.items() if name not in later}
    old["FAIL_TO_PASS"] = ["tests/test_calc.py::T::test_mul"]
    task = task_of_row(old)
    assert task.brief.environment.image == row["image"]
    written = row_of_task(task)
    assert written["eval_script"] == "python -m pytest -rA tests/test_calc.py"
    assert task_of_row(written).task_id == task.task_id


def test_with_a_clone_the_task_runs_and_only_a_right_solution_passes(row: Row, clone: Path) -> None:
    task = task_of_row({**row, "image": None}, {"who/calc": clone})
    assert {file.path for file in task.brief.environment.files} == {
        "calc.py",
        "tests/__init__.py",
        "tests/test_calc.py",
    }
    assert passed(task, attempt(task, task.sealed.reference))
    nothing = grade(task, task.brief.environment.files)
    assert [word for word, _ in nothing.values()] == [False, True]
    tampered = [File(path="tests/test_calc.py", content=WITH_MUL.replace("6", "5"))]
    assert not passed(task, [File(path="calc.py", content=CALC + MUL.replace("*", "+")), *tampered])
    assert passed(task, [File(path="calc.py", content=CALC + MUL), *tampered])


def without_image(task: TaskManifest) -> TaskManifest:
    """The task on the base image, so that it runs where its image can't be had."""
    environment = task.brief.environment.model_copy(update={"image": None})
    brief = task.brief.model_copy(update={"environment": environment})
    return task.model_copy(update={"brief": brief})


def test_without_a_clone_the_tests_come_as_a_patch_to_untouched_test_files(row: Row) -> None:
    task = without_image(task_of_row(row))
    solved = [File(path="calc.py", content=CALC + MUL), File(path="tests/__init__.py", content="")]
    assert passed(task, [*solved, File(path="tests/test_calc.py", content=TEST)])
    neutered = TEST.replace("import calc\n", "import calc\ncalc.mul = lambda a, b: 6\n")
    for changed in (neutered, "import unittest\n", TEST + method("test_mul", "pass")):
        results = grade(task, [*solved, File(path="tests/test_calc.py", content=changed)])
        assert [word for word, _ in results.values()] == [False, False]
    assert "test.patch" in results["fail-to-pass"][1]


def test_an_exit_code_that_contradicts_the_log_fails(row: Row, clone: Path) -> None:
    script = SCRIPT.replace("code=$?", "code=3")
    task = task_of_row({**row, "image": None, "eval_script": script}, {"who/calc": clone})
    results = grade(task, attempt(task, task.sealed.reference))
    assert [word for word, _ in results.values()] == [False, False]
    assert "exit code is 3, yet no test failed" in results["fail-to-pass"][1]


LINK = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"


def diff(path: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("patch", "+" + "x" * 200_000, "no diff"),
        ("patch", diff("a") + "x" * 200_000, "more than 120000 bytes"),
        ("patch", "", "no diff"),
        ("patch", None, "missing"),
        ("patch", diff("../../etc/passwd"), "must not contain '..'"),
        ("patch", diff("/etc/passwd"), "must be relative"),
        ("patch", diff(".git/hooks/post-checkout"), "lies in .git"),
        ("patch", 'diff --git "a/\\033[31m" "b/\\033[31m"\nnew file mode 100644\n', "printable"),
        ("patch", "--- a/x\n+++ b/../../y\n@@ -0,0 +1 @@\n+x\n", "must not contain '..'"),
        ("patch", "diff --git a/x b/y\nrename from x\nrename to ../y\n", "must not contain '..'"),
        ("patch", LINK, "symbolic link"),
        ("patch", diff("a\0b"), "holds a NUL"),
        ("test_patch", "", "no diff"),
        ("test_patch", diff("../t.py"), "must not contain '..'"),
        ("problem_statement", "\ud800", "surrogate"),
        ("problem_statement", None, "missing"),
        ("base_commit", "main", "pattern"),
        ("base_commit", "--upload-pack=x", "pattern"),
        ("instance_id", "../../x", "use letters"),
        ("instance_id", "a\nb", "use letters"),
        ("FAIL_TO_PASS", "[]", "empty"),
        ("FAIL_TO_PASS", "[" * 100_000, "no list"),
        ("FAIL_TO_PASS", [1], "no list"),
        ("FAIL_TO_PASS", ["a\x1b[31m"], "printable"),
        ("PASS_TO_PASS", ["a\tpass\n"], "printable"),
        ("PASS_TO_PASS", ["a"] * 1 + [str(n) for n in range(50_001)], "at most 50000"),
        ("log_parser", "parse_log_karma", "unknown"),
        ("log_parser", "pytest", "not pytest's"),
        ("eval_script", None, "only pytest runs without one"),
    ],
    ids=str,
)
def test_a_row_that_can_not_work_is_refused_by_field(
    row: Row, field: str, value: Value, said: str
) -> None:
    with pytest.raises(FormatError, match=said) as caught:
        task_of_row({**row, field: value})
    assert field in str(caught.value) or field.split("_")[-1] in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_clone_without_the_commit_or_with_tests_changed_by_the_solution_is_refused(
    row: Row, clone: Path
) -> None:
    with pytest.raises(FormatError, match="ls-tree"):
        task_of_row({**row, "base_commit": "1" * 40}, {"who/calc": clone})
    with pytest.raises(FormatError, match="give way to the hidden ones: tests/test_calc"):
        task_of_row({**row, "patch": row["test_patch"]}, {"who/calc": clone})
    wrong = str(row["test_patch"]).replace("self.assertEqual(calc.add", "self.other(calc.add")
    with pytest.raises(FormatError, match="git apply"):
        task_of_row({**row, "test_patch": wrong}, {"who/calc": clone})


def test_only_a_deprecated_task_may_have_no_test_that_shows_it_done(row: Row) -> None:
    task = task_of_row({**row, "FAIL_TO_PASS": "[]", "split": "deprecated"})
    assert task.sealed.grader.checks == ("pass-to-pass",)
    with pytest.raises(FormatError, match="no test decides"):
        task_of_row({**row, "FAIL_TO_PASS": "[]", "PASS_TO_PASS": "[]", "split": "deprecated"})


def test_a_file_of_rows_gives_a_task_or_a_reason_for_each(row: Row, tmp_path: Path) -> None:
    bad = {**row, "FAIL_TO_PASS": "[]"}
    texts = [json.dumps(row), "{", "7", "", json.dumps(bad), json.dumps(row)]
    (tmp_path / "rows.jsonl").write_text("\n".join(texts))
    items = list(read_rows(tmp_path / "rows.jsonl"))
    assert [isinstance(item, TaskManifest) for item in items] == [True, False, False, False, True]
    assert "row 3" in str(items[2])
    assert "FAIL_TO_PASS" in str(items[3])
    (tmp_path / "rows.json").write_text(json.dumps([row, 7]))
    assert [isinstance(i, ManifestError) for i in read_rows(tmp_path / "rows.json")] == [
        False,
        True,
    ]
    (tmp_path / "rows.json").write_text("{}")
    with pytest.raises(FormatError, match="no JSON list"):
        list(read_rows(tmp_path / "rows.json"))


def test_written_rows_are_read_as_the_same_tasks(row: Row, tmp_path: Path) -> None:
    tasks = [task_of_row(row), task_of_row({**row, "instance_id": "who__calc-2"})]
    write_rows(tasks, tmp_path / "rows.jsonl")
    assert list(read_rows(tmp_path / "rows.jsonl")) == tasks


@pytest.fixture
def repo(row: Row, tmp_path: Path) -> Path:
    """A task repository of two tasks, one of them with a file of each further kind."""
    folder = tmp_path / "repo"
    for name in ("who__calc-1", "who__calc-2"):
        task = folder / "tasks" / name
        task.mkdir(parents=True)
        meta = {"instance_id": name, "repo": "who/calc", "base_commit": row["base_commit"]}
        meta |= {"image": row["image"], **KEPT}
        del meta["hints_text"]
        (task / "task.yaml").write_text(yaml.safe_dump(meta))
        lists = {key: json.loads(str(row[key])) for key in ("FAIL_TO_PASS", "PASS_TO_PASS")}
        (task / "tests.json").write_text(json.dumps(lists, indent=2) + "\n")
        texts = {"gold.patch": "patch", "test.patch": "test_patch", "eval.sh": "eval_script"}
        for file, column in {**texts, "problem_statement.md": "problem_statement"}.items():
            (task / file).write_text(str(row[column]))
        (task / "Dockerfile").write_text("FROM base\nRUN true\n")
    (task / "hints.md").write_text("look")
    (task / "test_assets" / "tests").mkdir(parents=True)
    (task / "test_assets" / "tests" / "want.bin").write_bytes(b"\xff\0")
    (task / "problem_assets").mkdir()
    (task / "problem_assets" / "shot.txt").write_text("seen")
    (folder / "sweb.yaml").write_text("datasets: [a/b, c/d]\nsplits: [test, dev]\nowner: us\n")
    return folder


def content(folder: Path) -> dict[str, object]:
    """The files of a folder: YAML and JSON by their values, others by their bytes."""
    found: dict[str, object] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        plain = path.suffix in (".yaml", ".json")
        name = path.relative_to(folder).as_posix()
        found[name] = yaml.safe_load(path.read_text()) if plain else path.read_bytes()
    return found


def test_a_task_repository_comes_back_whole(repo: Path, tmp_path: Path) -> None:
    assert recognise_swebench(repo)
    assert not recognise_swebench(repo / "tasks")
    tasks = [task for task in read_task_repo(repo) if isinstance(task, TaskManifest)]
    assert len(tasks) == 2
    write_task_repo(tasks, tmp_path / "out")
    assert content(tmp_path / "out") == content(repo)
    assert list(read_task_repo(tmp_path / "out")) == tasks


def test_assets_of_the_tests_are_hidden_and_put_where_they_belong(repo: Path) -> None:
    _, task = read_task_repo(repo)
    assert isinstance(task, TaskManifest)
    hidden = {file.path: file.data() for file in task.sealed.grader.expected}
    assert hidden["hidden/tests/want.bin"] == b"\xff\0"


def test_broken_folders_are_refused_one_by_one(repo: Path) -> None:
    tasks = repo / "tasks"
    (tasks / "a-link").symlink_to(tasks / "who__calc-1")
    for name, file, text in (
        ("empty", "x", ""),
        ("other-id", "task.yaml", "instance_id: another\n"),
        ("bomb", "task.yaml", "a: &a [x, x]\nb: &b [*a, *a]\n" + "c: [*b, *b]\n" * 90_000),
        ("tag", "task.yaml", "!!python/object/apply:os.system [id]\n"),
    ):
        (tasks / name).mkdir()
        (tasks / name / file).write_text(text)
    (tasks / "who__calc-1" / "tests.json").write_text("[]")
    items = list(read_task_repo(repo))
    refused = [str(item) for item in items if isinstance(item, ManifestError)]
    assert len(items) == 7
    assert len(refused) == 6
    for name in ("a-link", "bomb", "empty", "other-id", "tag", "who__calc-1"):
        assert sum(f"tasks/{name}" in text for text in refused) == 1, name
    assert all(text.isprintable() for text in refused)


def test_a_task_of_another_kind_is_not_written_as_a_row(row: Row) -> None:
    task = task_of_row(row)
    script = (task.sealed.reference[0].model_copy(update={"arguments": {"command": "ls"}}),)
    sealed = task.sealed.model_copy(update={"reference": script})
    with pytest.raises(FormatError, match="does not apply one patch"):
        row_of_task(task.model_copy(update={"sealed": sealed}))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_the_patch_that_a_reference_applies_can_be_read_from_it(text: str) -> None:
    patch = diff("a") + text
    assert applied_by(applying(patch, "t", "patch")) == patch


def test_a_removed_line_that_looks_like_a_header_is_no_path() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/../y\n+++ b/../y\n same\n"
    assert touched(patch, "t", "patch") == {"x": ""}


def test_what_a_patch_makes_of_each_file_is_known_by_its_blob(tmp_path: Path) -> None:
    commit(tmp_path, {"keep": "1\n", "gone": "2\n", "old name": "3\n" * 9})
    (tmp_path / "gone").unlink()
    (tmp_path / "old name").rename(tmp_path / "neü name")
    commit(tmp_path, {"keep": "4\n", "empty": "", "fresh": "5\n"})
    found = touched(git(tmp_path, "diff", "-M", "HEAD^", "HEAD"), "t", "patch")
    blobs = {name: git(tmp_path, "rev-parse", f"HEAD:{name}")[:7] for name in found.keys() - OLD}
    assert found == {**blobs, "neü name": "", "gone": "0000000", "old name": "0"}


OLD = {"gone", "old name"}


CASES = """
import pytest
class TestC:
    class TestD:
        @pytest.mark.parametrize("x", ["a b", "c]", "::"])
        def test_p(self, x): assert x != "c]"
def test_ok(): pass
def test_skip(): pytest.skip("no")
@pytest.mark.xfail
def test_xfail(): assert 0
def test_error(nothing): pass
"""


def test_junit_names_are_the_ones_that_pytest_prints(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_cases.py").write_text(CASES)
    argv = [sys.executable, "-m", "pytest", "-rA", "-p", "no:randomly", "-p", "no:cacheprovider"]
    report = tmp_path / "report.xml"
    argv += [f"--junitxml={report}", "-o", "junit_family=xunit1", "-c", "/dev/null"]
    subprocess.run(
        [*argv, f"--rootdir={tmp_path}", "sub"], cwd=tmp_path, capture_output=True, check=False
    )
    file = "sub/test_cases.py"
    assert {outcome.test: outcome.status for outcome in read_junit(report.read_text())} == {
        f"{file}::TestC::TestD::test_p[a b]": "passed",
        f"{file}::TestC::TestD::test_p[c]]": "failed",
        f"{file}::TestC::TestD::test_p[::]": "passed",
        f"{file}::test_ok": "passed",
        f"{file}::test_skip": "skipped",
        f"{file}::test_xfail": "passed",
        f"{file}::test_error": "error",
    }


@pytest.mark.parametrize("text", ["", "<a", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_junit(text)


def test_logs_of_unittest_and_sympy_are_read_between_the_markers() -> None:
    log = (
        "test_zero (t.T) ... ok\n>>>>> Start Test Output\n"
        "test_a (t.T.test_a) ... ok\ntest_b (t.T) ... FAIL\ntest_c (t.T) ... ERROR\n"
        "test_d (t.T) ... skipped 'why'\ntest_e (t.T) ... expected failure\n"
        "test_f ok\ntest_g F\ntest_h E\nnoise\n"
        ">>>>> End Test Output\ntest_y (t.T) ... ok\n"
    )
    assert list(read_log(log)) == [
        Outcome("test_a (t.T.test_a)", "passed"),
        Outcome("test_b (t.T)", "failed"),
        Outcome("test_c (t.T)", "error"),
        Outcome("test_d (t.T)", "skipped"),
        Outcome("test_e (t.T)", "passed"),
        Outcome("test_f", "passed"),
        Outcome("test_g", "failed"),
        Outcome("test_h", "error"),
    ]
