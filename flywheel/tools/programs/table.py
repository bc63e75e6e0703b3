"""Tools on one table, kept in `.table.csv` between calls. Runs inside a sandbox.

Literals are printed in backticks, as goals print them.
"""

import csv
import json
import sys
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

TABLE = ".table.csv"
TIES = {"half-even": ROUND_HALF_EVEN, "half-up": ROUND_HALF_UP}


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def number(text):
    """Return a cell as a number; an empty cell counts as zero."""
    try:
        value = Decimal(text or "0")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise Refused(f"`{text}` is not a number")
    return value


def plain(value):
    """Print a number without exponent or trailing zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def open_text(path, mode="r"):
    """Open a workspace file, or refuse."""
    try:
        return Path(path).open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"cannot open `{path}`: {error.strerror}") from None


def load():
    """Return the table as header and rows."""
    try:
        with Path(TABLE).open(encoding="utf-8", newline="") as stream:
            header, *rows = list(csv.reader(stream))
    except (OSError, ValueError):
        raise Refused("no table is loaded") from None
    return header, rows


def save(header, rows):
    """Keep the table for the next call."""
    with open_text(TABLE, "w") as stream:
        csv.writer(stream).writerows([header, *rows])


def position(header, column):
    """Return a column's position, or refuse."""
    if column not in header:
        raise Refused(f"no column `{column}`")
    return header.index(column)


def loaded(header, rows):
    """Save a fresh table and say what it holds."""
    save(header, rows)
    return f"columns {' '.join(f'`{name}`' for name in header)}"


def read_csv(file):
    """Load a CSV file as the table."""
    with open_text(file) as stream:
        table = [row for row in csv.reader(stream) if row]
    if not table:
        raise Refused(f"`{file}` is empty")
    if any(len(row) != len(table[0]) for row in table):
        raise Refused(f"`{file}` has rows of different lengths")
    return loaded(table[0], table[1:])


def read_log(file):
    """Load a log as the table: a column a field, in order of first appearance, empty if absent."""
    with open_text(file) as stream:
        records = [dict(f.split("=", 1) for f in line.split() if "=" in f) for line in stream]
    records = [record for record in records if record]
    if not records:
        raise Refused(f"`{file}` holds no key=value fields")
    header = list(dict.fromkeys(name for record in records for name in record))
    return loaded(header, [[record.get(name, "") for name in header] for record in records])


def narrow(test, column):
    """Keep the rows whose cell in `column` passes."""
    header, rows = load()
    at = position(header, column)
    save(header, [row for row in rows if test(row[at])])
    return "done"


def drop_missing(column):
    """Drop the rows whose cell is empty."""
    return narrow(lambda cell: cell != "", column)


def keep_equal(column, value):
    """Keep the rows whose cell is `value`."""
    return narrow(lambda cell: cell == value, column)


def drop_equal(column, value):
    """Drop the rows whose cell is `value`."""
    return narrow(lambda cell: cell != value, column)


def keep_at_least(column, value):
    """Keep the rows whose cell, a number, is `value` or more."""
    least = number(value)
    return narrow(lambda cell: number(cell) >= least, column)


def deduplicate(column, keep):
    """Keep the first or last row of each value of `column`, where it stands."""
    header, rows = load()
    at = position(header, column)
    ordered = rows if keep == "first" else rows[::-1]
    seen = {}
    for row in ordered:
        seen.setdefault(row[at], row)
    kept = list(seen.values())
    save(header, kept if keep == "first" else kept[::-1])
    return "done"


def round_column(column, ties):
    """Round the cells of `column` that are not empty to whole numbers."""
    header, rows = load()
    at = position(header, column)
    for row in rows:
        if row[at]:
            row[at] = plain(number(row[at]).quantize(Decimal(1), rounding=TIES[ties]))
    save(header, rows)
    return "done"


def grouped(by):
    """Return the header and the rows of each group, by name."""
    header, rows = load()
    at = position(header, by)
    groups = {}
    for row in rows:
        groups.setdefault(row[at], []).append(row)
    return header, dict(sorted(groups.items()))


def summarise(by, column):
    """Replace the table by the groups with their number of rows and total of `column`."""
    header, groups = grouped(by)
    at = position(header, column)
    rows = [
        [name, str(len(members)), plain(sum((number(row[at]) for row in members), Decimal(0)))]
        for name, members in groups.items()
    ]
    save([by, "count", "total"], rows)
    return "done"


def count(by):
    """Replace the table by the groups with their number of rows."""
    _, groups = grouped(by)
    save([by, "count"], [[name, str(len(members))] for name, members in groups.items()])
    return "done"


def sort(order):
    """Sort by the last column, a number; equal ones by the first column, rising."""
    header, rows = load()
    rows.sort(key=lambda row: row[0])
    rows.sort(key=lambda row: number(row[-1]), reverse=order == "descending")
    save(header, rows)
    return "done"


def write_csv(file):
    """Save the table as CSV."""
    header, rows = load()
    with open_text(file, "w") as stream:
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
    return "written"


def write_json(file):
    """Save the table as a JSON list of objects, one a row."""
    header, rows = load()
    with open_text(file, "w") as stream:
        json.dump([dict(zip(header, row, strict=True)) for row in rows], stream, indent=1)
    return "written"


COMMANDS = {
    "read-csv": read_csv,
    "read-log": read_log,
    "deduplicate": deduplicate,
    "drop-missing": drop_missing,
    "keep-equal": keep_equal,
    "drop-equal": drop_equal,
    "keep-at-least": keep_at_least,
    "round": round_column,
    "summarise": summarise,
    "count": count,
    "sort": sort,
    "write-csv": write_csv,
    "write-json": write_json,
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
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
