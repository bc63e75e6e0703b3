"""Wrong answers made from right ones: never the right one again, and of every kind."""

import json
import sqlite3
import time
from contextlib import closing

import pytest

from flywheel.families.catalogue import FAMILIES
from flywheel.grade import right_answer
from flywheel.screen.flake import flake_interval, is_flaky
from flywheel.screen.perturb import perturb
from schemas.file import File
from schemas.task import SourceKind, TaskManifest
from tests.real_tasks import real_task


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_perturbed_answer_is_another_one_than_the_right_one(family: str) -> None:
    task = real_task(next(iter(FAMILIES[family].rules)), family=family)
    right = right_answer(task)
    wrong = list(perturb(task, right))
    names = [name for name, _ in wrong]
    assert len(names) == len(set(names))
    assert all(artifacts != right for _, artifacts in wrong)
    assert {name.split(":")[0] for name in names} >= {"constant", "emptied", "elsewhere"}


def test_the_edits_follow_the_format() -> None:
    task = real_task("repeats-first", family="logs")
    edits = {
        name.split(":")[0]: next(file for file in artifacts if file.path.endswith(".json"))
        for name, artifacts in perturb(task, right_answer(task))
        if any(file.path.endswith(".json") for file in artifacts)
    }
    rows = json.loads(right_answer(task)[0].content)
    assert json.loads(edits["row-dropped"].content) == rows[:-1]
    assert json.loads(edits["row-repeated"].content) == [*rows, rows[-1]]
    assert json.loads(edits["value-changed"].content)[-1]["count"] == rows[-1]["count"] + 1
    assert "rows-reversed" not in edits


def test_the_order_of_rows_is_broken_only_where_it_counts() -> None:
    task = real_task("busiest-first", family="logs")
    names = {name.split(":")[0] for name, _ in perturb(task, right_answer(task))}
    assert "rows-reversed" in names


def test_every_protected_input_is_once_modified_and_once_removed() -> None:
    task = real_task("override-wins", family="config")
    names = {name for name, _ in perturb(task, right_answer(task))}
    for path in task.sealed.grader.protected:
        assert {f"input-modified:{path}", f"input-removed:{path}"} <= names


def test_an_old_state_is_tried_where_the_answer_replaces_an_input() -> None:
    task = real_task()
    initial = task.brief.environment.files[0]
    grader = task.sealed.grader.model_copy(update={"protected": ()})
    sealed = task.sealed.model_copy(update={"grader": grader})
    edited = File(path=initial.path, content="edited in place\n")
    wrong = dict(perturb(task.model_copy(update={"sealed": sealed}), (edited,)))
    assert wrong[f"stale:{initial.path}"] == (initial,)


def test_three_clean_runs_still_allow_a_high_flake_rate_and_thirty_a_low_one() -> None:
    """Jeffreys' interval; the upper ends are those of Beta(0.5, n + 0.5) at 97.5 %."""
    assert flake_interval(3, 3) == (0.0, pytest.approx(0.535, abs=0.002))
    assert flake_interval(30, 30) == (0.0, pytest.approx(0.080, abs=0.002))
    low, high = flake_interval(20, 18)
    assert 0.0 < low < 0.1 < high < 0.3


def test_one_failure_in_four_is_flaky_and_one_in_a_hundred_is_not() -> None:
    assert is_flaky(4, 3)
    assert not is_flaky(100, 99)
    assert not is_flaky(3, 3)


def outsiders(task: TaskManifest, **grader: object) -> TaskManifest:
    """The task as a stranger brings it, its grader changed."""
    changed = task.sealed.grader.model_copy(update=grader)
    sealed = task.sealed.model_copy(update={"grader": changed})
    source = task.source.model_copy(update={"kind": SourceKind.IMPORTED})
    return task.model_copy(update={"sealed": sealed, "source": source})


def names_of(task: TaskManifest, *right: File) -> set[str]:
    return {name for name, _ in perturb(task, right)}


def test_the_constant_is_another_one_where_it_is_the_answer() -> None:
    wrong = dict(perturb(real_task(), (File(path="count.txt", content="42"),)))
    assert wrong["constant:count.txt"][0].content == "17\n"


def test_an_empty_answer_is_not_emptied() -> None:
    assert "emptied:done.flag" not in names_of(real_task(), File(path="done.flag", content=""))


def test_a_protected_input_that_is_no_artifact_is_left_alone() -> None:
    names = names_of(outsiders(real_task(), protected=("absent.csv",)), File(path="a", content="1"))
    assert names
    assert not {name for name in names if name.startswith("input-")}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("lines.json", b'{"a": 1}\n{"a": 2}\n'),
        ("mixed.json", b'[1, {}, {"a": 2}]'),
        ("last-empty.json", b"[{}]"),
        ("deep.json", b"[" * 200_000),
        ("long.json", b"9" * 10_000),
        ("wide.csv", b"a\n" + b"x" * 200_000 + b"\n"),
        ("broken.csv", b'a,b\r"\n1,2\rx\n'),
        ("not.sqlite", b"SQLite format 3\0" + bytes(range(256)) * 20),
        ("empty.env", b""),
        ("n" * 251 + ".txt", b"x"),
    ],
    ids=lambda value: value[:15] if isinstance(value, str) else "",
)
def test_no_artifact_breaks_the_making_of_wrong_ones(path: str, data: bytes) -> None:
    right = (File.of(path, data),)
    for task in (real_task(), outsiders(real_task(), checks=("exists",))):
        assert all(wrong != right for _, wrong in perturb(task, right))
        assert names_of(task, *right) >= {f"constant:{path}", f"elsewhere:{path}"}


def database(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as made:
        for statement in statements:
            made.execute(statement)
        made.commit()
        return made.serialize()


def test_a_database_with_odd_names_is_edited() -> None:
    data = database('CREATE TABLE "a""b" ("c""d" PRIMARY KEY)', 'INSERT INTO "a""b" VALUES (1)')
    names = names_of(real_task(), File.of("shop.db", data))
    edits = {"row-dropped", "value-changed", "table-renamed", "column-renamed", "keys-dropped"}
    assert names >= {f"{edit}:shop.db" for edit in edits}


def test_a_strangers_database_is_not_opened() -> None:
    data = database("CREATE TABLE a (b)", "INSERT INTO a VALUES (1)")
    names = names_of(outsiders(real_task()), File.of("shop.db", data))
    assert "cut:shop.db" in names
    assert "row-dropped:shop.db" not in names


def test_a_trigger_without_end_is_stopped() -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
    data = database(
        "CREATE TABLE a (b)",
        "INSERT INTO a VALUES (1)",
        f"CREATE TRIGGER t AFTER UPDATE ON a BEGIN UPDATE a SET b = ({endless}); END",
    )
    began = time.monotonic()
    names = names_of(real_task(), File.of("shop.db", data))
    assert time.monotonic() - began < 5
    assert "row-dropped:shop.db" in names
    assert "value-changed:shop.db" not in names


def test_a_strangers_answer_is_tried_in_another_order_though_no_check_names_it() -> None:
    rows = File(path="rows.csv", content="a,b\n1,2\n3,4\n")
    reversed_rows = "rows-reversed:rows.csv"
    assert reversed_rows in names_of(outsiders(real_task(), checks=("rows",)), rows)
    ours = real_task()
    assert "order" not in ours.sealed.grader.checks
    assert reversed_rows not in names_of(ours, rows)


def test_values_are_changed_for_a_verifier_of_the_tasks_own_and_not_in_code() -> None:
    rows = File(path="rows.csv", content="a,b\n1,2\n")
    assert "value-changed:rows.csv" in names_of(outsiders(real_task(), program="harbor"), rows)
    assert "value-changed:rows.csv" not in names_of(outsiders(real_task(), program="tests"), rows)


def test_a_stranger_who_grades_a_folder_is_tried_with_a_file_too_many_and_a_lost_mode() -> None:
    task = outsiders(real_task(), program="files", checks=("contents",))
    brief = task.brief.model_copy(update={"artifacts": ("out/",)})
    right = File(path="out/run.sh", content="true\n", mode=0o755)
    wrong = dict(perturb(task.model_copy(update={"brief": brief}), (right,)))
    assert wrong["other-mode:out/run.sh"][0].mode == 0o644
    assert [file.path for file in wrong["stray-file"]][1:] == ["out/stray-of-screening"]
