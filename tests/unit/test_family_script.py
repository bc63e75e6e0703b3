"""Scripts: broken and repaired as worked out by hand, by execution, and by writing them anew."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules
from flywheel.families.lexicon import Lexicon
from flywheel.families.script import FAMILY, build, exercises, inputs, reference, target
from flywheel.families.summary import SITES, printed
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Capability
from schemas.tool import ToolCall
from tests.executed import (
    artifacts_of,
    call_here,
    combinations_of,
    draws_until_live,
    failed_checks,
    failing_right_scripts,
    misjudged,
    misplaced_operands,
    pair_of,
    task_of,
    unnamed_checks,
)

COMBINATIONS = combinations_of(FAMILY)
CELLS = st.tuples(st.sampled_from(COMBINATIONS), st.integers(0, 10_000), st.sampled_from(Split))
HEALTHY = {site: healthy for site, (healthy, _) in SITES.items()}
RECORDS = (
    ("oak ", "5.50", "0"),
    (" oak", "6.00", "1.50"),
    ("elm", "", "-4"),
    ("elm", "9", "5"),
    ("ash", "-9.75", "1"),
)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ("oak 2 10", "elm 2 8", "all 4 18")),
        ({"header": "2"}, ("elm 2 8", "oak 1 4", "all 3 12")),
        ({"blanks": "lstrip"}, ("elm 2 8", "oak  1 6", "oak 1 4", "all 4 18")),
        ({"empty": "1"}, ("oak 2 10", "elm 2 9", "all 4 19")),
        ({"arguments": "DISCOUNT, AMOUNT"}, ("ash 1 11", "all 1 11")),
        ({"compare": ">"}, ("oak 2 10", "all 2 10")),
        ({"compare": "<"}, ("ash 1 -11", "all 1 -11")),
        ({"rounding": "ROUND_DOWN"}, ("oak 2 9", "elm 2 8", "all 4 17")),
        ({"rounding": "ROUND_HALF_UP"}, ("oak 2 11", "elm 2 8", "all 4 19")),
        ({"order": "False"}, ("elm 2 8", "oak 2 10", "all 4 18")),
    ],
)
def test_a_summary_is_as_worked_out_by_hand(
    changes: dict[str, str], lines: tuple[str, ...]
) -> None:
    assert printed(RECORDS, 4, HEALTHY | changes) == lines


def test_halves_of_negative_values_go_away_from_zero_where_halves_go_up() -> None:
    standing = HEALTHY | {"compare": "<", "rounding": "ROUND_HALF_UP"}
    assert printed((("a", "-2.50", "0"), ("b", "-2.25", "0")), 9, standing)[:2] == (
        "b 1 -2",
        "a 1 -3",
    )


def test_an_empty_file_and_a_header_alone_have_no_group() -> None:
    assert printed(None, 4, HEALTHY) == printed((), 4, HEALTHY) == ("all 0 0",)


def runs_of(script: bytes, files: tuple[tuple[str, File], ...]) -> Iterator[tuple[str, str]]:
    """Run a script in this process on each input; name → what it prints."""
    before = sys.argv
    with TemporaryDirectory() as name, chdir(name):
        Path("script.py").write_bytes(script)
        for run, file in files:
            Path(file.path).write_bytes(file.data())
            sys.argv, shown = ["script.py", file.path], StringIO()
            try:
                with redirect_stdout(shown):
                    runpy.run_path("script.py", run_name="__main__")
            finally:
                sys.argv = before
            yield run, shown.getvalue()


@settings(max_examples=30, deadline=None)
@given(CELLS, st.data())
def test_a_script_with_any_of_its_bugs_left_prints_what_the_target_says(
    cell: tuple[Rules, int, Split], data: st.DataObject
) -> None:
    rules, seed, split = cell
    case = build(rules, Random(seed), Lexicon(split))
    followed = frozenset(data.draw(st.sets(st.sampled_from(sorted(rules)))))
    with TemporaryDirectory() as name:
        for file in inputs(case):
            (Path(name) / file.path).write_bytes(file.data())
        for call in reference(case, followed):
            call_here(FAMILY.tools, call, Path(name))
        script = (Path(name) / case.script).read_bytes()
    hidden = tuple((each.output, each.files[0]) for each in exercises(case))
    assert dict(runs_of(script, hidden)) == {
        file.path: file.content for file in target(case, followed)
    }


@pytest.mark.parametrize("rules", COMBINATIONS, ids=lambda rules: "+".join(sorted(rules)))
def test_all_rules_of_a_combination_are_live_within_a_few_draws(rules: Rules) -> None:
    assert max(draws_until_live(FAMILY, rules, seed) for seed in range(2)) <= 10


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


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(COMBINATIONS), st.integers(0, 10_000))
def test_the_operands_of_two_splits_differ(rules: Rules, seed: int) -> None:
    one = task_of(FAMILY, *rules, seed=seed, split=Split.TRAIN)
    two = task_of(FAMILY, *rules, seed=seed, split=Split.DEV)
    assert not set(one.operands) & set(two.operands)


@pytest.mark.parametrize("seed", range(4))
def test_what_a_call_names_is_seen_in_the_goal_or_when_the_script_is_opened(
    tmp_path: Path, seed: int
) -> None:
    task = task_of(FAMILY, "net", "half-up", "largest-first", seed=seed)
    for file in task.brief.environment.files:
        (tmp_path / file.path).write_bytes(file.data())
    _, shown = call_here(FAMILY.tools, task.sealed.reference[0], tmp_path)
    seen = {line.strip() for line in (task.brief.goal + "\n" + shown).split("`")}
    assert set(task.operands) <= seen


def test_running_the_example_shows_whether_a_repair_is_right(tmp_path: Path) -> None:
    task = task_of(FAMILY, "trim", "above", "half-even", seed=2)
    script, example = (file.path for file in task.brief.environment.files)
    for file in task.brief.environment.files:
        (tmp_path / file.path).write_bytes(file.data())
    run = ToolCall(tool="run-script", arguments={"file": script, "input": example})
    wanted = task.brief.goal.split("must print the lines ")[1].split(". `")[0].split(", ")
    _, before = call_here(FAMILY.tools, run, tmp_path)
    for call in task.sealed.reference:
        assert call_here(FAMILY.tools, call, tmp_path)[0] == 0
    _, after = call_here(FAMILY.tools, run, tmp_path)
    assert after.splitlines() == [*wanted, "exit code 0"]
    assert before != after
    assert task.features is not None
    assert Capability.RECOVERY in task.features.capabilities


@pytest.mark.parametrize(
    "rules",
    [
        ("skip-header", "empty-as-zero", "half-up"),
        ("net", "at-least"),
    ],
)
def test_in_a_sandbox_right_solutions_pass_and_wrong_ones_fail(rules: tuple[str, ...]) -> None:
    assert misjudged(task_of(FAMILY, *rules, seed=3)) == {}


def test_the_child_of_a_pair_is_solved_by_leaving_one_bug() -> None:
    first, child = pair_of(FAMILY, "net", "half-even", rule="net")
    assert child.brief.environment == first.brief.environment
    assert failing_right_scripts(child) == {}
    assert failed_checks(child, artifacts_of(child, {"of first": first.sealed.reference})) == {
        "of first": {"answers"}
    }


def test_a_script_that_knows_the_example_only_or_changes_it_fails() -> None:
    task = task_of(FAMILY, "half-even")
    script, example = task.brief.environment.files
    lines = task.brief.goal.split("must print the lines ")[1].split(". `")[0]
    constant = f"print('''{lines.replace('`, `', chr(10)).strip('`')}''')\n"
    (left,) = artifacts_of(task, {"reference": task.sealed.reference}).values()
    emptied = File(path=example.path, content="")
    sets = {
        "constant": [File(path=script.path, content=constant), example],
        "exits": [File(path=script.path, content="import sys; sys.exit(3)\n"), example],
        "emptied": [left[0], emptied],
        "missing": [example],
    }
    assert failed_checks(task, sets) == {
        "constant": {"answers"},
        "exits": {"answers"},
        "emptied": {"input-unchanged"},
        "missing": {"answers"},
    }


LINES = "a = min(b, 1)\n  if a < 1 + a < 2:\n\nprint(a)\nprint(a)\n"


def edited(folder: Path, *calls: tuple[str, dict[str, str]]) -> list[tuple[int, str]]:
    """Open LINES, make the calls, save as `out.py`; what the calls print."""
    (folder / "in.py").write_text(LINES)
    (folder / "large.txt").write_bytes(b" " * 70_000)
    (folder / "endless.py").write_text("while True: pass\n")
    script = [
        ("open-file", {"file": "in.py"}),
        *calls,
        ("save-file", {"file": "out.py"}),
    ]
    said = [call_here(FAMILY.tools, ToolCall(tool=t, arguments=a), folder) for t, a in script]
    return said[1:-1]


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "text"),
    [
        (
            "swap-arguments",
            {"line": "a = min(b, 1)"},
            "`a = min(1, b)`",
            LINES.replace("b, 1", "1, b"),
        ),
        (
            "replace-token",
            {"line": "if a < 1 + a < 2:", "old": "+", "new": "-"},
            "`  if a < 1 - a < 2:`",
            LINES.replace("+", "-"),
        ),
        (
            "replace-line",
            {"line": "a = min(b, 1)", "text": "a = 1 = 2"},
            "`a = 1 = 2`",
            LINES.replace("a = min(b, 1)", "a = 1 = 2"),
        ),
        (
            "insert-line",
            {"line": "a = min(b, 1)", "text": "    b"},
            "`a = min(b, 1)`\n`    b`",
            LINES.replace("1)\n", "1)\n    b\n"),
        ),
        ("delete-line", {"line": "a = min(b, 1)"}, "done", LINES.split("\n", 1)[1]),
    ],
)
def test_an_edit_changes_one_line_and_shows_it(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str, text: str
) -> None:
    assert edited(tmp_path, (tool, arguments)) == [(0, f"{said}\n")]
    assert (tmp_path / "out.py").read_text() == text


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("delete-line", {"line": "print(a)"}, "there are 2 lines `print(a)`"),
        ("delete-line", {"line": "print(b)"}, "there are 0 lines `print(b)`"),
        (
            "replace-token",
            {"line": "if a < 1 + a < 2:", "old": "<", "new": ">"},
            "the line has 2 tokens `<`",
        ),
        ("swap-arguments", {"line": "if a < 1 + a < 2:"}, "the line needs one call with two"),
        ("open-file", {"file": "none.py"}, "cannot open `none.py`: No such file or directory"),
        ("open-file", {"file": "large.txt"}, "`large.txt` is larger than 65536 bytes"),
    ],
)
def test_an_edit_that_can_not_be_made_is_refused_and_changes_nothing(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    ((code, output),) = edited(tmp_path, (tool, arguments))
    assert (code, output[: len(said)]) == (2, said)
    assert (tmp_path / "out.py").read_text() == LINES


def test_a_script_that_falls_over_is_shown_with_its_exit_code(tmp_path: Path) -> None:
    ((code, output),) = edited(tmp_path, ("run-script", {"file": "in.py", "input": "x"}))
    assert code == 0
    assert "IndentationError" in output
    assert output.endswith("exit code 1\n")
