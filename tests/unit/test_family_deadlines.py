"""Deadlines: due days worked out by hand, by tools in a sandbox, and by a program."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from importlib import import_module
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules
from flywheel.families.deadlines import FAMILY, Job, Schedule, build, goal, inputs, target
from flywheel.families.lexicon import Lexicon
from flywheel.graders import grader_source
from flywheel.sandbox import ArtifactRefused, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.tools import BASH_TOOL, command, programs_for
from schemas.file import File
from schemas.lineage import Split
from schemas.tool import Script, ToolCall

STATE = ".jobs.json"
COMBINATIONS = [
    frozenset(rules)
    for size in (1, 2, 3)
    for rules in combinations(FAMILY.rules, size)
    if FAMILY.allows(frozenset(rules))
]
SCHEDULE = Schedule(
    source="in.csv",
    holidays_file="free.txt",
    output="out.csv",
    columns=("job", "start", "days"),
    jobs=(
        Job("c", (3, 5), 20 * 60, 3),  # Wednesday 5 March, or Saturday 3 May; the next day from 4 h
        Job("a", (4, 4), 9 * 60, 3),  # Friday 4 April
        Job("b", (3, 6), 0, 2),  # Thursday 6 March, or Tuesday 3 June
    ),
    year=2025,
    hours=4,
    holidays=(date(2025, 3, 6), date(2025, 3, 12), date(2025, 4, 8)),
    today=date(2025, 4, 7),
    thing="job",
)


@pytest.mark.parametrize(
    ("rules", "due"),
    [
        (set(), ["c 03-08", "a 04-07", "b 03-08"]),
        ({"day-first"}, ["c 05-06", "a 04-07", "b 06-05"]),
        ({"in-zone"}, ["c 03-09", "a 04-07", "b 03-08"]),
        ({"working-days"}, ["c 03-10", "a 04-09", "b 03-10"]),
        ({"skip-holidays"}, ["c 03-09", "a 04-07", "b 03-08"]),
        ({"count-start"}, ["c 03-07", "a 04-06", "b 03-07"]),
        ({"to-monday"}, ["c 03-10", "a 04-07", "b 03-10"]),
        ({"to-friday"}, ["c 03-07", "a 04-07", "b 03-07"]),
        ({"drop-past"}, ["a 04-07"]),
        ({"drop-today-too"}, []),
        ({"earliest-first"}, ["b 03-08", "c 03-08", "a 04-07"]),
        ({"latest-first"}, ["a 04-07", "b 03-08", "c 03-08"]),
        ({"count-start", "to-monday"}, ["c 03-07", "a 04-07", "b 03-07"]),
        ({"count-start", "skip-holidays"}, ["c 03-08", "a 04-06", "b 03-08"]),
        ({"working-days", "skip-holidays"}, ["c 03-11", "a 04-10", "b 03-10"]),
        ({"working-days", "count-start", "day-first"}, ["c 05-07", "a 04-08", "b 06-04"]),
        ({"in-zone", "working-days", "count-start"}, ["c 03-10", "a 04-08", "b 03-07"]),
    ],
)
def test_due_days_are_as_worked_out_by_hand(rules: set[str], due: list[str]) -> None:
    (answer,) = target(SCHEDULE, frozenset(rules))
    header, *rows = csv.reader(io.StringIO(answer.content))
    assert header == ["job", "due"]
    assert rows == [[line[0], f"2025-{line[2:]}"] for line in due]


@pytest.mark.parametrize("rules", COMBINATIONS, ids=lambda rules: "+".join(sorted(rules)))
def test_all_rules_of_a_combination_are_live_within_a_few_draws(rules: Rules) -> None:
    for seed in range(2):
        rng = Random(seed)
        cases = (FAMILY.build(rules, rng, Lexicon(split)) for split in [*Split] * 4)
        assert any(FAMILY.is_live(case, rules) for case in cases)


def live_case(rules: Rules, seed: int, split: Split = Split.TRAIN) -> Schedule:
    rng = Random(seed)
    cases = iter(lambda: build(rules, rng, Lexicon(split)), None)
    return next(case for case in cases if FAMILY.is_live(case, rules))


cells = st.tuples(st.sampled_from(COMBINATIONS), st.integers(0, 10_000), st.sampled_from(Split))


@settings(max_examples=20, deadline=None)
@given(cells)
def test_the_same_seed_makes_the_same_case_and_another_seed_another(
    cell: tuple[Rules, int, Split],
) -> None:
    rules, seed, split = cell
    assert live_case(rules, seed, split) == live_case(rules, seed, split)
    assert live_case(rules, seed, split) != live_case(rules, seed + 1, split)


@settings(max_examples=50, deadline=None)
@given(cells)
def test_a_goal_names_operands_in_the_order_of_use_and_every_check(
    cell: tuple[Rules, int, Split],
) -> None:
    rules, seed, split = cell
    case = live_case(rules, seed, split)
    said = goal(case, rules, Random(seed))
    text = " ".join(requirement.sentence for requirement in said)
    free = {
        (tool.name, item.name)
        for tool in FAMILY.tools
        for item in tool.parameters
        if not item.choices
    }
    used = dict.fromkeys(
        f"`{value}`"
        for call in FAMILY.reference(case, rules)
        for name, value in call.arguments.items()
        if (call.tool, name) in free
    )
    assert sorted(used, key=text.index) == list(used)
    assert {check for requirement in said for check in requirement.checks} == {
        *FAMILY.checks(rules)
    }
    assert {requirement.rule for requirement in said} - {None} == rules


def run(sandbox: Sandbox, folder: str, case: Schedule, script: Script) -> tuple[File, ...]:
    """Run a script on a fresh copy of the case; return the artifacts."""
    tools = {tool.name: tool for tool in (*FAMILY.tools, BASH_TOOL)}
    sandbox.put(inputs(case), folder)
    for call in script:
        sandbox.call(command(tools[call.tool], call), 10.0, folder)
    left = []
    for path in (*FAMILY.artifacts(case), *FAMILY.protected(case)):
        try:
            left.append(File.of(path, sandbox.get(f"{folder}/{path}")))
        except ArtifactRefused:
            continue
    return tuple(left)


def failures(case: Schedule, rules: Rules, scripts: Mapping[str, Script]) -> dict[str, set[str]]:
    """Run scripts in one sandbox, grade in another: script → the checks that it fails."""
    labels = {"run": "test", "attempt": "deadlines"}
    spec = SandboxSpec(programs=programs_for(FAMILY.tools), deadline=60.0, labels=labels)
    with Bubblewrap().open(spec) as sandbox:
        sets = {name: run(sandbox, name, case, script) for name, script in scripts.items()}
    grader = {FAMILY.grader: grader_source(FAMILY.grader)}
    with Bubblewrap().open(SandboxSpec(programs=grader, deadline=60.0, labels=labels)) as sandbox:
        sandbox.put(target(case, rules), "expected/output")
        sandbox.put(inputs(case), "expected/inputs")
        failed = {}
        for name, files in sets.items():
            sandbox.put(files, f"sets/{name}")
            argv = [FAMILY.grader, f"sets/{name}", "expected", *FAMILY.checks(rules)]
            lines = sandbox.call(argv, 10.0).output.decode().splitlines()
            assert lines[-1] == "graded"
            rows = [line.split("\t") for line in lines[:-1]]
            failed[name] = {check for check, verdict, _ in rows if verdict == "fail"}
    return failed


def wrong_scripts(case: Schedule, rules: Rules) -> Iterator[tuple[str, Script]]:
    """Yield doing nothing, each reference without one call or cut short, and wrong readings."""
    script = FAMILY.reference(case, rules)
    for at in range(len(script)):
        yield f"first-{at}", script[:at]
        yield f"without-call-{at}", (*script[:at], *script[at + 1 :])
    for name, others in FAMILY.left_out(rules).items():
        yield name, FAMILY.reference(case, others)


@pytest.mark.parametrize(
    "rules",
    [
        {"day-first", "in-zone", "count-start"},
        {"working-days", "skip-holidays", "drop-past"},
        {"skip-holidays", "to-monday", "earliest-first"},
        {"in-zone", "to-friday", "drop-past"},
    ],
)
def test_in_a_sandbox_right_solutions_pass_and_wrong_ones_fail(rules: set[str]) -> None:
    case = live_case(frozenset(rules), seed=3)
    right = {
        "reference": FAMILY.reference(case, frozenset(rules)),
        "alternative": FAMILY.alternative(case, frozenset(rules)),
    }
    wrong = dict(wrong_scripts(case, frozenset(rules)))
    failed = failures(case, frozenset(rules), right | wrong)
    assert {name: failed[name] for name in right} == {name: set() for name in right}
    assert [name for name in wrong if not failed[name]] == []


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_weekends_have_both_days_and_a_start_stands_at_local_midnight(seed: int) -> None:
    case = build(frozenset({"to-monday"}), Random(seed), Lexicon(Split.DEV))
    moved = target(case, frozenset())[0].content.splitlines()[1:]
    assert {date.fromisoformat(line.split(",")[1]).weekday() for line in moved} >= {5, 6}
    assert any(job.minute == (24 - case.hours) * 60 for job in case.jobs)


def test_a_job_due_today_is_not_past() -> None:
    rules = frozenset({"drop-past"})
    case = live_case(rules, seed=5)
    (kept,) = target(case, rules)
    assert f",{case.today.isoformat()}\n" in kept.content
    (later,) = target(replace(case, today=date(case.year + 1, 12, 31)), rules)
    assert later.content == f"{case.columns[0]},due\n"


def test_a_changed_file_fails_though_the_result_is_right() -> None:
    rules = frozenset({"skip-holidays"})
    case = live_case(rules, seed=1)
    spoil = ToolCall(tool="bash", arguments={"command": f"echo >> {case.holidays_file}"})
    script = (*FAMILY.reference(case, rules), spoil)
    assert failures(case, rules, {"spoilt": script}) == {"spoilt": {"input-unchanged"}}


def use(tool: str, **arguments: str) -> int:
    options = [f"--{name}={value}" for name, value in arguments.items()]
    return int(import_module("flywheel.tools.programs.dates").main([tool, *options]))


@settings(max_examples=60, deadline=None)
@given(cells)
def test_the_tools_produce_the_target_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, cell: tuple[Rules, int, Split]
) -> None:
    rules, seed, split = cell
    case = build(rules, Random(seed), Lexicon(split))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("jobs"))
        for file in inputs(case):
            Path(file.path).write_bytes(file.data())
        for call in FAMILY.reference(case, rules):
            assert use(call.tool, **call.arguments) == 0
        assert (File.of(case.output, Path(case.output).read_bytes()),) == target(case, rules)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read-jobs", {"file": "no.csv"}, "cannot open `no.csv`: No such file or directory"),
        ("read-jobs", {"file": "odd.csv"}, "`odd.csv` is not a table"),
        ("read-starts", {"column": "end", "written": "day-first"}, "no column `end`"),
        ("read-starts", {"column": "job", "written": "day-first"}, "`c` is not such a time"),
        ("shift-hours", {"hours": "4"}, "no starts are read"),
        ("count-days", {"column": "days", "begin": "next-day"}, "no starts are read"),
        ("skip-dates", {"file": "odd.csv"}, "`a,b` is not a date"),
        ("move-weekends", {"to": "monday"}, "no days are counted"),
        ("drop-due", {"date": "2025-04-07", "when": "before"}, "no days are counted"),
        ("sort-jobs", {"column": "job", "order": "latest"}, "no days are counted"),
        ("write-due", {"column": "job", "file": "out.csv"}, "no days are counted"),
    ],
)
def test_a_calendar_tool_refuses_in_words_and_leaves_the_jobs_as_they_were(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    arguments: dict[str, str],
    message: str,
) -> None:
    load(tmp_path, monkeypatch)
    before = Path(STATE).read_bytes()
    capsys.readouterr()
    assert use(tool, **arguments) == 2
    assert capsys.readouterr().out == f"{message}\n"
    assert Path(STATE).read_bytes() == before


def load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("in.csv").write_text(inputs(SCHEDULE)[0].content)
    Path("odd.csv").write_text("a,b\n1\n")
    assert use("read-jobs", file="in.csv") == 0


@pytest.mark.parametrize(
    ("days", "message"),
    [
        ("0", "`0` is not between 1 and 10000 days"),
        ("10001", "`10001` is not between 1 and 10000 days"),
        ("9" * 5000, f"`{'9' * 5000}` is not a number of days"),
        ("", "`` is not a number of days"),
        ("9000", "the calendar ends before a due day"),
    ],
)
def test_a_count_that_can_not_be_made_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    days: str,
    message: str,
) -> None:
    load(tmp_path, monkeypatch)
    Path("in.csv").write_text(f"job,start,days\na,01/02/9999 10:00,{days}\n")
    assert use("read-jobs", file="in.csv") == 0
    assert use("read-starts", column="start", written="month-first") == 0
    capsys.readouterr()
    assert use("count-days", column="days", begin="next-day") == 2
    assert capsys.readouterr().out == f"{message}\n"


def test_a_calendar_tool_refuses_where_no_jobs_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert use("skip-weekends") == 2
    assert capsys.readouterr().out == "no jobs are loaded\n"
