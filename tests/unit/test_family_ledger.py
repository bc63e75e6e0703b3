"""Ledgers: migrated as worked out by hand, by tools in a sandbox, and by SQL alone."""

import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families import Rules
from flywheel.families.ledger import FAMILY, inputs, target
from flywheel.families.ledger_database import Entry, Ledger
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

grader = import_module("flywheel.graders.database")
COMBINATIONS = combinations_of(FAMILY)
CELLS = st.tuples(st.sampled_from(COMBINATIONS), st.integers(0, 10_000), st.sampled_from(Split))
LEDGER = Ledger(
    source="in.db",
    output="out.db",
    entries="entry",
    accounts="account",
    columns=("code", "voucher", "holder", "day", "amount"),
    holder="name",
    rows=(
        Entry("c1", "v1", "ann", (3, 11), 12_345),
        Entry("c2", "v2", "zoe", (4, 12), 12_355),
        Entry("c3", "v1", "bob", (5, 5), -12_345),
        Entry("c4", "v3", "bob", (1, 2), 500),
    ),
    known=(("ann", "moss"), ("bob", "fern")),
    added=("state", "open"),
)
ROWS = [
    ("c1", "v1", "ann", "03-11-2026", "12.345"),
    ("c2", "v2", "zoe", "04-12-2026", "12.355"),
    ("c3", "v1", "bob", "05-05-2026", "-12.345"),
    ("c4", "v3", "bob", "01-02-2026", "0.50"),
]


def rows_of(file: File) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(file.data())
        assert database.execute("SELECT * FROM account").fetchall() == list(LEDGER.known)
        return database.execute("SELECT * FROM entry ORDER BY code").fetchall()


def migrated(*rules: str) -> list[tuple[Any, ...]]:
    (file,) = target(LEDGER, frozenset(rules))
    return rows_of(file)


def column(position: int, *rules: str) -> list[Any]:
    return [row[position] for row in migrated(*rules)]


def test_a_ledger_without_a_rule_is_its_rows() -> None:
    (file,) = inputs(LEDGER)
    assert rows_of(file) == migrated() == ROWS


@pytest.mark.parametrize(
    ("rules", "position", "values"),
    [
        (("keep-first",), 0, ["c1", "c2", "c4"]),
        (("keep-last",), 0, ["c2", "c3", "c4"]),
        (("drop-orphans",), 0, ["c1", "c3", "c4"]),
        (("attach-orphans",), 2, ["ann", "ann", "bob", "bob"]),
        (("half-even",), 4, [1234, 1236, -1234, 50]),
        (("half-up",), 4, [1235, 1236, -1235, 50]),
        (("day-first",), 3, ["2026-11-03", "2026-12-04", "2026-05-05", "2026-02-01"]),
        (("month-first",), 3, ["2026-03-11", "2026-04-12", "2026-05-05", "2026-01-02"]),
        (("add-column",), 5, ["open"] * 4),
        (("keep-last", "drop-orphans", "half-up"), 4, [-1235, 50]),
    ],
)
def test_entries_are_migrated_as_worked_out_by_hand(
    rules: tuple[str, ...], position: int, values: list[Any]
) -> None:
    assert column(position, *rules) == values


def test_a_new_column_and_a_unique_index_are_in_the_schema(tmp_path: Path) -> None:
    (file,) = target(LEDGER, frozenset({"add-column", "unique-index", "half-up"}))
    (tmp_path / "out.db").write_bytes(file.data())
    _, tables = grader.read(tmp_path / "out.db")
    assert tables["entry"].columns["state"] == ("text", True, ("text", "open"))
    assert tables["entry"].columns["amount"] == ("integer", False, ("null",))
    assert tables["entry"].keys == {frozenset({"code"})}
    assert tables["account"].keys == {frozenset({"holder"})}


def test_a_database_has_the_same_bytes_each_time_and_names_no_version_of_sqlite() -> None:
    (first,), (second,) = inputs(LEDGER), inputs(LEDGER)
    assert first == second
    assert int.from_bytes(first.data()[96:100], "big") == 3_040_000
    assert int.from_bytes(first.data()[16:18], "big") == 1024


@pytest.mark.parametrize("rules", COMBINATIONS, ids=lambda rules: "+".join(sorted(rules)))
def test_all_rules_of_a_combination_are_live_within_a_few_draws(rules: Rules) -> None:
    assert max(draws_until_live(FAMILY, rules, seed) for seed in range(2)) <= 10


@settings(max_examples=40, deadline=None)
@given(CELLS)
def test_tools_leave_what_the_target_holds(cell: tuple[Rules, int, Split]) -> None:
    task = task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2])
    (right,) = task.sealed.grader.expected
    made = File.of(right.path, made_here(task, task.sealed.reference)[right.path])
    assert dump(made) == dump(right)


def dump(file: File) -> dict[str, list[tuple[Any, ...]]]:
    """Rows by table, each as its columns' names and values in the order of names."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(file.data())
        database.row_factory = lambda cursor, row: tuple(
            sorted(zip((column[0] for column in cursor.description), row, strict=True))
        )
        listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [row[0][1] for row in listed.fetchall()]
        tables = {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    return {name: sorted(rows) for name, rows in tables.items()}


@settings(max_examples=30, deadline=None)
@given(CELLS)
def test_a_goal_asks_for_every_check_and_names_operands_in_order(
    cell: tuple[Rules, int, Split],
) -> None:
    task = task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2])
    assert unnamed_checks(task.sealed.requirements, task.sealed.grader.checks) == set()
    assert misplaced_operands(task) == []
    assert all(f"`{name}`" in task.brief.goal for name in task.operands)
    assert {sentence.rule for sentence in task.sealed.requirements} - {None} == cell[0]
    assert task_of(FAMILY, *cell[0], seed=cell[1], split=cell[2]) == task


@pytest.mark.parametrize(
    "rules",
    [
        ("keep-last", "attach-orphans", "half-even"),
        ("keep-first", "drop-orphans", "unique-index"),
        ("half-up", "day-first", "add-column"),
        ("unique-index",),
        ("add-column",),
    ],
)
def test_in_a_sandbox_right_solutions_pass_and_wrong_ones_fail(rules: tuple[str, ...]) -> None:
    assert misjudged(task_of(FAMILY, *rules, seed=3)) == {}


def test_the_child_of_a_pair_is_solved_without_the_rule() -> None:
    first, child = pair_of(FAMILY, "keep-last", "unique-index", "half-even", rule="keep-last")
    assert failing_right_scripts(child) == {}
    assert failed_checks(child, artifacts_of(child, {"of first": first.sealed.reference})) == {
        "of first": {"rows"}
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("open-database", {"file": "none.db"}, "cannot copy `none.db` to `.store.db`"),
        ("open-database", {"file": "text.db"}, "the database says: file is not a database"),
        ("drop-duplicates", {"table": "x", "column": "code", "keep": "last"}, "no table `x`"),
        ("to-iso-dates", {"table": "entry", "column": "x", "first": "day"}, "no column `x` in"),
        ("to-cents", {"table": "entry", "column": "day", "ties": "half-up"}, "`03-11-2026` is not"),
        (
            "to-iso-dates",
            {"table": "entry", "column": "code", "first": "day"},
            "`c1` is not a date",
        ),
        ("add-unique-index", {"table": "entry", "column": "voucher"}, "the database says: UNIQUE"),
        (
            "drop-orphans",
            {"table": "entry", "column": "day", "parent": "account"},
            "no column `day`",
        ),
        (
            "add-column",
            {"table": 'x"; DROP TABLE entry; --', "column": "a", "default": ""},
            "no ta",
        ),
    ],
)
def test_a_database_tool_refuses_in_words_and_changes_nothing(
    tmp_path: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    (file,) = inputs(LEDGER)
    (tmp_path / "in.db").write_bytes(file.data())
    (tmp_path / "text.db").write_text("no database" * 100)
    call_here(FAMILY.tools, ToolCall(tool="open-database", arguments={"file": "in.db"}), tmp_path)
    before = (tmp_path / ".store.db").read_bytes()
    code, output = call_here(FAMILY.tools, ToolCall(tool=tool, arguments=arguments), tmp_path)
    assert (code, output[: len(said)]) == (2, said)
    assert arguments.get("file") == "text.db" or (tmp_path / ".store.db").read_bytes() == before


def test_a_column_is_renamed_and_names_are_quoted(tmp_path: Path) -> None:
    name = 'a "b" c'
    (tmp_path / "in.db").write_bytes(inputs(LEDGER)[0].data())
    for tool, arguments in (
        ("open-database", {"file": "in.db"}),
        ("rename-column", {"table": "entry", "column": "code", "to": name}),
        ("add-column", {"table": "entry", "column": "x'y", "default": "it's"}),
    ):
        assert call_here(FAMILY.tools, ToolCall(tool=tool, arguments=arguments), tmp_path)[0] == 0
    with closing(sqlite3.connect(tmp_path / ".store.db")) as database:
        found = database.execute("""SELECT "a ""b"" c", "x'y" FROM entry""").fetchall()
    assert found[0] == ("c1", "it's")
