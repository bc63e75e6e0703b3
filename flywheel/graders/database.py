"""Compares an SQLite database with the right one. Runs in the grader's sandbox.

    database ARTIFACTS EXPECTED CHECK…

ARTIFACTS and EXPECTED are folders. EXPECTED/output holds one file, the right database under its own
name; EXPECTED/inputs holds the files that must not have changed.

Checks:
    input-unchanged  every file of EXPECTED/inputs is there with the same bytes
    exists           there is a database: a regular file, sound, of ordinary tables
    tables           it has the same tables, views and triggers
    columns          tables have columns of the same names, type affinities, nullability and
                     defaults, in any order
    keys             the same sets of columns are unique, by a primary key or an index
    rows             the same rows, in any order: 7 and 7.0 are equal, 7 and '7' are not

Other indexes, collations of columns, CHECK constraints and foreign keys are not compared.

The file is hostile: it is opened read-only, no function or extension that its schema names can
run, and the work on it is bounded. Prints one line a check, `name TAB pass|fail TAB evidence`, then
`graded`; without that last line nothing was graded.
"""

import re
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

MAX_EVIDENCE = 200
MAX_BYTES = 16 * 1024 * 1024
MAX_ROWS = 10_000
MAX_OBJECTS = 100
PRAGMAS = ("trusted_schema = OFF", "ignore_check_constraints = ON", "cell_size_check = ON")
STEPS = 1_000
"""Instructions of SQLite's machine between two looks at what is left of the allowance."""
ALLOWANCE = 20_000
"""Looks for one database."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class Unreadable(Exception):
    """The file is no sound database of ordinary tables: every check on it fails."""


class Table:
    """What counts of a table: columns, unique sets of columns, rows."""

    def __init__(self, database, name):
        self.columns, self.keys = {}, set()
        listed = database.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        for _, column, declared, required, default, _, hidden in listed:
            if hidden:
                raise Unreadable(f"{name}.{column} is a hidden or generated column")
            self.columns[column] = (affinity(declared), bool(required), default_of(default))
        primary = frozenset(row[1] for row in listed if row[5])
        self.keys = {primary} - {frozenset()} | unique_sets(database, name)
        self.rows = rows_of(database, name, sorted(self.columns))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def affinity(declared):
    """Return a declared type's affinity (https://sqlite.org/datatype3.html, section 3.1)."""
    name = (declared or "").upper()
    if "INT" in name:
        return "integer"
    if any(word in name for word in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if "BLOB" in name or not name:
        return "blob"
    return "real" if any(word in name for word in ("REAL", "FLOA", "DOUB")) else "numeric"


def default_of(expression):
    """Return a default's value where it is a literal, else its text."""
    text = (expression or "null").strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return ("text", text[1:-1].replace(text[0] * 2, text[0]))
    if NUMBER.fullmatch(text):
        return ("number", float(text))
    return (text.casefold(),)


def unique_sets(database, name):
    """Return the sets of columns that an index over all rows keeps unique."""
    found = set()
    for _, index, unique, _, partial in database.execute(f"PRAGMA index_list({quoted(name)})"):
        if unique and not partial:
            listed = database.execute(f"PRAGMA index_xinfo({quoted(index)})").fetchall()
            keys = [(column, order) for _, _, column, _, order, key in listed if key]
            if all(column is not None and order == "BINARY" for column, order in keys):
                found.add(frozenset(column for column, _ in keys))
    return found


def rows_of(database, name, columns):
    """Return how often each row is there, as column values in the order of `columns`."""
    chosen = ", ".join(map(quoted, columns))
    found = database.execute(f"SELECT {chosen} FROM {quoted(name)}").fetchmany(MAX_ROWS + 1)
    if len(found) > MAX_ROWS:
        raise Unreadable(f"{name} has more than {MAX_ROWS} rows")
    return Counter(found)


def text(data):
    """Decode a text; bytes that are no UTF-8 stay apart from any right answer."""
    return data.decode("utf-8", "surrogateescape")


def limited(database):
    """Stop whatever takes more than the allowance."""
    left = iter(range(ALLOWANCE))
    database.set_progress_handler(lambda: next(left, None) is None, STEPS)


def read(path):
    """Return (names of objects, name → Table) of a database file."""
    if path.is_symlink() or not path.is_file():
        raise Unreadable("no such file")
    if path.stat().st_size > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES} bytes")
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.text_factory = text
            limited(database)
            for pragma in PRAGMAS:
                database.execute(f"PRAGMA {pragma}")
            return contents(database)
    except (sqlite3.Error, MemoryError, OverflowError, UnicodeError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None


def contents(database):
    """Return what counts of an open database."""
    listed = database.execute(
        "SELECT type, name, rootpage FROM sqlite_master "
        "WHERE type <> 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchmany(MAX_OBJECTS + 1)
    if len(listed) > MAX_OBJECTS or any(kind == "table" and not page for kind, _, page in listed):
        raise Unreadable("too many objects, or a virtual table")
    if database.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise Unreadable("corrupt")
    names = {(kind, name) for kind, name, _ in listed}
    return names, {name: Table(database, name) for kind, name in names if kind == "table"}


def changed_names(folder, artifacts):
    """Return the files in `folder` whose copy in `artifacts` differs or is absent."""
    changed = []
    for want in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = want.relative_to(folder).as_posix()
        got = artifacts / name
        if got.is_symlink() or not got.is_file() or got.read_bytes() != want.read_bytes():
            changed.append(name)
    return changed


def compared(left, right, part):
    """Return (passed, evidence) of one part of all tables."""
    names = sorted(left.keys() | right.keys())
    wrong = [
        name
        for name in names
        if name not in left
        or name not in right
        or getattr(left[name], part) != getattr(right[name], part)
    ]
    return not wrong, f"other {part}: {', '.join(wrong)}" if wrong else f"{part} as asked"


def judge(artifacts, expected):
    """Return check name → (passed, evidence)."""
    changed = changed_names(expected / "inputs", artifacts)
    results = {"input-unchanged": (not changed, f"changed: {changed}" if changed else "same bytes")}
    (answer,) = (expected / "output").iterdir()
    want_names, want = read(answer)
    try:
        names, tables = read(artifacts / answer.name)
    except Unreadable as error:
        absent = (False, f"no readable database: {error}")
        return results | dict.fromkeys(("exists", "tables", "columns", "keys", "rows"), absent)
    results["exists"] = (True, answer.name)
    results["tables"] = (names == want_names, f"{sorted(names)!r}")
    for part in ("columns", "keys", "rows"):
        results[part] = compared(tables, want, part)
    return results


def main(argv):
    """Grade one set of artifacts; see the module's docstring."""
    artifacts, expected, *checks = argv
    results = judge(Path(artifacts), Path(expected))
    for check in checks:
        passed, evidence = results[check]
        shown = evidence.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
        print(f"{check}\t{'pass' if passed else 'fail'}\t{shown}")
    print("graded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
