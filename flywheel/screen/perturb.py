"""Wrong answers made from a right one, whatever the task: a good grader fails each of them.

Each is a right set of artifacts with one thing broken: the shape kept and a value changed, a
constant in place of an answer, an old state, an answer written elsewhere, a protected input
modified.
"""

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from flywheel.screen.lint import artifacts_written
from schemas.file import File
from schemas.task import TaskManifest

Artifacts = tuple[File, ...]
CODE_GRADERS = frozenset({"harbor", "tests"})
"""Graders of other people's tasks: what a small edit does to an answer is not known there."""
MOST_FILES = 3
"""Files of a folder that are edited: the grader treats all of them alike."""
REVERSED = "rows-reversed"
"""Wrong only where the order counts."""
_NUMBER = re.compile(r"\d(?=\D*$)")


def perturb(task: TaskManifest, right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    """Yield wrong sets of artifacts by name.

    Args:
        task: names the protected inputs and the grader.
        right: what a right solution left behind.
    """
    protected = set(task.sealed.grader.protected)
    made = [file for file in artifacts_written(task, right) if file.path not in protected]
    initial = {file.path: file for file in task.brief.environment.files}
    for file in made[:MOST_FILES]:
        yield f"constant:{file.path}", _replaced(right, file, _with(file, b"42\n"))
        yield f"emptied:{file.path}", _replaced(right, file, _with(file, b""))
        yield f"elsewhere:{file.path}", _replaced(right, file, None)
        if file.path in initial:
            yield f"stale:{file.path}", _replaced(right, file, initial[file.path])
        if _edits_count(task):
            for name, data in _edited(file):
                if name != REVERSED or "order" in task.sealed.grader.checks:
                    yield f"{name}:{file.path}", _replaced(right, file, _with(file, data))
    for path in protected:
        (input_file,) = (file for file in right if file.path == path)
        changed = _with(input_file, input_file.data() + b"\n")
        yield f"input-modified:{path}", _replaced(right, input_file, changed)
        yield f"input-removed:{path}", _replaced(right, input_file, None)
    if "modes" in task.sealed.grader.checks:
        yield from _other_modes(right)
    if "paths" in task.sealed.grader.checks and right:
        stray = File(path=f"{right[0].path}.bak", content="stray\n")
        yield "stray-file", (*right, stray)


def _edits_count(task: TaskManifest) -> bool:
    """Tell whether the bytes of an artifact are the answer, and not a program that gives it."""
    grader = task.sealed.grader
    return not grader.exercises and grader.program not in CODE_GRADERS


def _replaced(right: Artifacts, old: File, new: File | None) -> Artifacts:
    others = ((new if file is old else file) for file in right)
    return tuple(file for file in others if file is not None)


def _with(file: File, data: bytes) -> File:
    return File.of(file.path, data, file.mode)


def _other_modes(right: Artifacts) -> Iterator[tuple[str, Artifacts]]:
    for file in right[:1]:
        other = File.of(file.path, file.data(), file.mode ^ 0o002)
        yield f"other-mode:{file.path}", _replaced(right, file, other)


def _edited(file: File) -> Iterator[tuple[str, bytes]]:
    """Yield edits by the file's format; the shape stays right."""
    data = file.data()
    if data.startswith(b"SQLite format 3\0"):
        yield from _edited_database(data)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        yield "cut", data[: len(data) // 2]
        return
    suffix = file.path.rpartition(".")[2]
    yield from _FORMATS.get(suffix, _edited_text)(text)


def _edited_csv(text: str) -> Iterator[tuple[str, bytes]]:
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    if len(rows) < 2:
        return
    header, *body = rows
    yield "row-dropped", _csv([header, *body[:-1]])
    yield "row-repeated", _csv([header, *body, body[-1]])
    yield "value-changed", _csv([header, *body[:-1], [*body[-1][:-1], str(_bumped(body[-1][-1]))]])
    yield "column-renamed", _csv([[f"{header[0]}x", *header[1:]], *body])
    if len(body) > 1:
        yield REVERSED, _csv([header, *body[::-1]])


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _edited_json(text: str) -> Iterator[tuple[str, bytes]]:
    document = json.loads(text)
    if isinstance(document, dict) and document:
        last = next(reversed(document))
        rest = {key: value for key, value in document.items() if key != last}
        yield "key-dropped", _json(rest)
        yield "value-changed", _json(rest | {last: _bumped(document[last])})
        yield "key-renamed", _json(rest | {f"{last}x": document[last]})
        yield "wrapped", _json([document])
    elif isinstance(document, list) and document and isinstance(document[-1], dict):
        *others, row = document
        last = next(reversed(row))
        yield "row-dropped", _json(others)
        yield "row-repeated", _json([*document, row])
        yield "value-changed", _json([*others, row | {last: _bumped(row[last])}])
        yield "column-renamed", _json([{f"{k}x": v for k, v in item.items()} for item in document])
        if len(document) > 1:
            yield REVERSED, _json(document[::-1])


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _edited_lines(text: str) -> Iterator[tuple[str, bytes]]:
    lines = text.splitlines(keepends=True)
    yield "line-dropped", "".join(lines[:-1]).encode()
    if lines and "=" in lines[-1]:
        key, _, value = lines[-1].rstrip("\n").partition("=")
        yield "value-changed", "".join([*lines[:-1], f"{key}={_bumped(value)}\n"]).encode()
        yield "key-renamed", "".join([*lines[:-1], f"{key}X={value}\n"]).encode()


def _edited_text(text: str) -> Iterator[tuple[str, bytes]]:
    lines = text.splitlines(keepends=True)
    yield "line-dropped", "".join(lines[:-1]).encode()
    yield "line-repeated", "".join([*lines, *lines[-1:]]).encode()
    middle = len(text) // 2
    letter = "x" if text[middle : middle + 1] != "x" else "y"
    yield "letter-changed", (text[:middle] + letter + text[middle + 1 :]).encode()


def _bumped(value: object) -> object:
    """Return another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    if _NUMBER.search(text):
        return _NUMBER.sub(lambda match: str((int(match[0]) + 1) % 10), text)
    return f"{text}x"


def _edited_database(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Delete a row, or change a value, in the first table that has one."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        names = [
            row[0]
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        filled = [n for n in names if database.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0]]
        if not filled:
            return
        table = filled[0]
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    for name, statement in (
        ("row-dropped", f'DELETE FROM "{table}" WHERE rowid = (SELECT max(rowid) FROM "{table}")'),
        (
            "value-changed",
            f'UPDATE "{table}" SET "{columns[-1]}" = 987654321 '
            f'WHERE rowid = (SELECT max(rowid) FROM "{table}")',
        ),
        ("table-renamed", f'ALTER TABLE "{table}" RENAME TO "{table}_x"'),
        ("column-renamed", f'ALTER TABLE "{table}" RENAME COLUMN "{columns[-1]}" TO "x_x"'),
        ("keys-dropped", f'CREATE TABLE x_x AS SELECT * FROM "{table}"'),
    ):
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(data)
            database.execute(statement)
            if name == "keys-dropped":
                database.execute(f'DROP TABLE "{table}"')
                database.execute(f'ALTER TABLE x_x RENAME TO "{table}"')
            database.commit()
            yield name, database.serialize()


_FORMATS: dict[str, Callable[[str], Iterator[tuple[str, bytes]]]] = {
    "csv": _edited_csv,
    "json": _edited_json,
    "env": _edited_lines,
}
