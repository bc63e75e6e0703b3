"""The database grader: every form of a right answer passes, each damage fails its own check."""

import io
import sqlite3
from contextlib import closing, redirect_stdout
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

grader = import_module("flywheel.graders.database")
CHECKS = ("input-unchanged", "exists", "tables", "columns", "keys", "rows")
SCHEMA = """
CREATE TABLE account (name TEXT PRIMARY KEY, town TEXT);
CREATE TABLE entry (code TEXT, amount INTEGER, state TEXT NOT NULL DEFAULT 'open');
CREATE UNIQUE INDEX only_code ON entry (code);
INSERT INTO account VALUES ('ann', 'rome'), ('bob', NULL);
INSERT INTO entry VALUES ('c1', 7, 'open'), ('c2', -3, 'shut'), ('c3', NULL, 'open');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "expected" / "inputs").mkdir(parents=True)
    (tmp_path / "expected" / "output").mkdir()
    (tmp_path / "artifacts").mkdir()
    for place in ("expected/inputs", "artifacts"):
        (tmp_path / place / "in.db").write_bytes(b"input")
    make(tmp_path / "expected" / "output" / "out.db", SCHEMA)
    return tmp_path


def make(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
        database.commit()


def lines_of(folder: Path) -> list[str]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = grader.main([str(folder / "artifacts"), str(folder / "expected"), *CHECKS])
    *lines, last = printed.getvalue().splitlines()
    assert (code, last, len(lines)) == (0, "graded", len(CHECKS))
    return lines


def failed(folder: Path) -> set[str]:
    """The checks that the artifact fails."""
    results = [line.split("\t") for line in lines_of(folder)]
    assert tuple(name for name, _, _ in results) == CHECKS
    return {name for name, word, _ in results if word != "pass"}


def graded(folder: Path, script: str) -> set[str]:
    make(folder / "artifacts" / "out.db", script)
    return failed(folder)


@pytest.mark.parametrize(
    "script",
    [
        SCHEMA,
        "PRAGMA page_size = 512; PRAGMA encoding = 'UTF-16';" + SCHEMA,
        "PRAGMA journal_mode = WAL;" + SCHEMA,
        SCHEMA.replace("code TEXT, amount INTEGER", "amount BIGINT, code VARCHAR(9) UNIQUE"),
        SCHEMA.replace("CREATE UNIQUE INDEX only_code ON entry (code);", "").replace(
            "code TEXT", "code TEXT PRIMARY KEY"
        ),
        SCHEMA.replace("DEFAULT 'open'", "DEFAULT (('open'))"),
        SCHEMA.replace("'c1', 7,", "'c1', 7.0,"),
        SCHEMA + "CREATE INDEX by_town ON account (town);",
    ],
    ids=["same", "pages", "wal", "types", "primary-key", "default", "float", "index"],
)
def test_every_form_of_the_right_database_passes(folder: Path, script: str) -> None:
    script = script.replace(
        "INSERT INTO entry VALUES", "INSERT INTO entry (code, amount, state) VALUES"
    )
    assert graded(folder, script) == set()


@pytest.mark.parametrize(
    ("damage", "checks"),
    [
        ("CREATE TABLE more (x);", {"tables", "columns", "keys", "rows"}),
        ("DROP TABLE account;", {"tables", "columns", "keys", "rows"}),
        ("CREATE VIEW seen AS SELECT 1;", {"tables"}),
        ("CREATE TRIGGER t AFTER INSERT ON entry BEGIN SELECT 1; END;", {"tables"}),
        ("ALTER TABLE account RENAME COLUMN town TO city;", {"columns", "rows"}),
        ("ALTER TABLE account DROP COLUMN town;", {"columns", "rows"}),
        ("DROP INDEX only_code;", {"keys"}),
        ("CREATE UNIQUE INDEX more ON account (town);", {"keys"}),
        ("DELETE FROM entry WHERE code = 'c2';", {"rows"}),
        ("INSERT INTO entry VALUES ('c4', 1, 'open');", {"rows"}),
        ("UPDATE entry SET amount = 8 WHERE code = 'c1';", {"rows"}),
        ("UPDATE entry SET amount = 0 WHERE code = 'c3';", {"rows"}),
        ("UPDATE entry SET state = x'6f70656e';", {"rows"}),
        ("UPDATE entry SET state = 'open ';", {"rows"}),
        ("UPDATE account SET town = '' WHERE town IS NULL;", {"rows"}),
    ],
)
def test_a_damage_fails_the_checks_that_look_at_it(
    folder: Path, damage: str, checks: set[str]
) -> None:
    assert graded(folder, SCHEMA + damage) == checks


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        ("amount INTEGER", "amount TEXT", {"columns", "rows"}),
        ("amount INTEGER", "amount REAL", {"columns"}),
        ("town TEXT", "town TEXT NOT NULL DEFAULT ''", {"columns", "rows"}),
        ("amount INTEGER", "amount INTEGER DEFAULT 0", {"columns"}),
        ("NOT NULL DEFAULT 'open'", "DEFAULT 'open'", {"columns"}),
        ("DEFAULT 'open'", "DEFAULT 'shut'", {"columns"}),
        ("ON entry (code)", "ON entry (code) WHERE code <> 'c9'", {"keys"}),
        ("ON entry (code)", "ON entry (code, amount)", {"keys"}),
        ("ON entry (code)", "ON entry (code COLLATE NOCASE)", {"keys"}),
        ("ON entry (code)", "ON entry (lower(code))", {"keys"}),
        ("UNIQUE INDEX", "INDEX", {"keys"}),
    ],
)
def test_a_wrong_schema_fails_the_checks_that_look_at_it(
    folder: Path, old: str, new: str, checks: set[str]
) -> None:
    script = SCHEMA.replace(old, new)
    if "town TEXT NOT NULL" in new:
        script = script.replace("('bob', NULL)", "('bob', '')")
    assert script != SCHEMA
    assert graded(folder, script) == checks


def test_a_changed_or_missing_input_fails_that_check_alone(folder: Path) -> None:
    make(folder / "artifacts" / "out.db", SCHEMA)
    (folder / "artifacts" / "in.db").write_bytes(b"other")
    assert failed(folder) == {"input-unchanged"}
    (folder / "artifacts" / "in.db").unlink()
    assert failed(folder) == {"input-unchanged"}


ABSENT = set(CHECKS) - {"input-unchanged"}


def test_without_a_database_every_check_on_it_fails(folder: Path) -> None:
    assert failed(folder) == ABSENT
    (folder / "artifacts" / "out.db").symlink_to(folder / "expected" / "output" / "out.db")
    assert failed(folder) == ABSENT
    (folder / "artifacts" / "out.db").unlink()
    (folder / "artifacts" / "out.db").mkdir()
    assert failed(folder) == ABSENT


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=2000))
def test_bytes_that_are_no_database_are_never_taken_for_one(data: bytes) -> None:
    with TemporaryDirectory() as name:
        path = Path(name) / "out.db"
        path.write_bytes(data)
        try:
            names, tables = grader.read(path)
        except grader.Unreadable:
            return
        assert (names, tables) == (set(), {})


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_damaged_file_is_unreadable_or_read_and_never_brings_the_grader_down(
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as name:
        path = Path(name) / "out.db"
        make(path, SCHEMA)
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 20))):
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(whole[: data.draw(st.integers(100, len(whole)))])
        try:
            names, _ = grader.read(path)
        except grader.Unreadable:
            return
        assert isinstance(names, set)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE entry (code TEXT, amount INTEGER AS (length(code)), state TEXT);",
        "CREATE TABLE flood (x); INSERT INTO flood WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n;",
        "CREATE VIRTUAL TABLE entry USING rtree(id, low, high);",
        "CREATE TABLE entry (code); CREATE UNIQUE INDEX only ON entry (code);"
        "INSERT INTO entry VALUES (1); PRAGMA writable_schema = ON;"
        "CREATE TEMP TABLE kept AS SELECT * FROM sqlite_master WHERE name = 'only';"
        "DELETE FROM sqlite_master WHERE name = 'only'; PRAGMA writable_schema = RESET;"
        "INSERT INTO entry VALUES (1); PRAGMA writable_schema = ON;"
        "INSERT INTO sqlite_master SELECT * FROM kept;",
        "CREATE TABLE entry (code); PRAGMA writable_schema = ON; "
        "UPDATE sqlite_master SET sql = 'CREATE TABLE entry (code';",
        "CREATE TABLE entry (code); PRAGMA writable_schema = ON; "
        "UPDATE sqlite_master SET rootpage = 1;",
    ],
    ids=["generated", "flood", "virtual", "not unique", "malformed", "shared-root"],
)
def test_a_database_of_other_than_ordinary_tables_is_unreadable(folder: Path, script: str) -> None:
    make(folder / "artifacts" / "out.db", script)
    (line,) = (line for line in lines_of(folder) if line.startswith("exists"))
    assert line.startswith("exists\tfail\tno readable database")
    assert failed(folder) == ABSENT


def test_no_view_trigger_or_constraint_of_a_hostile_schema_runs(folder: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    make(
        folder / "artifacts" / "out.db",
        SCHEMA + f"CREATE VIEW endless AS {endless}; CREATE TABLE heavy (x DEFAULT 1);"
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
        "'CREATE TABLE heavy (x CHECK (length(hex(randomblob(100000000))) < 0))' "
        "WHERE name = 'heavy'; PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = 1;"
        "INSERT INTO heavy VALUES (1);",
    )
    assert failed(folder) == {"tables", "columns", "keys", "rows"}


def test_work_beyond_the_allowance_is_stopped(tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    with closing(sqlite3.connect(tmp_path / "any.db")) as database:
        grader.limited(database)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            database.execute(endless).fetchall()


def test_names_and_texts_that_an_agent_chose_stay_on_one_line(folder: Path) -> None:
    make(folder / "artifacts" / "out.db", 'CREATE TABLE "a\n\tinput-unchanged\tpass\r\x1b" (x);')
    assert failed(folder) == {"tables", "columns", "keys", "rows"}
    make(
        folder / "artifacts" / "out.db",
        "CREATE TABLE bytes (x TEXT); INSERT INTO bytes VALUES (CAST(x'ff00' AS TEXT));",
    )
    assert "rows" in failed(folder)
