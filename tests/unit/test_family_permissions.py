"""Permissions: modes worked out by hand, by the tools, and by real execution of whole tasks."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules, permissions
from flywheel.families.make import make_pair
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget
from schemas.tool import ToolCall
from tests.unit.test_family_layout import (
    SOURCE,
    TRAIN,
    call,
    carry_out,
    check_goal,
    check_splits,
    combinations_of,
    make,
    put,
    unexpected,
)

FAMILY = permissions.FAMILY
SCRIPT, TEXT = "#!/bin/sh\necho\n", "echo\n"
CASE = permissions.Permissions(
    policy="policy.txt",
    folder="in",
    listing="list.txt",
    lines=((".sh", 0o640), ("in/b/", 0o700)),
    files=(
        File(path="in/a/one.sh", content=SCRIPT, mode=0o666),  # .sh
        File(path="in/a/two.txt", content=TEXT, mode=0o440),  # no line
        File(path="in/b/six.sh", content=TEXT, mode=0o600),  # both lines
        File(path="in/b/ten.txt", content=TEXT, mode=0o755),  # in/b/
    ),
    listed=("in/a/one.sh", "in/a/two.txt"),
)


@pytest.mark.parametrize(
    ("rules", "modes"),
    [
        (set(), (0o640, 0o440, 0o600, 0o700)),
        ({"first-line"}, (0o640, 0o440, 0o640, 0o700)),
        ({"last-line"}, (0o640, 0o440, 0o700, 0o700)),
        ({"rest-private"}, (0o640, 0o600, 0o600, 0o700)),
        ({"rest-shared"}, (0o640, 0o644, 0o600, 0o700)),
        ({"scripts-run"}, (0o750, 0o440, 0o600, 0o700)),
        ({"tighten-only"}, (0o640, 0o440, 0o600, 0o700)),
        ({"tighten-only", "first-line"}, (0o640, 0o440, 0o600, 0o700)),
        ({"tighten-only", "scripts-run"}, (0o640, 0o440, 0o600, 0o700)),
        ({"loosen-only"}, (0o666, 0o440, 0o600, 0o755)),
        ({"loosen-only", "rest-private"}, (0o666, 0o640, 0o600, 0o755)),
        ({"loosen-only", "scripts-run"}, (0o776, 0o440, 0o600, 0o755)),
        ({"except-listed"}, (0o666, 0o440, 0o600, 0o700)),
        ({"except-listed", "rest-shared"}, (0o666, 0o440, 0o600, 0o700)),
        ({"only-listed"}, (0o640, 0o440, 0o600, 0o755)),
        ({"only-listed", "rest-shared"}, (0o640, 0o644, 0o600, 0o755)),
    ],
)
def test_modes_are_given_as_worked_out_by_hand(rules: set[str], modes: tuple[int, ...]) -> None:
    right = permissions.target(CASE, frozenset(rules))
    assert tuple(f"{file.mode:o}" for file in right) == tuple(f"{mode:o}" for mode in modes)
    assert [(f.path, f.content) for f in right] == [(f.path, f.content) for f in CASE.files]


def test_the_policy_and_the_list_are_written_as_the_goal_describes_them() -> None:
    *_, policy, listing = permissions.inputs(CASE)
    assert policy == File(path="policy.txt", content=".sh 640\nin/b/ 700\n")
    assert listing == File(path="list.txt", content="in/a/one.sh\nin/a/two.txt\n")


def test_a_list_is_there_only_for_a_rule_that_needs_it() -> None:
    for rules in combinations_of(FAMILY, 2):
        task = make(FAMILY, rules)
        listed = bool(rules & {"except-listed", "only-listed"})
        assert len(task.sealed.grader.protected) == 1 + listed


@pytest.mark.parametrize("seed", [0, 1])
def test_every_allowed_combination_is_live_within_the_draws(seed: int) -> None:
    for rules in combinations_of(FAMILY, 1, 2, 3):
        assert make(FAMILY, rules, seed).rules == tuple(sorted(rules))


def test_the_same_seed_makes_the_same_task_and_another_one_another() -> None:
    rules = frozenset({"tighten-only", "scripts-run"})
    assert make(FAMILY, rules, 5) == make(FAMILY, rules, 5)
    assert make(FAMILY, rules, 5).task_id != make(FAMILY, rules, 6).task_id


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 0, 1, 2, 3)), st.integers(0, 10_000))
def test_the_tools_lead_to_the_target_also_where_rules_are_left_out(
    rules: Rules, seed: int
) -> None:
    case = permissions.build(rules, Random(seed), TRAIN)
    for stated in (rules, *(wrong for wrong in FAMILY.left_out(rules).values() if wrong)):
        script = FAMILY.reference(case, stated)
        left = carry_out(FAMILY, FAMILY.inputs(case), script, FAMILY.artifacts(case))
        assert left == FAMILY.target(case, stated)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 1, 2, 3)), st.integers(0, 10_000))
def test_a_goal_is_covered_by_checks_and_names_what_the_tools_need(rules: Rules, seed: int) -> None:
    check_goal(FAMILY, rules, seed)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 0, 1, 2, 3)), st.integers(0, 10_000))
def test_every_case_has_something_to_do_and_its_owner_may_read_every_file(
    rules: Rules, seed: int
) -> None:
    case = permissions.build(rules, Random(seed), TRAIN)
    right = permissions.target(case, rules)
    assert right != case.files
    assert all(file.mode & 0o400 for file in (*case.files, *right))


def test_tasks_of_two_splits_share_no_operand() -> None:
    check_splits(FAMILY)


@pytest.mark.parametrize(
    ("rules", "split"),
    [
        ({"last-line", "rest-private", "loosen-only"}, Split.TRAIN),
        ({"scripts-run", "tighten-only", "except-listed"}, Split.DEV),
        ({"first-line", "rest-shared", "only-listed"}, Split.HOLDOUT),
    ],
)
def test_only_right_solutions_pass_in_real_sandboxes(rules: set[str], split: Split) -> None:
    assert unexpected(make(FAMILY, frozenset(rules), 11, split)) == []


def test_a_case_and_the_same_without_a_rule_are_both_sound() -> None:
    rules = frozenset({"only-listed", "last-line"})
    pair = make_pair(FAMILY, rules, "only-listed", 2, TRAIN, Budget(), SOURCE)
    assert pair[0].brief.environment == pair[1].brief.environment
    assert unexpected(pair[1]) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read-policy", {"file": "gone.txt"}, "cannot read `gone.txt`"),
        (
            "read-policy",
            {"file": "list.txt"},
            "`list.txt` has a line that is not a pattern and a mode",
        ),
        ("plan-modes", {"folder": "in", "several": "none"}, "no policy is loaded"),
        ("apply-plan", {}, "no policy is loaded"),
    ],
)
def test_a_call_that_cannot_be_done_is_refused(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    put(tmp_path, permissions.inputs(CASE))
    assert call(FAMILY, tmp_path, ToolCall(tool=tool, arguments=arguments)) == (2, said)


def test_nothing_is_done_before_a_plan_is_applied(tmp_path: Path) -> None:
    put(tmp_path, permissions.inputs(CASE))
    steps = permissions.reference(CASE, frozenset({"last-line", "only-listed"}))
    assert call(FAMILY, tmp_path, steps[0]) == (0, "2 lines")
    assert call(FAMILY, tmp_path, steps[-1]) == (2, "nothing is planned")
    assert call(FAMILY, tmp_path, steps[1]) == (0, "3 files planned")
    assert call(FAMILY, tmp_path, steps[2]) == (0, "1 files planned")
    assert (tmp_path / "in/a/one.sh").stat().st_mode & 0o777 == 0o666
    assert call(FAMILY, tmp_path, steps[3]) == (0, "1 files changed")
    assert (tmp_path / "in/a/one.sh").stat().st_mode & 0o777 == 0o640
