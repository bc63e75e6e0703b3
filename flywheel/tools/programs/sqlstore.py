"""Tools on an SQLite database, its working copy kept in `.store.db`. Runs inside a sandbox.

Literals are printed in backticks, as goals print them.
"""

import re
import shutil
import sqlite3
import sys
from contextlib import closing
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

STORE = ".store.db"
TIES = {"half-even": ROUND_HALF_EVEN, "half-up": ROUND_HALF_UP}
DATE = re.compile(r"(\d\d)-(\d\d)-(\d{4})")


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def quoted(name):
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value):
    """Quote a text for SQL."""
    return "'" + value.replace("'", "''") + "'"


def copy(source, to):
    """Copy a file, or refuse."""
    try:
        shutil.copyfile(source, to)
    except OSError as error:
        raise Refused(f"cannot copy `{source}` to `{to}`: {error.strerror}") from None


def columns(store, table):
    """Return the names of a table's columns; none where there is no such table."""
    return [row[1] for row in store.execute(f"PRAGMA table_info({quoted(table)})")]


def change(work, table, *names):
    """Do `work` on the working copy in one transaction, once the columns are known to be there."""
    if not Path(STORE).is_file():
        raise Refused("no database is open")
    with closing(sqlite3.connect(STORE, isolation_level=None)) as store, store:
        store.execute("PRAGMA synchronous = OFF")  # nobody needs a working copy after a crash
        store.execute("BEGIN")
        there = columns(store, table)
        if not there:
            raise Refused(f"no table `{table}`")
        for name in names:
            if name not in there:
                raise Refused(f"no column `{name}` in `{table}`")
        work(store)
    return "done"


def open_database(file):
    """Make a working copy and show tables with their columns and numbers of rows."""
    copy(file, STORE)
    with closing(sqlite3.connect(STORE)) as store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return "\n".join(shown(store, table) for (table,) in tables)


def shown(store, table):
    """Describe a table in one line."""
    (count,) = store.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()
    names = " ".join(f"`{name}`" for name in columns(store, table))
    return f"table `{table}`, {count} rows: {names}"


def drop_duplicates(table, column, keep):
    """Keep the row with the lowest or highest rowid of each value."""
    name, which = quoted(column), {"first": "min", "last": "max"}[keep]
    kept = f"SELECT {which}(rowid) FROM {quoted(table)} GROUP BY {name}"
    sql = f"DELETE FROM {quoted(table)} WHERE rowid NOT IN ({kept})"
    return change(lambda store: store.execute(sql), table, column)


def orphans(column, parent):
    """Return the SQL condition of rows whose value is none of the parent's."""
    name = quoted(column)
    return f"{name} IS NOT NULL AND {name} NOT IN (SELECT {name} FROM {quoted(parent)})"


def drop_orphans(table, column, parent):
    """Delete rows that refer to nothing."""
    change(lambda store: None, parent, column)
    sql = f"DELETE FROM {quoted(table)} WHERE {orphans(column, parent)}"
    return change(lambda store: store.execute(sql), table, column)


def attach_orphans(table, column, parent, value):
    """Make rows that refer to nothing refer to `value`."""
    change(lambda store: None, parent, column)
    sql = f"UPDATE {quoted(table)} SET {quoted(column)} = ? WHERE {orphans(column, parent)}"
    return change(lambda store: store.execute(sql, (value,)), table, column)


def cents(text, rounding):
    """Return a decimal text as whole cents."""
    try:
        value = Decimal(text) * 100
    except (InvalidOperation, TypeError):
        value = Decimal("NaN")
    if not value.is_finite():
        raise Refused(f"`{text}` is not a decimal number")
    return int(value.to_integral_value(rounding))


def to_cents(table, column, ties):
    """Put an INTEGER column of cents in place of a column of decimal texts."""
    name, fresh = quoted(column), quoted(f"{column} in cents")

    def work(store):
        rows = store.execute(f"SELECT rowid, {name} FROM {quoted(table)}").fetchall()
        store.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {fresh} INTEGER")
        store.executemany(
            f"UPDATE {quoted(table)} SET {fresh} = ? WHERE rowid = ?",
            [(cents(text, TIES[ties]), at) for at, text in rows if text is not None],
        )
        store.execute(f"ALTER TABLE {quoted(table)} DROP COLUMN {name}")
        store.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {fresh} TO {name}")

    return change(work, table, column)


def iso(text, first):
    """Return a date as year, month, day."""
    match = DATE.fullmatch(text if isinstance(text, str) else "")
    if not match:
        raise Refused(f"`{text}` is not a date like 05-11-2026")
    one, two, year = match.groups()
    return f"{year}-{two}-{one}" if first == "day" else f"{year}-{one}-{two}"


def to_iso_dates(table, column, first):
    """Rewrite the dates of a column."""
    name = quoted(column)

    def work(store):
        rows = store.execute(f"SELECT rowid, {name} FROM {quoted(table)}").fetchall()
        store.executemany(
            f"UPDATE {quoted(table)} SET {name} = ? WHERE rowid = ?",
            [(iso(text, first), at) for at, text in rows if text is not None],
        )

    return change(work, table, column)


def rename_column(table, column, to):
    """Give a column another name."""
    sql = f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(column)} TO {quoted(to)}"
    return change(lambda store: store.execute(sql), table, column)


def add_column(table, column, default):
    """Add a text column that is not null."""
    definition = f"{quoted(column)} TEXT NOT NULL DEFAULT {literal(default)}"
    sql = f"ALTER TABLE {quoted(table)} ADD COLUMN {definition}"
    return change(lambda store: store.execute(sql), table)


def add_unique_index(table, column):
    """Make the values of a column unique."""
    name = quoted(f"{table} {column}")
    sql = f"CREATE UNIQUE INDEX {name} ON {quoted(table)} ({quoted(column)})"
    return change(lambda store: store.execute(sql), table, column)


def save_database(file):
    """Save the working copy."""
    if not Path(STORE).is_file():
        raise Refused("no database is open")
    copy(STORE, file)
    return "written"


COMMANDS = {
    "open-database": open_database,
    "drop-duplicates": drop_duplicates,
    "drop-orphans": drop_orphans,
    "attach-orphans": attach_orphans,
    "to-cents": to_cents,
    "to-iso-dates": to_iso_dates,
    "rename-column": rename_column,
    "add-column": add_column,
    "add-unique-index": add_unique_index,
    "save-database": save_database,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except Refused as refusal:
        print(refusal)
        return 2
    except sqlite3.Error as error:
        print(f"the database says: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
