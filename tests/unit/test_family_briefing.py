"""Clarification tasks: what the goal leaves open, the user tells, and every answer is needed."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.families import Rules
from flywheel.families.briefing import FAMILY, Shipments
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair, make_task
from flywheel.families.told import told
from flywheel.grade import grade_sets
from flywheel.sandbox import ArtifactRefused, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.tools import BASH_TOOL, command, programs_for
from flywheel.tools.user import ScriptedUserTool
from schemas.attempt import Verdict
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget, Capability, Source, SourceKind, TaskManifest
from schemas.tool import Script, ToolHome

BACKEND = Bubblewrap()
SOURCE = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")
CELLS = [
    rules
    for size in (1, 2, 3)
    for rules in map(frozenset, combinations(FAMILY.rules, size))
    if FAMILY.allows(rules)
]
PATTERN = re.compile("`([^`]+)`")


def make(rules: Rules, seed: int = 0, split: Split = Split.TRAIN) -> TaskManifest:
    return make_task(FAMILY, rules, seed, Lexicon(split), Budget(), SOURCE)


def left_by(task: TaskManifest, script: Script, sandbox: Sandbox, folder: str) -> tuple[File, ...]:
    """Carry out a script in a clean folder; asking is answered by the task's user."""
    sandbox.put(task.brief.environment.files, folder)
    user = ScriptedUserTool(task.sealed.user) if task.sealed.user else None
    tools = {tool.name: tool for tool in (*task.brief.tools, BASH_TOOL)}
    for call in script:
        tool = tools[call.tool]
        if tool.home is ToolHome.HOST:
            assert user is not None
            user.answer(call.arguments, 1.0)
        else:
            sandbox.call(command(tool, call), 10.0, folder)
    return tuple(artifacts(task, sandbox, folder))


def artifacts(task: TaskManifest, sandbox: Sandbox, folder: str) -> Iterator[File]:
    for path in task.brief.artifacts:
        try:
            yield File.of(path, sandbox.get(f"{folder}/{path}"))
        except ArtifactRefused:
            continue


def verdicts(task: TaskManifest, scripts: Sequence[Script]) -> list[bool]:
    """Execute scripts in one sandbox, grade what they leave in another: passed or not."""
    spec = SandboxSpec(programs=programs_for(task.brief.tools), deadline=60.0, labels={})
    with BACKEND.open(spec) as sandbox:
        sets = [left_by(task, script, sandbox, f"run-{n}") for n, script in enumerate(scripts)]
    grades = grade_sets(task, sets, BACKEND.open, {"run": "test", "attempt": "test"})
    assert all(grade.verdict is not Verdict.UNGRADED for grade in grades)
    return [grade.verdict is Verdict.PASSED for grade in grades]


def without_steps(script: Script) -> list[Script]:
    """The script without each of its calls that change something."""
    return [script[:at] + script[at + 1 :] for at, call in enumerate(script) if call.tool != "ask"]


CASE = Shipments(
    source="in.csv",
    output="out.csv",
    columns=("key", "port", "firm", "state", "size", "cost"),
    rows=(
        ("a", "x", "s", "paid", 5, 10),  # 2.50
        ("b", "y", "s", "paid", 9, 14),  # 3.50
        ("a", "y", "t", "open", 7, 6),  # 1.50
        ("c", "x", "t", "paid", 9, 4),  # 1.00
    ),
    status="paid",
    quantity=6,
    thing="shipment",
)


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        ((), "port:x,2,3.5 y,2,5.0"),
        (("last-counts",), "port:x,1,1.0 y,2,5.0"),
        (("first-counts",), "port:x,2,3.5 y,1,3.5"),
        (("only-status",), "port:x,2,3.5 y,1,3.5"),
        (("not-status",), "port:y,1,1.5"),
        (("at-least",), "port:x,1,1.0 y,2,5.0"),
        (("other-group",), "firm:s,2,6.0 t,2,2.5"),
        (("largest-first",), "port:y,2,5.0 x,2,3.5"),
        (("smallest-first",), "port:x,2,3.5 y,2,5.0"),
        (("first-counts", "largest-first"), "port:x,2,3.5 y,1,3.5"),  # a tie: by name
        (("last-counts", "only-status"), "port:x,1,1.0 y,1,3.5"),  # the last one, then paid
        (("first-counts", "at-least", "other-group"), "firm:s,1,3.5 t,1,1.0"),
    ],
)
def test_the_right_answer_is_as_worked_out_by_hand(rules: Sequence[str], answer: str) -> None:
    (file,) = FAMILY.target(CASE, frozenset(rules))
    column, rows = answer.split(":")
    assert file.content.split() == [f"{column},count,total", *rows.split()]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_allowed_combination_can_be_made_live(seed: int) -> None:
    for rules in CELLS:
        assert make(rules, seed).rules == tuple(sorted(rules))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 10_000), st.sampled_from(Split))
def test_the_same_arguments_make_the_same_task_and_another_seed_another(
    rules: Rules, seed: int, split: Split
) -> None:
    task = make(rules, seed, split)
    assert make(rules, seed, split) == task
    assert make(rules, seed + 1, split).task_id != task.task_id


@pytest.mark.parametrize(
    "rules",
    [
        {"last-counts", "only-status", "at-least"},
        {"first-counts", "not-status", "other-group"},
        {"other-group", "smallest-first"},
        {"largest-first", "at-least", "not-status"},
        {"last-counts"},
    ],
    ids=lambda rules: "+".join(sorted(rules)),
)
def test_reference_and_alternative_pass_and_everything_wrong_fails(rules: set[str]) -> None:
    task = make(frozenset(rules), 5)
    reference = task.sealed.reference
    right = [reference, *task.sealed.alternatives]
    prefixes = [reference[:at] for at in range(len(reference))]
    mutants = [mutant.script for mutant in task.sealed.mutants]
    assert {mutant.rule for mutant in task.sealed.mutants} == rules
    wrong = [*without_steps(reference), *prefixes, *mutants]
    passed = verdicts(task, [*right, *wrong])
    assert passed[: len(right)] == [True] * len(right)
    assert passed[len(right) :] == [False] * len(wrong)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 10_000))
def test_tools_target_and_alternative_agree(rules: Rules, seed: int) -> None:
    task = make(rules, seed)
    assert verdicts(task, [task.sealed.reference, *task.sealed.alternatives]) == [True, True]


@pytest.mark.parametrize("rules", [CELLS[0], frozenset({"largest-first", "at-least"})])
def test_an_answer_in_another_form_passes(rules: Rules) -> None:
    task = make(rules)
    (right,) = task.sealed.grader.expected
    rows = list(csv.reader(io.StringIO(right.content)))
    quoted = "".join('"' + '","'.join(row) + '"\r\n' for row in rows)
    numbers = right.content.replace(".0\n", "\n").replace(".5\n", ".50\n")
    sets = [
        (File(path=right.path, content=text), *task.brief.environment.files)
        for text in (quoted, numbers)
    ]
    grades = grade_sets(task, sets, BACKEND.open, {"run": "test", "attempt": "test"})
    assert [grade.verdict for grade in grades] == [Verdict.PASSED] * 2


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 10_000), st.sampled_from(Split))
def test_the_user_tells_what_the_goal_leaves_open_in_the_references_order(
    rules: Rules, seed: int, split: Split
) -> None:
    task = make(rules, seed, split)
    assert task.sealed.user is not None
    user, asked = ScriptedUserTool(task.sealed.user), list[str]()
    known = task.brief.goal
    for call in task.sealed.reference:
        if call.tool == "ask":
            answer = user.answer(call.arguments, 1.0)
            assert not answer.failed
            known += answer.text
            asked.append(call.arguments["about"])
        else:
            chosen = {"keep", "order"}
            named = {value for name, value in call.arguments.items() if name not in chosen}
            assert named <= set(PATTERN.findall(known))
    assert asked == re.findall(r"ask about (\w+)\.", task.brief.goal)
    assert sorted(asked) == sorted(task.sealed.user.answers)
    assert task.features is not None
    assert (task.features.missing, task.features.rounds) == (len(rules), len(rules))
    assert Capability.CLARIFICATION in task.features.capabilities


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 10_000))
def test_the_goal_itself_gives_no_answer_away(rules: Rules, seed: int) -> None:
    task = make(rules, seed)
    assert task.sealed.user is not None
    literals = {
        word for text in task.sealed.user.answers.values() for word in PATTERN.findall(text)
    }
    columns = set(task.brief.environment.files[0].content.splitlines()[0].split(","))
    assert not (literals - columns) & set(PATTERN.findall(task.brief.goal))
    assert not re.search("largest|smallest|first one|last one", task.brief.goal.lower())


def test_what_depends_on_another_answer_has_to_wait_for_it() -> None:
    task = make(frozenset({"only-status", "at-least", "largest-first"}))
    assert task.sealed.user is not None
    assert task.sealed.user.after == {"quantity": "status"}
    user = ScriptedUserTool(task.sealed.user)
    assert user.answer({"about": "quantity"}, 1.0).failed
    assert user.answer({"about": "deadline"}, 1.0).failed  # a decoy
    assert not user.answer({"about": "order"}, 1.0).failed


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 10_000))
def test_every_check_has_a_sentence_and_every_rule_too(rules: Rules, seed: int) -> None:
    task = make(rules, seed)
    requirements = task.sealed.requirements
    assert " ".join(one.sentence for one in requirements) == task.brief.goal
    assert {check for one in requirements for check in one.checks} == {*task.sealed.grader.checks}
    assert {one.rule for one in requirements if one.checks} - {None} == rules
    assert len(task.sealed.reference) <= 10
    assert len(task.brief.goal.split()) <= 90


def test_each_rule_has_two_wordings_with_the_same_literals() -> None:
    for rules in map(frozenset, ({rule} for rule in FAMILY.rules)):
        case = FAMILY.build(rules, Random(1), Lexicon(Split.TRAIN))
        goals = [FAMILY.goal(case, rules, Random(seed)) for seed in range(30)]
        said = {one.sentence for goal in goals for one in goal if one.rule in rules}
        assert len(said) == 2
        assert len({frozenset(PATTERN.findall(sentence)) for sentence in said}) == 1


def test_tasks_of_two_splits_share_no_operand() -> None:
    seen = {
        split: {name for rules in CELLS for name in make(rules, 3, split).operands}
        for split in Split
    }
    for one, other in combinations(Split, 2):
        assert seen[one]
        assert not seen[one] & seen[other]


def test_a_pair_differs_in_what_is_left_open() -> None:
    rules = frozenset({"only-status", "other-group"})
    task, child = make_pair(FAMILY, rules, "other-group", 2, Lexicon(Split.TRAIN), Budget(), SOURCE)
    assert task.sealed.user is not None
    assert child.sealed.user is not None
    assert set(task.sealed.user.answers) - set(child.sealed.user.answers) == {"group"}
    assert child.source.parent == task.task_id


@pytest.mark.parametrize(
    "rules", [{"last-counts", "at-least", "smallest-first"}, {"not-status", "other-group"}]
)
def test_the_twin_is_told_everything_and_is_solved_without_asking(rules: set[str]) -> None:
    task = make(frozenset(rules))
    twin = told(task)
    assert task.sealed.user is not None
    assert "ask" not in twin.brief.goal
    assert all(text in twin.brief.goal for text in task.sealed.user.answers.values())
    assert " ".join(one.sentence for one in twin.sealed.requirements) == twin.brief.goal
    assert all(tool.home is not ToolHome.HOST for tool in twin.brief.tools)
    assert (twin.sealed.user, twin.source.parent) == (None, task.task_id)
    assert twin.sealed.grader == task.sealed.grader
    assert twin.version_id not in (task.version_id, "")
    assert twin.features is not None
    assert (twin.features.missing, twin.features.rounds) == (0, 0)
    assert Capability.CLARIFICATION not in twin.features.capabilities
    wrong = [*without_steps(twin.sealed.reference), *(m.script for m in twin.sealed.mutants)]
    assert verdicts(twin, [twin.sealed.reference, *wrong]) == [True] + [False] * len(wrong)


def test_a_task_that_leaves_nothing_open_has_no_twin() -> None:
    with pytest.raises(ManifestError, match="leaves nothing open"):
        told(told(make(CELLS[0])))
