"""Tasks by walking the tool graph: executed first, then written down, kept only if sound."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.families.lexicon import Lexicon
from flywheel.grade import grade_sets
from flywheel.sandbox import OpenSandbox, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.tools import BASH_TOOL, command, program_source
from flywheel.tools.table import TABLE_TOOLS
from flywheel.walk import Reason, Walked, walk
from flywheel.walk.graph import GRAPH, Fact, after, edges, next_tools
from flywheel.walk.table import LEAST_ROWS, Table, choose, draw
from schemas.attempt import Verdict
from schemas.lineage import Split
from schemas.task import Budget, Capability, Source, SourceKind, TaskManifest
from schemas.tool import ToolCall

BACKEND = Bubblewrap()
TOOLS = program_source("table")
SOURCE = Source(kind=SourceKind.COVERAGE, uri="walk", licence="Apache-2.0")
PATTERN = re.compile("`([^`]+)`")


def walked(
    seed: int,
    length: int = 5,
    split: Split = Split.TRAIN,
    open_sandbox: OpenSandbox = BACKEND.open,
    thing: str = "",
) -> Walked:
    return walk(seed, Lexicon(split, thing), length, open_sandbox, Budget(), SOURCE)


@cache
def sample() -> tuple[Walked, ...]:
    """Walks of three lengths."""
    return tuple(walked(seed, length) for length in (3, 4, 5) for seed in range(6))


def tasks() -> list[TaskManifest]:
    """The sample's tasks."""
    return [one.task for one in sample() if one.task]


def reference_tools(task: TaskManifest) -> set[str]:
    return {call.tool for call in task.sealed.reference}


def again(open_sandbox: OpenSandbox, wanted: str | ToolCall) -> Iterator[Walked]:
    """The sample's walks with a tool or a call, in other sandboxes."""
    for task in tasks():
        reference = task.sealed.reference
        if wanted in reference or wanted in [call.tool for call in reference]:
            yield walked(task.seed, len(reference), open_sandbox=open_sandbox)


def with_table(source: str) -> OpenSandbox:
    """Sandboxes whose table program is `source`."""

    @contextmanager
    def opened(spec: SandboxSpec) -> Iterator[Sandbox]:
        programs = {"table": source} if "table" in spec.programs else spec.programs
        with BACKEND.open(replace(spec, programs=programs)) as sandbox:
            yield sandbox

    return opened


# The graph.


def test_the_graph_has_a_node_for_every_tool_on_tables() -> None:
    assert set(GRAPH) == {tool.name for tool in TABLE_TOOLS}


def test_edges_go_from_what_a_tool_leaves_to_who_needs_it() -> None:
    found = set(edges())
    assert ("read-csv", "round", Fact.FRACTIONS) in found
    assert ("count", "sort", Fact.UNSORTED) in found
    assert ("read-csv", "write-csv", Fact.COLUMNS) in found
    assert ("read-log", "write-csv", Fact.COLUMNS) not in found
    assert not {one for one, _, _ in found} & {"round", "sort", "write-csv", "write-json"}


@given(st.sampled_from([Fact.CSV, Fact.LOG]), st.integers(3, 11), st.integers(0, 10_000))
def test_every_way_through_the_graph_saves_with_its_last_call_and_only_then(
    start: Fact, length: int, seed: int
) -> None:
    rng, facts, tools = Random(seed), frozenset({start}), list[str]()
    for left in range(length, 0, -1):
        tools.append(rng.choice(next_tools(facts, left)))
        assert GRAPH[tools[-1]].needs <= facts
        facts = after(facts, tools[-1])
    assert [tool.startswith("write-") for tool in tools] == [False] * (length - 1) + [True]
    assert start is Fact.CSV or {"summarise", "count"} & set(tools)
    assert len({"summarise", "count"} & set(tools)) <= 1


def test_there_is_no_way_for_a_log_to_be_saved_without_a_summary() -> None:
    assert next_tools(frozenset({Fact.LOG}), 2) == ()
    assert set(next_tools(frozenset({Fact.CSV}), 2)) == {"read-csv"}
    assert set(next_tools(after(frozenset({Fact.LOG}), "read-log"), 2)) == {"summarise", "count"}


# The calls that a table allows.

TABLE = Table(
    header=("oak", "plume", "cider", "dune", "count"),
    rows=(
        ("a1", "x", "2.50", "4", "7"),
        ("a1", "x", "", "8", "8"),
        ("b2", "x", "1.00", "9", "8"),
        ("c3", "y", "3.00", "12", "9"),
    ),
)


def calls_of(tool: str) -> set[tuple[str, ...]]:
    start = replace(draw(Random(1), Lexicon(Split.TRAIN)), columns=TABLE.header[:4])
    found = (choose(tool, start, TABLE, Random(seed), Lexicon(Split.TRAIN)) for seed in range(60))
    return {tuple(call.arguments.values()) for call in found if call}


def test_calls_name_what_the_table_holds_and_what_changes_it() -> None:
    assert calls_of("deduplicate") == {("oak", "first"), ("oak", "last")}
    assert calls_of("drop-missing") == {("cider",)}
    assert calls_of("keep-equal") == {("plume", "x")}
    assert calls_of("drop-equal") == {("plume", "y")}
    assert calls_of("round") == {("cider", "half-even"), ("cider", "half-up")}
    assert calls_of("sort") == {("ascending",), ("descending",)}


def test_a_threshold_is_a_number_of_the_split_that_keeps_half_of_the_rows() -> None:
    thresholds = {int(value) for column, value in calls_of("keep-at-least") if column == "dune"}
    assert thresholds
    assert all(4 < value <= 9 and value % 3 == 0 for value in thresholds)


def test_a_column_with_too_few_groups_is_not_grouped_by() -> None:
    assert calls_of("count") == set()
    assert calls_of("summarise") == set()


@given(st.integers(0, 10_000), st.sampled_from(Split))
def test_a_walk_starts_from_a_small_file_with_repeats_gaps_and_fractions(
    seed: int, split: Split
) -> None:
    start = draw(Random(seed), Lexicon(split))
    lines = start.file.content.splitlines()
    assert 28 <= len(lines) <= 41
    assert start == draw(Random(seed), Lexicon(split))
    assert start.facts == {Fact.LOG if start.file.path.endswith(".log") else Fact.CSV}
    assert start.facts == {Fact.LOG} or lines[0] == ",".join(start.columns)


# Walks.


def test_a_task_is_what_its_walk_came_to() -> None:
    assert len(tasks()) >= 12
    for task in tasks():
        length = len(task.sealed.reference)
        assert (task.family, task.rules, task.source) == ("walk", (), SOURCE)
        assert task.features is not None
        assert (task.features.depth, task.features.live_rules) == (length, 0)
        (right,) = task.sealed.grader.expected
        assert right.path in task.brief.artifacts
        assert len(right.content.splitlines()) >= LEAST_ROWS


def test_the_goal_says_a_sentence_a_step_and_names_the_operands_in_their_order() -> None:
    for task in tasks():
        requirements = task.sealed.requirements
        assert " ".join(one.sentence for one in requirements) == task.brief.goal
        chosen = {"keep", "ties", "order"}
        steps = (requirements[0], *requirements[2:])
        for call, step in zip(task.sealed.reference, steps, strict=True):
            named = [value for name, value in call.arguments.items() if name not in chosen]
            said = list(dict.fromkeys(PATTERN.findall(step.sentence)))
            assert said[: len(named)] == named
            assert set(named) <= set(task.operands)
        checks = {check for one in requirements for check in one.checks}
        assert checks == set(task.sealed.grader.checks)


def test_walk_and_interpreter_pass_and_everything_wrong_fails_by_execution() -> None:
    task = next(task for task in tasks() if {"sort", "drop-equal"} <= reference_tools(task))
    tools = {tool.name: tool for tool in (*TABLE_TOOLS, BASH_TOOL)}
    reference = task.sealed.reference
    shorter = [reference[:at] + reference[at + 1 :] for at in range(len(reference))]
    at = next(at for at, call in enumerate(reference) if call.tool == "sort")
    (order,) = {"ascending", "descending"} - {reference[at].arguments["order"]}
    other = ToolCall(tool="sort", arguments={"order": order})
    wrong = [*shorter, (*reference[:at], other, *reference[at + 1 :]), ()]
    spec = SandboxSpec(programs={"table": TOOLS}, deadline=60.0, labels={})
    sets = []
    with BACKEND.open(spec) as sandbox:
        for number, script in enumerate([reference, *task.sealed.alternatives, *wrong]):
            folder = f"run-{number}"
            sandbox.put(task.brief.environment.files, folder)
            for call in script:
                sandbox.call(command(tools[call.tool], call), 10.0, folder)
            left = {file.path: file for file in sandbox.tree(folder).files}
            sets.append([left[path] for path in task.brief.artifacts if path in left])
    grades = grade_sets(task, sets, BACKEND.open, {"run": "test", "attempt": "test"})
    passed = [Verdict.PASSED] * 2 + [Verdict.FAILED] * len(wrong)
    assert [grade.verdict for grade in grades] == passed


def test_the_same_seed_makes_the_same_walk_and_another_seed_another() -> None:
    task = tasks()[0]
    assert walked(task.seed, 3) == Walked(task, Reason.WALKED)
    assert len({task.task_id for task in tasks()}) == len(tasks())


def test_walks_of_two_splits_share_no_operand() -> None:
    seen = {Split.TRAIN: {name for task in tasks() for name in task.operands}}
    for split in (Split.DEV, Split.HOLDOUT):
        found = [walked(seed, 3, split).task for seed in range(3)]
        seen[split] = {name for task in found if task for name in task.operands}
    for one, other in combinations(Split, 2):
        assert seen[one]
        assert not seen[one] & seen[other]


def test_walks_use_every_tool() -> None:
    assert set().union(*map(reference_tools, tasks())) == set(GRAPH)


def test_a_long_walk_counts_as_a_long_horizon() -> None:
    task = next(task for seed in range(60) if (task := walked(seed, 7).task))
    assert task.features is not None
    assert Capability.LONG_HORIZON in task.features.capabilities
    assert all(
        Capability.LONG_HORIZON not in t.features.capabilities for t in tasks() if t.features
    )


def test_a_walk_is_worded_for_the_thing_of_the_lexicon() -> None:
    task = tasks()[0]
    assert "Take the rows in" in task.brief.goal
    reworded = walked(task.seed, 3, thing="invoice").task
    assert reworded is not None
    assert "Take the invoices in" in reworded.brief.goal
    assert reworded.task_id == task.task_id


@pytest.mark.parametrize("length", [2, 12])
def test_a_length_that_the_budget_does_not_allow_is_refused(length: int) -> None:
    with pytest.raises(ManifestError, match=f"walk: length {length} must be from 3 to 11"):
        walked(0, length)


def test_a_walk_with_a_step_that_makes_no_difference_is_dropped() -> None:
    more = (walked(seed, 5) for seed in range(6, 60))
    dropped = next(one for one in chain(sample(), more) if one.reason is Reason.STEP_NOT_NEEDED)
    assert dropped.task is None
    assert re.fullmatch("[a-z-]+: passed", dropped.evidence)


def test_a_walk_with_a_choice_that_makes_no_difference_is_dropped() -> None:
    idle = with_table(TOOLS.replace('reverse=order == "descending"', "reverse=True"))
    dropped = next(again(idle, ToolCall(tool="sort", arguments={"order": "descending"})))
    expected = Walked(None, Reason.CHOICE_NOT_NEEDED, "sort --order=ascending: passed")
    assert dropped == expected


@pytest.mark.parametrize(
    ("tool", "right", "wrong"),
    [
        ("deduplicate", "seen.setdefault(row[at], row)", "seen.setdefault(row[0], row[:])"),
        ("keep-at-least", "number(cell) >= least", "number(cell) <= least"),
        ("count", "[[name, str(len(members))]", "[[name, str(len(members) ** 2 + 1)]"),
        ("drop-equal", "cell != value", "cell < value"),
        ("sort", 'reverse=order == "descending"', 'reverse=order == "ascending"'),
        (
            "round",
            "number(row[at]).quantize(Decimal(1)",
            "number(row[at] + '9').quantize(Decimal(1)",
        ),
    ],
)
def test_where_the_interpreter_comes_to_something_else_there_is_no_task(
    tool: str, right: str, wrong: str
) -> None:
    assert right in TOOLS
    faulty = with_table(TOOLS.replace(right, wrong))
    dropped = next(one for one in again(faulty, tool) if one.reason is Reason.DISAGREEMENT)
    assert dropped.task is None
    assert re.match("the interpreter: (rows|order): ", dropped.evidence)


def test_a_tool_that_fails_or_does_nothing_ends_the_walk_with_the_reason() -> None:
    failing = with_table("def main(argv):\n    print('no disk')\n    return 2\n")
    assert walked(1, 4, open_sandbox=failing).reason is Reason.STEP_FAILED
    assert "no disk" in walked(1, 4, open_sandbox=failing).evidence
    idle = TOOLS.replace(
        "    try:\n        print(COMMANDS[", "    try:\n        print('-' in name and COMMANDS["
    )
    assert idle != TOOLS
    assert walked(1, 4, open_sandbox=with_table(idle)).reason is Reason.STEP_CHANGED_NOTHING


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 7))
def test_a_walk_makes_a_task_or_says_why_not(seed: int, length: int) -> None:
    found = walked(seed, length)
    assert (found.task is None) == (found.reason is not Reason.WALKED)
    assert found.reason is Reason.WALKED or found.evidence
    assert found.reason not in (Reason.STEP_FAILED, Reason.DISAGREEMENT)
