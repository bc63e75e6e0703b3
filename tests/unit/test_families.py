"""Every shipped family makes executable tasks that a reference solves and wrong readings fail.

Here the programs of three families run in this process; those of the others run in sandboxes, in
tests of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.families import Family, Rules
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.screen.lint import lint
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Brief, Budget, Environment, MutantKind, Source, SourceKind, TaskManifest
from schemas.tool import ToolHome
from tests.programs import attempt, observe

SOURCE = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")
OBSERVED = {"orders": "deduplicate", "logs": "deduplicate", "config": "drop-key"}
"""The tool whose operand is not in the goal: it is seen in what the first call prints."""


def make(family: str, rules: Rules, seed: int = 0, split: Split = Split.TRAIN) -> TaskManifest:
    return make_task(FAMILIES[family], rules, seed, Lexicon(split), Budget(), SOURCE)


def combinations_of(family: Family[Any], size: int) -> Iterator[Rules]:
    """Every set of `size` rules that can be live together."""
    return filter(family.allows, map(frozenset, combinations(family.rules, size)))


SINGLES = [(name, rule) for name in OBSERVED for rule in FAMILIES[name].rules]
CELLS = {
    name: [rules for size in (1, 2, 3) for rules in combinations_of(family, size)]
    for name, family in FAMILIES.items()
}


def cells_of(names: Iterable[str]) -> st.SearchStrategy[tuple[str, Rules]]:
    """A family and rules, each family equally often."""
    return st.sampled_from(sorted(names)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(CELLS[name]))
    )


def tasks_of(names: Iterable[str]) -> st.SearchStrategy[TaskManifest]:
    return st.builds(
        lambda cell, seed, split: make(cell[0], cell[1], seed, split),
        cells_of(names),
        st.integers(0, 10_000),
        st.sampled_from(Split),
    )


tasks = tasks_of(FAMILIES)
tasks_run_here = tasks_of(OBSERVED)


def with_brief(task: TaskManifest, **changes: Any) -> TaskManifest:
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**fields | {"brief": Brief(**dict(task.brief) | changes)})


def all_in_sandbox(family: Family[Any]) -> bool:
    """Tell whether a family's tools are programs, which can run in this process."""
    return all(tool.home in (ToolHome.SANDBOX, ToolHome.HARNESS) for tool in family.tools)


def check_grading(task: TaskManifest) -> None:
    """The reference passes every check; each mutant and doing nothing fail one."""
    assert all(attempt(task, task.sealed.reference).values())
    assert not all(attempt(task, ()).values())
    survivors = [m.name for m in task.sealed.mutants if all(attempt(task, m.script).values())]
    assert survivors == []


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize(("family", "rule"), SINGLES)
def test_a_single_rule_is_solved_by_its_reference_and_by_no_mutant(
    family: str, rule: str, split: Split
) -> None:
    check_grading(make(family, frozenset({rule}), 0, split))


@settings(max_examples=40, deadline=None)
@given(tasks_run_here)
def test_up_to_three_rules_are_solved_by_their_reference_and_by_no_mutant(
    task: TaskManifest,
) -> None:
    check_grading(task)


@settings(max_examples=40, deadline=None)
@given(tasks)
def test_every_rule_and_every_neighbour_of_a_task_has_a_mutant(task: TaskManifest) -> None:
    mutants = task.sealed.mutants
    neighbours = FAMILIES[task.family].neighbours
    left_out = {m.rule for m in mutants if m.kind is MutantKind.RULE_LEFT_OUT}
    swapped = {m.rule for m in mutants if m.kind is MutantKind.RULE_SWAPPED}
    assert left_out == set(task.rules)
    assert swapped == set(task.rules) & set(neighbours)
    assert len({m.name for m in mutants}) == len(mutants) == len(left_out) + len(swapped)
    assert task.sealed.reference not in [m.script for m in mutants]


@settings(max_examples=40, deadline=None)
@given(cells_of(FAMILIES), st.integers(0, 10_000), st.sampled_from(Split))
def test_the_same_arguments_make_the_same_task_and_another_seed_another(
    cell: tuple[str, Rules], seed: int, split: Split
) -> None:
    task = make(*cell, seed, split)
    assert make(*cell, seed, split) == task
    assert make(*cell, seed + 1, split).task_id != task.task_id


@settings(max_examples=40, deadline=None)
@given(tasks_of(name for name, family in FAMILIES.items() if all_in_sandbox(family)))
def test_every_call_of_a_reference_is_allowed_and_succeeds(task: TaskManifest) -> None:
    script = task.sealed.reference
    assert {call.tool for call in script} <= {tool.name for tool in task.brief.tools}
    assert [code for code, _ in observe(task, script)] == [0] * len(script)


@settings(max_examples=100, deadline=None)
@given(tasks_run_here)
def test_a_goal_names_every_operand_but_the_one_that_only_an_observation_shows(
    task: TaskManifest,
) -> None:
    unnamed = {name for name in task.operands if f"`{name}`" not in task.brief.goal}
    observed = [call for call in task.sealed.reference if call.tool == OBSERVED[task.family]]
    assert unnamed == {next(iter(call.arguments.values())) for call in observed}
    ((_, printed),) = observe(task, task.sealed.reference[:1])
    assert all(f"`{name}`" in printed for name in unnamed)


@settings(max_examples=100, deadline=None)
@given(tasks)
def test_operands_are_the_arguments_that_are_not_chosen_from_a_list(task: TaskManifest) -> None:
    choices = {
        (tool.name, parameter.name): parameter.choices
        for tool in task.brief.tools
        for parameter in tool.parameters
    }
    for call in task.sealed.reference:
        for name, value in call.arguments.items():
            allowed = choices[call.tool, name]
            assert value in allowed if allowed else value in task.operands


@settings(max_examples=100, deadline=None)
@given(tasks)
def test_a_brief_holds_no_answer_and_stays_short(task: TaskManifest) -> None:
    files, grader = task.brief.environment.files, task.sealed.grader
    shown = [task.brief.goal.encode(), *(file.data() for file in files)]
    there = {file.path for file in files}
    made = [file for file in grader.expected if file.path not in there]
    answers = {file.data().strip() for file in made if file.data() not in shown}
    assert not any(answer in text for answer in answers if len(answer) >= 12 for text in shown)
    assert made == list(grader.expected) or grader.program == "files"
    assert not all(file in files for file in grader.expected)
    assert len(task.brief.goal.split()) <= 130


def no_image(image: str, needles: Mapping[str, bytes]) -> list[str]:
    raise AssertionError(f"a shipped task stands in the base image, not in {image}")


@settings(max_examples=60, deadline=None)
@given(tasks)
def test_every_task_passes_the_checks_that_screening_makes_without_running_it(
    task: TaskManifest,
) -> None:
    checks = lint(task, no_image)
    assert [(check.kind, check.evidence) for check in checks if not check.passed] == []


@pytest.mark.parametrize(
    ("family", "rules", "empty"),
    [
        ("orders", {"keep-first", "only-status", "at-least"}, r".*\n"),
        ("logs", {"with-code", "only-level", "since"}, r"\[\]\n"),
    ],
)
def test_rules_that_narrow_never_leave_an_empty_answer(
    family: str, rules: set[str], empty: str
) -> None:
    answers = [make(family, frozenset(rules), n).sealed.grader.expected[0] for n in range(150)]
    assert not any(re.fullmatch(empty, answer.content) for answer in answers)


@settings(max_examples=40, deadline=None)
@given(cells_of(FAMILIES), st.integers(0, 10_000))
def test_wordings_of_a_goal_differ_in_words_and_not_in_literals(
    cell: tuple[str, Rules], seed: int
) -> None:
    name, rules = cell
    family = FAMILIES[name]
    case = family.build(rules, Random(seed), Lexicon(Split.TRAIN))
    worded = [family.goal(case, rules, Random(wording)) for wording in range(30)]
    goals = {" ".join(requirement.sentence for requirement in goal) for goal in worded}
    literals = {frozenset(re.findall("`[^`]+`", goal)) for goal in goals}
    assert len(goals) > 1
    assert len(literals) == 1


@settings(max_examples=20, deadline=None)
@given(tasks)
def test_a_reworded_goal_is_the_same_task_and_another_environment_is_not(
    task: TaskManifest,
) -> None:
    reworded = with_brief(task, goal=f"Please: {task.brief.goal}")
    assert reworded.task_id == task.task_id
    assert reworded.version_id != task.version_id
    files = (*task.brief.environment.files, File(path="notes.txt", content="none"))
    assert with_brief(task, environment=Environment(files=files)).task_id != task.task_id


@pytest.mark.parametrize("family", FAMILIES)
def test_tasks_of_two_splits_share_no_operand(family: str) -> None:
    seen = {
        split: {
            operand
            for rules in combinations_of(FAMILIES[family], 2)
            for seed in range(3)
            for operand in make(family, rules, seed, split).operands
        }
        for split in Split
    }
    for one, other in combinations(Split, 2):
        assert seen[one]
        assert not seen[one] & seen[other]


@pytest.mark.parametrize(("family", "size"), [(name, n) for name in FAMILIES for n in (1, 2, 3)])
def test_every_allowed_combination_can_be_made(family: str, size: int) -> None:
    for rules in combinations_of(FAMILIES[family], size):
        assert make(family, rules).rules == tuple(sorted(rules))


@pytest.mark.parametrize(
    ("family", "rules"),
    [
        ("orders", {"keep-first", "keep-last"}),
        ("logs", {"repeats-first", "repeats-last"}),
        ("config", {"base-wins", "override-wins"}),
        ("logs", {"quietest-first"}),
        ("orders", {"unheard-of"}),
        ("config", set()),
    ],
)
def test_rules_that_clash_or_are_unknown_are_refused(family: str, rules: set[str]) -> None:
    with pytest.raises(ManifestError, match=f"family {family}: rules"):
        make(family, frozenset(rules))


def test_a_family_without_a_live_case_is_refused_with_the_seed_named() -> None:
    dead = replace(
        FAMILIES["logs"], target=lambda case, rules: (File(path="a.json", content="[]"),)
    )
    with pytest.raises(ManifestError, match=r"no case with .* live in 200 draws of seed 7"):
        make_task(dead, frozenset({"since"}), 7, Lexicon(Split.DEV), Budget(), SOURCE)


def test_the_override_file_is_there_only_for_a_rule_that_merges_it() -> None:
    for rules in combinations_of(FAMILIES["config"], 2):
        task = make("config", rules)
        inis = {file.path for file in task.brief.environment.files}
        assert len(inis) == (2 if rules & {"override-wins", "base-wins"} else 1)
        assert inis == set(re.findall(r"`(\w+\.ini)`", task.brief.goal))


def test_json_in_an_env_file_fails() -> None:
    task = make("config", frozenset({"as-env"}))
    (mutant,) = (m for m in task.sealed.mutants if m.name == "without-as-env")
    (right,) = task.sealed.grader.expected
    assert right.path.endswith(".env")
    assert mutant.script[-1].arguments == {"file": right.path, "format": "json"}
    assert attempt(task, mutant.script)["rows"] is False
