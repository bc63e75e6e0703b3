"""Checksums: manifests repaired by hand, by the tools, and by real execution of whole tasks."""

import hashlib
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules, checksums
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

FAMILY = checksums.FAMILY
PATHS = tuple(f"in/{letter}.csv" for letter in "abcdefg")
CASE = checksums.Checksums(
    manifest="list.txt",
    folder="in",
    prefix="/old/",
    contents=tuple((path, f"{path}\n") for path in PATHS if path != "in/b.csv"),
    stale=("in/a.csv",),
    missing="in/g.csv",
    absent="in/b.csv",
    repeated=("in/c.csv",),
    capitals=("in/d.csv", "in/e.csv"),
    prefixed=("in/f.csv",),
    order=tuple(reversed(PATHS)) * 2,
    damage=frozenset(),
)


def line(path: str, text: str = "") -> str:
    data = (text or f"{path}\n").encode()
    return f"{hashlib.sha256(data).hexdigest()} {len(data)} {path}"


RIGHT = {path: line(path) for path in PATHS if path != "in/b.csv"}
STALE_A, STALE_C = (line(path, f"{path}\nold\n") for path in ("in/a.csv", "in/c.csv"))
D_CAPITALS, E_CAPITALS = (
    RIGHT[path].replace(RIGHT[path][:64], RIGHT[path][:64].upper()) for path in CASE.capitals
)


def found(case: checksums.Checksums) -> list[str]:
    """The damaged manifest's lines."""
    *_, manifest = checksums.inputs(case)
    return manifest.content.split("\n")[:-1]


@pytest.mark.parametrize(
    ("damage", "first_seven"),
    [
        ("stale-hash", ["g", "f", "e", "d", "c", STALE_A]),
        ("missing-line", ["f", "e", "d", "c", "a"]),
        ("absent-file", ["g", "f", "e", "d", "c", line("in/b.csv", "gone\n"), "a"]),
        ("keep-last", ["g", "f", "e", "d", STALE_C, "a", "c"]),
        ("keep-first", ["g", "f", "e", "d", "c", "a", STALE_C]),
        ("upper-hash", ["g", "f", E_CAPITALS, D_CAPITALS, "c", "a"]),
        ("absolute-path", ["g", RIGHT["in/f.csv"].replace("in/", "/old/in/"), "e", "d", "c", "a"]),
    ],
)
def test_each_damage_is_done_to_its_own_lines_and_repaired_alone(
    damage: str, first_seven: list[str]
) -> None:
    case = replace(CASE, damage=frozenset({damage}))
    assert found(case) == [RIGHT.get(f"in/{text}.csv", text) for text in first_seven]
    (repaired,) = checksums.target(case, frozenset({damage}))
    assert repaired == File(path="list.txt", content="\n".join(RIGHT.values()) + "\n")
    (left,) = checksums.target(case, frozenset())
    assert sorted(left.content.splitlines()) == sorted(found(case))


def test_damage_that_no_rule_names_stays() -> None:
    case = replace(CASE, damage=frozenset({"missing-line", "crlf", "upper-hash"}))
    (left,) = checksums.target(case, frozenset({"missing-line"}))
    shown = RIGHT | {"in/d.csv": D_CAPITALS, "in/e.csv": E_CAPITALS}
    assert left.content == "".join(f"{line}\r\n" for line in shown.values())


@pytest.mark.parametrize(
    ("damage", "reading", "answer"),
    [
        ("stale-hash", "drop-stale", [RIGHT[path] for path in RIGHT if path != "in/a.csv"]),
        (
            "keep-last",
            "keep-first",
            [*list(RIGHT.values())[:1], STALE_C, *list(RIGHT.values())[2:]],
        ),
        (
            "absolute-path",
            "bare-name",
            sorted(
                [
                    *(set(RIGHT.values()) - {RIGHT["in/f.csv"]}),
                    RIGHT["in/f.csv"].replace("in/", ""),
                ],
                key=lambda text: text.split(" ")[2],
            ),
        ),
    ],
)
def test_a_wrong_reading_is_what_it_says(damage: str, reading: str, answer: list[str]) -> None:
    case = replace(CASE, damage=frozenset({damage}))
    (wrong,) = checksums.target(case, frozenset({reading}))
    assert wrong.content.splitlines() == answer


@pytest.mark.parametrize("seed", [0, 1])
def test_every_allowed_combination_is_live_within_the_draws(seed: int) -> None:
    for rules in combinations_of(FAMILY, 1, 2, 3):
        assert make(FAMILY, rules, seed).rules == tuple(sorted(rules))


def test_the_same_seed_makes_the_same_task_and_another_one_another() -> None:
    rules = frozenset({"stale-hash", "crlf"})
    assert make(FAMILY, rules, 5) == make(FAMILY, rules, 5)
    assert make(FAMILY, rules, 5).task_id != make(FAMILY, rules, 6).task_id


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 0, 1, 2, 3)), st.integers(0, 10_000))
def test_the_tools_lead_to_the_target_also_where_rules_are_left_out(
    rules: Rules, seed: int
) -> None:
    case = checksums.build(rules, Random(seed), TRAIN)
    for stated in (rules, *FAMILY.left_out(rules).values()):
        script = FAMILY.reference(case, stated)
        left = carry_out(FAMILY, FAMILY.inputs(case), script, FAMILY.artifacts(case))
        assert left == FAMILY.target(case, stated)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 1, 2, 3)), st.integers(0, 10_000))
def test_a_goal_is_covered_by_checks_and_names_all_but_what_an_observation_shows(
    rules: Rules, seed: int
) -> None:
    looked_up = {"missing-line": 1, "absent-file": 1, "stale-hash": 2}
    check_goal(FAMILY, rules, seed, sum(looked_up.get(rule, 0) for rule in rules))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 1, 2, 3)), st.integers(0, 10_000))
def test_a_path_is_shown_by_the_call_before_the_one_that_names_it(rules: Rules, seed: int) -> None:
    case = checksums.build(rules, Random(seed), TRAIN)
    script = FAMILY.reference(case, rules)
    for number, step in enumerate(script):
        if step.tool in ("add-entry", "drop-entry", "update-entry"):
            printed = printed_by_last(case, script[:number])
            assert f"`{step.arguments['path']}`" in printed


def printed_by_last(case: checksums.Checksums, script: tuple[ToolCall, ...]) -> str:
    with TemporaryDirectory() as name:
        put(Path(name), checksums.inputs(case))
        return [call(FAMILY, Path(name), step)[1] for step in script][-1]


def test_tasks_of_two_splits_share_no_operand() -> None:
    check_splits(FAMILY)


@pytest.mark.parametrize(
    ("rules", "split"),
    [
        ({"absolute-path", "keep-last", "crlf"}, Split.TRAIN),
        ({"stale-hash", "missing-line", "absent-file"}, Split.DEV),
        ({"keep-first", "upper-hash"}, Split.HOLDOUT),
    ],
)
def test_only_right_solutions_pass_in_real_sandboxes(rules: set[str], split: Split) -> None:
    assert unexpected(make(FAMILY, frozenset(rules), 11, split)) == []


def test_a_case_and_the_same_without_a_rule_are_both_sound() -> None:
    rules = frozenset({"keep-last", "missing-line"})
    pair = make_pair(FAMILY, rules, "keep-last", 2, TRAIN, Budget(), SOURCE)
    assert pair[0].brief.environment == pair[1].brief.environment
    assert "lines of one path keep their order" in pair[1].brief.goal
    assert unexpected(pair[1]) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("read-manifest", {"file": "gone.txt", "folder": "in"}, "cannot read `gone.txt`"),
        ("read-manifest", {"file": "list.txt", "folder": "gone"}, "no folder `gone`"),
        (
            "read-manifest",
            {"file": "in/a.csv", "folder": "in"},
            "`in/a.csv` has a line that is not hash, size and path",
        ),
        ("sort-entries", {}, "no manifest is loaded"),
    ],
)
def test_a_call_that_cannot_be_done_is_refused(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    put(tmp_path, checksums.inputs(CASE))
    assert call(FAMILY, tmp_path, ToolCall(tool=tool, arguments=arguments)) == (2, said)


@pytest.mark.parametrize(
    ("tool", "path", "said"),
    [
        ("add-entry", "in/a.csv", "there is a line of `in/a.csv` already"),
        ("add-entry", "in/z.csv", "no file `in/z.csv`"),
        ("update-entry", "in/z.csv", "no file `in/z.csv`"),
        ("drop-entry", "in/z.csv", "no line of `in/z.csv`"),
    ],
)
def test_a_path_that_does_not_fit_the_call_is_refused(
    tmp_path: Path, tool: str, path: str, said: str
) -> None:
    put(tmp_path, checksums.inputs(CASE))
    loading = ToolCall(tool="read-manifest", arguments={"file": "list.txt", "folder": "in"})
    assert call(FAMILY, tmp_path, loading) == (0, "all paths fit")
    assert call(FAMILY, tmp_path, ToolCall(tool=tool, arguments={"path": path})) == (2, said)
