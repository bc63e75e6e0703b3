"""One thing changed in a file, by its format: a row, a value, a name, an order, a key."""

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count

from schemas.file import MAX_FILE_BYTES, File

REVERSED = "rows-reversed"
"""Wrong only where the order counts."""
_MOST_STEPS = 1_000_000
"""Instructions of SQLite's machine for one edit: some 50 ms."""
_EVERY = 1_000
_NUMBER = re.compile(r"\d(?=\D*$)")


def edited(file: File, *, open_databases: bool) -> Iterator[tuple[str, bytes]]:
    """Yield name → the bytes of a file with one thing changed; its format stays right.

    A file that is not what its name or its first bytes say is changed as the text or the bytes
    that it is. `open_databases`: whether SQLite may open one here; only where no stranger made it.
    """
    data = file.data()
    if open_databases and data.startswith(b"SQLite format 3\0"):
        edits = _edited_database(data)
        yield from edits or _edited_bytes(data)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        yield from _edited_bytes(data)
        return
    suffix = file.path.rpartition(".")[2]
    yield from _edited_by_format(suffix, text) or _edited_text(text)


def _edited_by_format(suffix: str, text: str) -> list[tuple[str, bytes]]:
    """Return the edits of a format; none where there is nothing to edit, or it can't be parsed."""
    edit = _FORMATS.get(suffix)
    try:
        return list(edit(text)) if edit else []
    except (ValueError, RecursionError, csv.Error):
        return []


def _edited_bytes(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "cut", data[: len(data) // 2]


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
    elif isinstance(document, list) and document and all(map(_is_row, document)):
        *others, row = document
        last = next(reversed(row))
        yield "row-dropped", _json(others)
        yield "row-repeated", _json([*document, row])
        yield "value-changed", _json([*others, row | {last: _bumped(row[last])}])
        yield "column-renamed", _json([{f"{k}x": v for k, v in item.items()} for item in document])
        if len(document) > 1:
            yield REVERSED, _json(document[::-1])


def _is_row(item: object) -> bool:
    return isinstance(item, dict) and bool(item)


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


def _edited_database(data: bytes) -> list[tuple[str, bytes]]:
    """Change a row, a name or the keys of the first table that has some; none if it can't be."""
    try:
        with _opened(data) as database:
            wanted = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            names = [str(name) for (name,) in database.execute(wanted)]
            filled = [n for n in names if _has_rows(database, n)]
            keyed = [n for n in filled if _has_key(database, n)]
            columns = {n: _columns(database, n) for n in filled}
    except sqlite3.Error:
        return []
    changes = [
        change for table in filled[:1] for change in _changes(_quoted(table), columns[table][-1])
    ]
    changes += [("keys-dropped", _without_keys(_quoted(table))) for table in keyed[:1]]
    after = [(name, _after(data, *statements)) for name, statements in changes]
    return [(name, changed) for name, changed in after if changed is not None]


def _changes(table: str, column: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name → statements for a table, whose name is quoted, and its last column."""
    last, column = f"(SELECT max(rowid) FROM {table})", _quoted(column)
    yield "row-dropped", (f"DELETE FROM {table} WHERE rowid = {last}",)
    yield "value-changed", (f"UPDATE {table} SET {column} = 987654321 WHERE rowid = {last}",)
    yield "table-renamed", (f'ALTER TABLE {table} RENAME TO {table[:-1]}_x"',)
    yield "column-renamed", (f'ALTER TABLE {table} RENAME COLUMN {column} TO "x_x"',)


def _without_keys(table: str) -> tuple[str, ...]:
    copied = f"CREATE TABLE x_x AS SELECT * FROM {table}"
    return copied, f"DROP TABLE {table}", f"ALTER TABLE x_x RENAME TO {table}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(table)})")]


def _has_rows(database: sqlite3.Connection, table: str) -> bool:
    return database.execute(f"SELECT 1 FROM {_quoted(table)}").fetchone() is not None


def _has_key(database: sqlite3.Connection, table: str) -> bool:
    primary = any(row[5] for row in database.execute(f"PRAGMA table_info({_quoted(table)})"))
    indexes = database.execute(f"PRAGMA index_list({_quoted(table)})")
    return primary or any(row[2] for row in indexes)


@contextmanager
def _opened(data: bytes) -> Iterator[sqlite3.Connection]:
    """Open a copy whose triggers and views call nothing unsafe and are stopped after a while."""
    calls = count()
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        database.deserialize(data)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_FILE_BYTES)
        database.set_progress_handler(lambda: next(calls) >= _MOST_STEPS // _EVERY, _EVERY)
        yield database


def _after(data: bytes, *statements: str) -> bytes | None:
    """Return the database after some statements; None where it refuses one or takes too long."""
    with _opened(data) as database:
        try:
            for statement in statements:
                database.execute(statement)
            database.commit()
            return database.serialize()
        except sqlite3.Error:
            return None


_FORMATS: dict[str, Callable[[str], Iterator[tuple[str, bytes]]]] = {
    "csv": _edited_csv,
    "json": _edited_json,
    "env": _edited_lines,
}
