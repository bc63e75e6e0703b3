"""Wrong answers made from right ones: never the right one again, and of every kind."""

import json

import pytest

from flywheel.families.catalogue import FAMILIES
from flywheel.grade import right_answer
from flywheel.screen.flake import flake_interval, is_flaky
from flywheel.screen.perturb import perturb
from schemas.file import File
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
