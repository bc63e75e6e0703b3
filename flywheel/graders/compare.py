"""Compares what an agent left behind with what was expected. Runs in the grader's sandbox.

    compare ARTIFACTS EXPECTED CHECK…

ARTIFACTS and EXPECTED are folders. EXPECTED/output holds one file, the right answer under its own
name; EXPECTED/inputs holds the files that must not have changed. Prints one line a check,
`name TAB pass|fail TAB evidence`, then `graded`; without that last line nothing was graded.
"""

import csv
import io
import json
import sys
from collections import Counter
from decimal import Decimal, InvalidOperation
from pathlib import Path

MAX_EVIDENCE = 200
PAIRS = "key and value"
"""Header of an artifact that maps keys to values: equal to no list of columns."""


class Unreadable(Exception):
    """The artifact can't be read as its format: every check on its content fails."""


def cell(value):
    """Return a cell as a number where it is one, so that 7 and 7.0 are equal."""
    text = str(value).strip()
    try:
        parsed = Decimal(text)
    except InvalidOperation:
        return text
    return parsed if parsed.is_finite() else text


def read_csv(text):
    """Return the columns and the rows of CSV text."""
    header, *rows = [row for row in csv.reader(io.StringIO(text)) if row] or [[]]
    return header, [tuple(cell(value) for value in row) for row in rows]


def read_json(text):
    """Return the columns and the rows of a list of like objects, or the pairs of one object."""
    document = json.loads(text)
    if isinstance(document, dict):
        return PAIRS, [(key, cell(value)) for key, value in document.items()]
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise Unreadable("neither an object nor a list of objects")
    header = sorted(document[0]) if document else []  # an object's keys have no order
    if any(row.keys() != document[0].keys() for row in document):
        raise Unreadable("objects with different keys")
    return header, [tuple(cell(row[key]) for key in header) for row in document]


def read_env(text):
    """Return the pairs of lines KEY=value."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not all("=" in line for line in lines):
        raise Unreadable("a line has no '='")
    pairs = [line.split("=", 1) for line in lines]
    return PAIRS, [(key, cell(value)) for key, value in pairs]


READERS = {".csv": read_csv, ".json": read_json, ".env": read_env}


def parse(path, read):
    """Return header and rows of a file."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return read(stream.read())
    except (ValueError, RecursionError, csv.Error) as error:
        raise Unreadable(str(error)) from None


def reader_of(answer):
    """Return what reads the right answer: JSON, where its name says another format than it has."""
    try:
        parse(answer, READERS[answer.suffix])
    except Unreadable:
        return read_json
    return READERS[answer.suffix]


def changed_names(folder, artifacts):
    """Return the names in `folder` whose copy in `artifacts` differs or is absent."""
    changed = []
    for want in sorted(folder.iterdir()):
        try:
            equal = want.read_bytes() == (artifacts / want.name).read_bytes()
        except OSError:
            equal = False
        if not equal:
            changed.append(want.name)
    return changed


def judge(artifacts, expected):
    """Return check name → (passed, evidence)."""
    changed = changed_names(expected / "inputs", artifacts)
    results = {"input-unchanged": (not changed, f"changed: {changed}" if changed else "same bytes")}
    (answer,) = (expected / "output").iterdir()
    artifact = artifacts / answer.name
    if artifact.is_symlink() or not artifact.is_file():
        absent = (False, "no output file")
        return results | dict.fromkeys(("exists", "columns", "rows", "order"), absent)
    results["exists"] = (True, answer.name)
    read = reader_of(answer)
    want_header, want = parse(answer, read)
    try:
        header, rows = parse(artifact, read)
    except Unreadable as error:
        unreadable = (False, f"unreadable: {error}")
        return results | dict.fromkeys(("columns", "rows", "order"), unreadable)
    results["columns"] = (header == want_header, f"{header!r}")
    extra, missing = difference(rows, want), difference(want, rows)
    evidence = f"{len(missing)} missing, {len(extra)} unexpected of {len(want)}"
    results["rows"] = (not extra and not missing, evidence)
    results["order"] = (rows == want, "as asked" if rows == want else "another order or rows")
    return results


def difference(left, right):
    """Return the rows of `left` that `right` lacks, counting repeats."""
    return list((Counter(left) - Counter(right)).elements())


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
