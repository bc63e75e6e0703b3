"""Text files: broken and repaired as worked out by hand, by the tools, and by a program."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules
from flywheel.families.encoding import FAMILY, Encoding, inputs, target
from schemas.file import File
from schemas.lineage import Split
from schemas.tool import ToolCall
from tests.executed import (
    artifacts_of,
    call_here,
    combinations_of,
    draws_until_live,
    failed_checks,
    failing_right_scripts,
    made_here,
    misjudged,
    misplaced_operands,
    pair_of,
    task_of,
    unnamed_checks,
)

COMBINATIONS = combinations_of(FAMILY)
CELLS = st.tuples(st.sampled_from(COMBINATIONS), st.integers(0, 10_000), st.sampled_from(Split))
HEALTHY = " š²\né €\n".encode()


def case(*broken: str) -> Encoding:
    return Encoding("a.txt", "b.txt", " š²\né €\n", (" ", "\t"), 3, frozenset(broken))


def repaired(broken: set[str], rules: set[str]) -> bytes:
    (file,) = target(case(*broken), frozenset(rules))
    return file.data()


@pytest.mark.parametrize(
    ("rule", "broken", "healthy"),
    [
        ("from-cp1252", b" \x9a\xb2\n\xe9 \x80\n", HEALTHY),
        ("from-latin-9", b" \xa8\xb2\n\xe9 \xa4\n", HEALTHY),
        ("byte-order-mark", b"\xef\xbb\xbf" + HEALTHY, HEALTHY),
        ("nul-padding", HEALTHY + b"\0\0\0", HEALTHY),
        ("double-encoded", " \xc5\xa1\xc2\xb2\n\xc3\xa9 \xe2\x82\xac\n".encode(), HEALTHY),
        ("to-lf", HEALTHY.replace(b"\n", b"\r"), HEALTHY),
        ("to-crlf", HEALTHY.replace(b"\n", b"\r"), HEALTHY.replace(b"\n", b"\r\n")),
        ("composed", " s\u030c²\ne\u0301 €\n".encode(), HEALTHY),
        ("trailing-blanks", " š² \né €\t\n".encode(), HEALTHY),
    ],
)
def test_a_corruption_and_its_repair_are_as_worked_out_by_hand(
    rule: str, broken: bytes, healthy: bytes
) -> None:
    file, other = inputs(case(rule))
    assert file.data() == other.data() == broken
    assert repaired({rule}, {rule}) == healthy
    assert repaired({rule}, set()) == broken


@pytest.mark.parametrize(
    ("broken", "rules", "left"),
    [
        ({"composed"}, {"compatible"}, " š2\né €\n".encode()),
        ({"trailing-blanks"}, {"outer-blanks"}, "š²\né €\n".encode()),
        ({"from-cp1252"}, {"from-latin-9"}, " \x9a²\né \x80\n".encode()),
        ({"from-latin-9"}, {"from-cp1252"}, " ¨²\né ¤\n".encode()),
        ({"to-lf", "nul-padding"}, {"to-lf"}, HEALTHY + b"\0\0\0"),
        ({"from-cp1252", "trailing-blanks"}, {"trailing-blanks"}, b" \x9a\xb2\n\xe9 \x80\n"),
        ({"byte-order-mark", "to-crlf"}, {"byte-order-mark"}, HEALTHY.replace(b"\n", b"\r")),
    ],
)
def test_what_is_not_repaired_or_repaired_wrongly_stays_broken(
    broken: set[str], rules: set[str], left: bytes
) -> None:
    assert repaired(broken, rules) == left


@pytest.mark.parametrize("rules", COMBINATIONS, ids=lambda rules: "+".join(sorted(rules)))
def test_all_rules_of_a_combination_are_live_within_a_few_draws(rules: Rules) -> None:
    assert max(draws_until_live(FAMILY, rules, seed) for seed in range(2)) <= 3


@settings(max_examples=30, deadline=None)
@given(CELLS)
def test_tools_leave_the_target_byte_for_byte(cell: tuple[Rules, int, Split]) -> None:
    task = task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2])
    (right,) = task.sealed.grader.expected
    assert made_here(task, task.sealed.reference)[right.path] == right.data()


@settings(max_examples=30, deadline=None)
@given(CELLS)
def test_a_goal_asks_for_every_check_and_names_operands_in_order(
    cell: tuple[Rules, int, Split],
) -> None:
    task = task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2])
    assert unnamed_checks(task.sealed.requirements, task.sealed.grader.checks) == set()
    assert misplaced_operands(task) == []
    assert {sentence.rule for sentence in task.sealed.requirements} - {None} == cell[0]
    assert task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2]) == task


@pytest.mark.parametrize(
    "rules",
    [
        ("from-cp1252", "to-lf", "trailing-blanks"),
        ("from-latin-9", "nul-padding", "to-crlf"),
        ("byte-order-mark", "double-encoded", "trailing-blanks"),
        ("composed", "byte-order-mark", "to-crlf"),
        ("double-encoded",),
    ],
)
def test_in_a_sandbox_right_solutions_pass_and_wrong_ones_fail(rules: tuple[str, ...]) -> None:
    assert misjudged(task_of(FAMILY, *rules, seed=3)) == {}


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        (("from-cp1252", "to-crlf", "trailing-blanks"), "from-cp1252"),
        (("byte-order-mark", "double-encoded", "to-lf"), "byte-order-mark"),
        (("double-encoded", "trailing-blanks", "to-lf"), "double-encoded"),
        (("composed", "nul-padding", "to-crlf"), "to-crlf"),
    ],
)
def test_the_child_of_a_pair_is_solved_by_leaving_one_corruption(
    rules: tuple[str, ...], rule: str
) -> None:
    first, child = pair_of(FAMILY, *rules, rule=rule)
    assert child.brief.environment == first.brief.environment
    assert failing_right_scripts(child) == {}
    assert failed_checks(child, artifacts_of(child, {"of first": first.sealed.reference})) == {
        "of first": {"bytes"}
    }


def test_repairing_the_other_file_too_fails() -> None:
    task = task_of(FAMILY, "to-lf")
    (left,) = artifacts_of(task, {"reference": task.sealed.reference}).values()
    repaired_too = [left[0], File.of(left[1].path, left[0].data())]
    assert failed_checks(task, {"both": repaired_too}) == {"both": {"input-unchanged"}}


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("open-text", {"file": "none.txt"}, "cannot open `none.txt`: No such file or directory\n"),
        ("to-utf-8", {"from": "utf-16"}, "the bytes are not utf-16: truncated data\n"),
        (
            "undo-double-encoding",
            {"taken-for": "latin-1"},
            "not UTF-8 that was taken for latin-1: invalid start byte\n",
        ),
        ("save-text", {"file": "no/where.txt"}, "cannot write `no/where.txt`: No such file or"),
    ],
)
def test_a_text_tool_refuses_in_words_and_keeps_the_text(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    (tmp_path / "in.txt").write_bytes(b"\xff\n\r")
    call_here(FAMILY.tools, ToolCall(tool="open-text", arguments={"file": "in.txt"}), tmp_path)
    code, output = call_here(FAMILY.tools, ToolCall(tool=tool, arguments=arguments), tmp_path)
    assert (code, output[: len(said)]) == (2, said)
    call_here(FAMILY.tools, ToolCall(tool="save-text", arguments={"file": "out.txt"}), tmp_path)
    assert (tmp_path / "out.txt").read_bytes() == b"\xff\n\r"


def test_a_text_tool_refuses_where_no_text_is_loaded(tmp_path: Path) -> None:
    call = ToolCall(tool="normalise", arguments={"form": "NFC"})
    assert call_here(FAMILY.tools, call, tmp_path) == (2, "no text is loaded\n")
