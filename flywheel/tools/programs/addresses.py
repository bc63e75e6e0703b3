"""Tools on lists of contacts, kept in `.contacts.json` between calls. Runs inside a sandbox.

What is kept are the columns and groups of rows: a row that nothing matches is a group of its own.
Literals are printed in backticks, as goals print them.
"""

import csv
import json
import sys
from pathlib import Path

STATE = ".contacts.json"
COMPARED = {
    "text": str,
    "text-in-any-case": str.casefold,
    "digits": lambda text: "".join(filter(str.isdigit, text)),
}


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def open_text(path, mode="r"):
    """Open a workspace file, or refuse."""
    try:
        return Path(path).open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"cannot open `{path}`: {error.strerror}") from None


def load():
    """Return the columns and the groups."""
    try:
        state = json.loads(Path(STATE).read_text("utf-8"))
        return state["columns"], state["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused("no contacts are loaded") from None


def save(columns, groups):
    """Keep the groups that have a row left for the next call."""
    kept = [group for group in groups if group]
    with open_text(STATE, "w") as stream:
        json.dump({"columns": columns, "groups": kept}, stream)
    return "done"


def position(columns, column):
    """Return a column's position, or refuse."""
    if column not in columns:
        raise Refused(f"no column `{column}`")
    return columns.index(column)


def parse(path):
    """Return the columns and the rows of a CSV file, or of a JSON list of like objects."""
    with open_text(path) as stream:
        try:
            if not path.endswith(".json"):
                columns, *rows = [row for row in csv.reader(stream) if row]
                return columns, rows
            records = json.load(stream)
            columns = list(records[0])
            return columns, [[cell(record[name]) for name in columns] for record in records]
        except (ValueError, TypeError, LookupError, RecursionError, csv.Error):
            raise Refused(f"`{path}` holds no rows") from None


def cell(value):
    """Return a JSON value as a cell; null is empty."""
    return "" if value is None else str(value)


def rows_of(path):
    """Return the columns and the rows of a file, or refuse where they don't fit each other."""
    columns, rows = parse(path)
    if any(len(row) != len(columns) for row in rows):
        raise Refused(f"`{path}` has rows of different lengths")
    return columns, rows


def read_contacts(file):
    """Load a file's rows."""
    columns, rows = rows_of(file)
    save(columns, [[row] for row in rows])
    return f"columns {' '.join(f'`{name}`' for name in columns)}"


def add_contacts(file):
    """Add a file's rows below those that are loaded, column by column."""
    columns, groups = load()
    names, rows = rows_of(file)
    folded = [name.casefold() for name in names]
    if sorted(folded) != sorted(name.casefold() for name in columns):
        raise Refused(f"`{file}` has other columns")
    order = [folded.index(name.casefold()) for name in columns]
    save(columns, [*groups, *([[row[at] for at in order]] for row in rows)])
    return f"columns {' '.join(f'`{name}`' for name in names)}"


def drop_without(column):
    """Drop the rows whose cell is empty."""
    columns, groups = load()
    at = position(columns, column)
    return save(columns, [[row for row in group if row[at]] for group in groups])


def match_contacts(column, compare):
    """Group the rows with the same cell where the first of them stands; empty ones stay apart."""
    columns, groups = load()
    at = position(columns, column)
    found = {}
    for number, row in enumerate(row for group in groups for row in group):
        found.setdefault(COMPARED[compare](row[at]) or number, []).append(row)
    return save(columns, list(found.values()))


def prefer(column, date):
    """Put the row with the latest or earliest date (YYYY-MM-DD) of each group first."""
    columns, groups = load()
    at = position(columns, column)
    late = date == "latest"
    return save(columns, [sorted(g, key=lambda row: row[at], reverse=late) for g in groups])


def fill_gaps():
    """Fill what is empty in the first row of each group from its other rows."""
    columns, groups = load()
    filled = [
        [[next(filter(None, cells), "") for cells in zip(*group, strict=True)], *group[1:]]
        for group in groups
    ]
    return save(columns, filled)


def keep_contacts(which):
    """Keep the groups of several rows, or those of one."""
    columns, groups = load()
    return save(columns, [group for group in groups if (len(group) > 1) == (which == "matched")])


def unite():
    """Keep the first row of each group."""
    columns, groups = load()
    return save(columns, [group[:1] for group in groups])


def sort_contacts(column, then):
    """Sort the groups by two cells of their first rows; equal ones stay in their order."""
    columns, groups = load()
    first, second = position(columns, column), position(columns, then)
    return save(columns, sorted(groups, key=lambda group: (group[0][first], group[0][second])))


def write_contacts(file):
    """Save all rows as CSV."""
    columns, groups = load()
    with open_text(file, "w") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([columns, *(row for group in groups for row in group)])
    return "written"


COMMANDS = {
    "read-contacts": read_contacts,
    "add-contacts": add_contacts,
    "drop-without": drop_without,
    "match-contacts": match_contacts,
    "prefer": prefer,
    "fill-gaps": fill_gaps,
    "keep-contacts": keep_contacts,
    "unite": unite,
    "sort-contacts": sort_contacts,
    "write-contacts": write_contacts,
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
