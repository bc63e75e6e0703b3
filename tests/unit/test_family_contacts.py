"""Contacts: books merged as worked out by hand, by tools in a sandbox, and by a program."""

import csv
import io
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules
from flywheel.families.contacts import FAMILY, Books, Contact, build, goal, inputs, target
from flywheel.families.lexicon import Lexicon
from flywheel.graders import grader_source
from flywheel.sandbox import ArtifactRefused, Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.tools import BASH_TOOL, command, programs_for
from schemas.file import File
from schemas.lineage import Split
from schemas.tool import Script, ToolCall

STATE = ".contacts.json"
COMBINATIONS = [
    frozenset(rules)
    for size in (1, 2, 3)
    for rules in combinations(FAMILY.rules, size)
    if FAMILY.allows(frozenset(rules))
]
BOOKS = Books(
    first="in.csv",
    second="more.json",
    output="out.csv",
    columns=Contact("last", "first", "mail", "phone", "town", "seen"),
    first_rows=(
        Contact("moss", "ann", "a@x", "(1) 2-3", "", "2025-02-01"),
        Contact("fern", "zoe", "b@x", "", "rome", "2025-02-02"),
        Contact("moss", "al", "c@x", "(7) 7-7", "bonn", "2025-02-03"),
        Contact("fern", "bob", "", "(8) 8-8", "kiel", "2025-02-04"),
    ),
    second_rows=(
        Contact("moss", "al", "C@X", "7.7.0", "oslo", "2025-01-01"),
        Contact("moss", "ann", "a@x", "1.2.3", "riga", "2025-01-02"),
        Contact("fern", "zoe", "b@x", "9.9.9", "", "2025-03-03"),
        Contact("fern", "bob", "d@x", "8.8.8", "", "2025-03-04"),
    ),
    thing="contact",
)
ANN, ZOE, AL, BOB = ("2025-02-01", "2025-02-02", "2025-02-03", "2025-02-04")
AL_2, ANN_2, ZOE_2, BOB_2 = ("2025-01-01", "2025-01-02", "2025-03-03", "2025-03-04")


def rows_of(case: Books, rules: set[str]) -> list[Contact]:
    (answer,) = target(case, frozenset(rules))
    header, *rows = csv.reader(io.StringIO(answer.content))
    assert tuple(header) == case.columns
    return [Contact(*row) for row in rows]


@pytest.mark.parametrize(
    ("rules", "dates"),
    [
        (set(), [ANN, ZOE, AL, BOB, AL_2, BOB_2]),
        ({"drop-before"}, [ZOE, AL, BOB, AL_2, ANN_2]),
        ({"any-case"}, [ANN, ZOE, AL, BOB, BOB_2]),
        ({"by-phone"}, [ANN, ZOE, AL, BOB, AL_2, ZOE_2]),
        ({"newer-wins"}, [ANN, ZOE_2, AL, BOB, AL_2, BOB_2]),
        ({"older-wins"}, [ANN_2, ZOE, AL, BOB, AL_2, BOB_2]),
        ({"only-in-both"}, [ANN, ZOE]),
        ({"only-in-one"}, [AL, BOB, AL_2, BOB_2]),
        ({"drop-after"}, [ZOE, AL, BOB, AL_2]),
        ({"by-last-name"}, [BOB, BOB_2, ZOE, AL, AL_2, ANN]),
        ({"by-first-name"}, [AL, AL_2, ANN, BOB, BOB_2, ZOE]),
        ({"any-case", "older-wins"}, [ANN_2, ZOE, AL_2, BOB, BOB_2]),
        ({"newer-wins", "only-in-both", "drop-after"}, []),
        ({"drop-before", "only-in-both", "any-case"}, [AL]),
    ],
)
def test_books_are_merged_as_worked_out_by_hand(rules: set[str], dates: list[str]) -> None:
    assert [row.date for row in rows_of(BOOKS, rules)] == dates


def test_gaps_of_the_entry_that_stays_are_filled_from_the_one_that_goes() -> None:
    ann, zoe, *others = rows_of(BOOKS, {"fill-gaps"})
    assert ann == BOOKS.first_rows[0]._replace(town="riga")
    assert zoe == BOOKS.first_rows[1]._replace(phone="9.9.9")
    assert others == rows_of(BOOKS, set())[2:]
    _, newer, *_ = rows_of(BOOKS, {"fill-gaps", "newer-wins"})
    assert newer == BOOKS.second_rows[2]._replace(town="rome")


@pytest.mark.parametrize("rules", COMBINATIONS, ids=lambda rules: "+".join(sorted(rules)))
def test_all_rules_of_a_combination_are_live_within_a_few_draws(rules: Rules) -> None:
    for seed in range(2):
        rng = Random(seed)
        cases = (FAMILY.build(rules, rng, Lexicon(split)) for split in [*Split] * 4)
        assert any(FAMILY.is_live(case, rules) for case in cases)


def live_case(rules: Rules, seed: int, split: Split = Split.TRAIN) -> Books:
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


def run(sandbox: Sandbox, folder: str, case: Books, script: Script) -> tuple[File, ...]:
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


def failures(case: Books, rules: Rules, scripts: Mapping[str, Script]) -> dict[str, set[str]]:
    """Run scripts in one sandbox, grade in another: script → the checks that it fails."""
    labels = {"run": "test", "attempt": "contacts"}
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


def wrong_scripts(case: Books, rules: Rules) -> Iterator[tuple[str, Script]]:
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
        {"drop-before", "any-case", "newer-wins"},
        {"by-phone", "older-wins", "fill-gaps"},
        {"only-in-both", "drop-after", "by-last-name"},
        {"drop-before", "only-in-both", "fill-gaps"},
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


def test_a_changed_book_fails_though_the_result_is_right() -> None:
    rules = frozenset({"any-case"})
    case = live_case(rules, seed=1)
    spoil = ToolCall(tool="bash", arguments={"command": f"echo >> {case.second}"})
    script = (*FAMILY.reference(case, rules), spoil)
    assert failures(case, rules, {"spoilt": script}) == {"spoilt": {"input-unchanged"}}


def use(tool: str, **arguments: str) -> int:
    options = [f"--{name}={value}" for name, value in arguments.items()]
    return int(import_module("flywheel.tools.programs.addresses").main([tool, *options]))


@settings(max_examples=60, deadline=None)
@given(cells)
def test_the_tools_produce_the_target_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, cell: tuple[Rules, int, Split]
) -> None:
    rules, seed, split = cell
    case = build(rules, Random(seed), Lexicon(split))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("books"))
        for file in inputs(case):
            Path(file.path).write_bytes(file.data())
        for call in FAMILY.reference(case, rules):
            assert use(call.tool, **call.arguments) == 0
        assert (File.of(case.output, Path(case.output).read_bytes()),) == target(case, rules)


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read-contacts", {"file": "no.csv"}, "cannot open `no.csv`: No such file or directory"),
        ("read-contacts", {"file": "empty.csv"}, "`empty.csv` holds no rows"),
        ("read-contacts", {"file": "odd.csv"}, "`odd.csv` has rows of different lengths"),
        ("read-contacts", {"file": "deep.json"}, "`deep.json` holds no rows"),
        ("add-contacts", {"file": "other.json"}, "`other.json` has other columns"),
        ("add-contacts", {"file": "unlike.json"}, "`unlike.json` holds no rows"),
        ("drop-without", {"column": "a`b"}, "no column `a`b`"),
        ("write-contacts", {"file": "."}, "cannot open `.`: Is a directory"),
    ],
)
def test_a_contacts_tool_refuses_in_words_and_leaves_the_contacts_as_they_were(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    arguments: dict[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "in.csv": inputs(BOOKS)[0].content,
        "empty.csv": "",
        "odd.csv": "a,b\n1\n",
        "deep.json": "[" * 100_000,
        "other.json": '[{"last": "x"}]',
        "unlike.json": '[{"last": "x"}, {}]',
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    assert use("read-contacts", file="in.csv") == 0
    before = Path(STATE).read_bytes()
    capsys.readouterr()
    assert use(tool, **arguments) == 2
    assert capsys.readouterr().out == f"{message}\n"
    assert Path(STATE).read_bytes() == before


@pytest.mark.parametrize("state", [None, "", "[]", '{"columns": ["a"]}'])
def test_a_contacts_tool_refuses_where_no_contacts_are_loaded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    if state is not None:
        Path(STATE).write_text(state)
    assert use("unite") == 2
    assert capsys.readouterr().out == "no contacts are loaded\n"
