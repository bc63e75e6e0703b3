"""Layout: where files end up by hand, by the tools, and by real execution of whole tasks."""

import re
import stat
from contextlib import chdir, redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import combinations
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Family, Rules, layout
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair, make_task
from flywheel.grade import grade_sets
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.screen.lint import lint
from flywheel.screen.perturb import perturb
from flywheel.screen.plans import RIGHT, Role
from flywheel.screen.trials import run_trials
from flywheel.tools import command
from schemas.attempt import Verdict
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget, Source, SourceKind, TaskManifest
from schemas.tool import Script, ToolCall

FAMILY = layout.FAMILY
SOURCE = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")
TRAIN = Lexicon(Split.TRAIN)


def combinations_of(family: Family[Any], *sizes: int) -> list[Rules]:
    """Every set of so many rules that can be live together."""
    sets = (frozenset(rules) for size in sizes for rules in combinations(family.rules, size))
    return [rules for rules in sets if family.allows(rules)]


def make(
    family: Family[Any], rules: Rules, seed: int = 0, split: Split = Split.TRAIN
) -> TaskManifest:
    return make_task(family, rules, seed, Lexicon(split), Budget(), SOURCE)


def put(folder: Path, files: tuple[File, ...]) -> None:
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data())
        path.chmod(file.mode)


def call(family: Family[Any], folder: Path, step: ToolCall) -> tuple[int, str]:
    """Run a family's tool in a folder of this machine; return exit code and output."""
    (tool,) = (tool for tool in family.tools if tool.name == step.tool)
    program, *argv = command(tool, step)
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = import_module(f"flywheel.tools.programs.{program}").main(argv)
    return code, printed.getvalue().strip()


def carry_out(
    family: Family[Any], files: tuple[File, ...], script: Script, artifacts: tuple[str, ...]
) -> tuple[File, ...]:
    """Run a script of tool calls, each of which must succeed; return the artifacts."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, files)
        for step in script:
            code, said = call(family, folder, step)
            assert code == 0, said
        left = sorted(path for path in folder.rglob("*") if path.is_file())
        return tuple(
            File.of(relative, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
            for path in left
            for relative in [str(path.relative_to(folder))]
            if relative in artifacts or relative.startswith(artifacts)
        )


def unexpected(task: TaskManifest) -> list[str]:
    """Screen a task in real sandboxes; name what came out otherwise than it should."""
    box = Bubblewrap()
    trials = run_trials(task, box.open, box.digest, "test", lambda: 0.0)
    (right, *_) = (s.artifacts for s in trials.specimens if s.role is Role.REFERENCE)
    runs = [(run.name, run.role in RIGHT, run.artifacts) for run in trials.specimens]
    runs += [(name, False, artifacts) for name, artifacts in perturb(task, right)]
    sets = list({artifacts: None for _, _, artifacts in runs})
    labels = {"run": "test", "attempt": "test"}
    grades = dict(zip(sets, grade_sets(task, sets, box.open, labels), strict=True))
    wrong = [
        f"{name}: {grades[artifacts]}"
        for name, is_right, artifacts in runs
        if grades[artifacts].verdict is not (Verdict.PASSED if is_right else Verdict.FAILED)
    ]
    failed = {c.name for grade in grades.values() for c in grade.checks if not c.passed}
    wrong += [f"never failed: {name}" for name in task.sealed.grader.checks if name not in failed]
    return wrong + [f"{c.kind}: {c.evidence}" for c in lint(task, lambda *_: []) if not c.passed]


def check_goal(family: Family[Any], rules: Rules, seed: int, looked_up: int = 0) -> None:
    """Check that sentences and checks name each other, and literals stand in order of use."""
    task = make(family, rules, seed)
    requirements = task.sealed.requirements
    named = {check for item in requirements for check in item.checks}
    assert named == set(task.sealed.grader.checks)
    assert {item.rule for item in requirements if item.rule} == rules
    literals = re.findall("`([^`]+)`", task.brief.goal)
    assert len(set(task.operands) - set(literals)) == looked_up
    values = [value for step in task.sealed.reference for value in step.arguments.values()]
    used = list(dict.fromkeys(value for value in values if value in literals))
    assert used == sorted(used, key=literals.index)
    assert len(task.brief.goal.split()) <= 130


def check_splits(family: Family[Any]) -> None:
    """Check that tasks of two splits share no operand."""
    seen = {
        split: {
            operand
            for rules in combinations_of(family, 1)
            for operand in make(family, rules, 3, split).operands
        }
        for split in Split
    }
    for one, other in combinations(Split, 2):
        assert seen[one]
        assert not seen[one] & seen[other]


CASE = layout.Layout(
    source="in",
    output="out",
    mark="go",
    entries=(
        ("b/x-2024-01-05.csv", "go\n1\n"),
        ("a/longer-2024-02-06.txt", "go\n1\n"),
        ("a/same-2024-01-07.log", "2\ngo\n"),
        ("b/same-2024-01-07.log", "go\n3\n"),
        (".h-2024-03-08.csv", "go\n4\n"),
        ("Top-2024-03-09.txt", "5\n"),
    ),
)
X, LONGER, SAME = "x-2024-01-05.csv 1", "longer-2024-02-06.txt 1", "same-2024-01-07.log 2"
HIDDEN, TOP = ".h-2024-03-08.csv 4", "Top-2024-03-09.txt 5"
BASE = {f"csv/{X}", f"txt/{LONGER}", f"log/{SAME}", f"csv/{HIDDEN}", f"txt/{TOP}"}
B_SAME = "same-2024-01-07.log 3"


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        (set(), BASE),
        ({"skip-hidden"}, BASE - {f"csv/{HIDDEN}"}),
        ({"first-line-says"}, BASE - {f"txt/{TOP}", f"log/{SAME}"} | {f"log/{B_SAME}"}),
        ({"any-line-says"}, BASE - {f"txt/{TOP}"}),
        ({"keep-shortest"}, BASE - {f"txt/{LONGER}"}),
        ({"keep-first"}, BASE - {f"csv/{X}"}),
        ({"lower-case"}, BASE - {f"txt/{TOP}"} | {"txt/top-2024-03-09.txt 5"}),
        ({"number-later"}, BASE | {"log/same-2024-01-07-2.log 3"}),
        (
            {"by-word"},
            {f"x/{X}", f"longer/{LONGER}", f"same/{SAME}", f".h/{HIDDEN}", f"Top/{TOP}"},
        ),
        (
            {"by-month"},
            {
                f"2024-{month}/{name}"
                for month, name in (
                    ("01", X),
                    ("02", LONGER),
                    ("01", SAME),
                    ("03", HIDDEN),
                    ("03", TOP),
                )
            },
        ),
        (
            {"first-line-says", "keep-first", "number-later"},
            {f"txt/{LONGER}", f"log/{B_SAME}", f"csv/{HIDDEN}"},
        ),
    ],
)
def test_files_end_up_where_worked_out_by_hand(rules: set[str], answer: set[str]) -> None:
    right = layout.target(CASE, frozenset(rules))
    digits = {f"{file.path} {re.sub('[^0-9]', '', file.content)}" for file in right}
    assert digits == {f"out/{place}" for place in answer}


def test_files_of_one_content_and_equally_long_names_are_told_apart_by_path() -> None:
    twins = (("b/one-2024-01-05.csv", "1\n"), ("c/two-2024-01-06.csv", "1\n"))
    case = layout.Layout(source="in", output="out", mark="go", entries=twins[::-1])
    (kept,) = layout.target(case, frozenset({"keep-shortest"}))
    assert kept.path == "out/csv/one-2024-01-05.csv"


@pytest.mark.parametrize("seed", [0, 1])
def test_every_allowed_combination_is_live_within_the_draws(seed: int) -> None:
    for rules in combinations_of(FAMILY, 1, 2, 3):
        assert make(FAMILY, rules, seed).rules == tuple(sorted(rules))


def test_the_same_seed_makes_the_same_task_and_another_one_another() -> None:
    rules = frozenset({"keep-first", "by-month"})
    assert make(FAMILY, rules, 5) == make(FAMILY, rules, 5)
    assert make(FAMILY, rules, 5).task_id != make(FAMILY, rules, 6).task_id


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 0, 1, 2, 3)), st.integers(0, 10_000))
def test_the_tools_lead_to_the_target_also_where_rules_are_left_out(
    rules: Rules, seed: int
) -> None:
    case = layout.build(rules, Random(seed), TRAIN)
    for stated in (rules, *FAMILY.left_out(rules).values()):
        script = FAMILY.reference(case, stated)
        left = carry_out(FAMILY, FAMILY.inputs(case), script, FAMILY.artifacts(case))
        assert {f.path: f.content for f in left} == {
            f.path: f.content for f in FAMILY.target(case, stated)
        }


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(combinations_of(FAMILY, 1, 2, 3)), st.integers(0, 10_000))
def test_a_goal_is_covered_by_checks_and_names_what_the_tools_need(rules: Rules, seed: int) -> None:
    check_goal(FAMILY, rules, seed)


def test_tasks_of_two_splits_share_no_operand() -> None:
    check_splits(FAMILY)


def test_only_right_solutions_pass_in_real_sandboxes() -> None:
    rules = frozenset({"first-line-says", "keep-shortest", "by-month"})
    assert unexpected(make(FAMILY, rules, 11, Split.HOLDOUT)) == []


def test_a_case_and_the_same_without_a_rule_are_both_sound() -> None:
    rules = frozenset({"number-later", "skip-hidden"})
    pair = make_pair(FAMILY, rules, "skip-hidden", 2, TRAIN, Budget(), SOURCE)
    assert pair[0].brief.environment == pair[1].brief.environment
    assert unexpected(pair[1]) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("copy-tree", {"folder": "gone", "to": "new"}, "no folder `gone`"),
        ("copy-tree", {"folder": "in", "to": "out"}, "there is a `out` already"),
        ("flatten", {"folder": "in/one.txt", "taken": "drop"}, "no folder `in/one.txt`"),
        ("group-files", {"folder": "in", "by": "month"}, "`one.txt` has no month"),
        ("group-files", {"folder": "in", "by": "word"}, "`one.txt` has no word"),
        ("lower-names", {"folder": "out"}, "there is a `out/a.txt` already"),
    ],
)
def test_a_call_that_cannot_be_done_is_refused_and_changes_nothing(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    paths = ("in/one.txt", "out/A.txt", "out/a.txt")
    put(tmp_path, tuple(File(path=path, content=f"{path}\n") for path in paths))
    assert call(FAMILY, tmp_path, ToolCall(tool=tool, arguments=arguments)) == (2, said)
    assert {path: (tmp_path / path).read_text() for path in paths} == {p: f"{p}\n" for p in paths}


def test_links_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, (File(path="in/one.txt", content="1\n"), File(path="else.txt", content="2\n")))
    (tmp_path / "in/link.txt").symlink_to(tmp_path / "else.txt")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    for tool, arguments in (("flatten", {"taken": "drop"}), ("drop-hidden", {})):
        step = ToolCall(tool=tool, arguments={"folder": "in", **arguments})
        assert call(FAMILY, tmp_path, step) == (0, "1 files")
    assert (tmp_path / "else.txt").read_text() == "2\n"
