"""One thing changed in a file, by its format: a row, a value, a name, an order, a key."""

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from schemas.file import File

REVERSED = "rows-reversed"
"""Wrong only where the order counts."""
_NUMBER = re.compile(r"\d(?=\D*$)")


def edited(file: File) -> Iterator[tuple[str, bytes]]:
    """Yield name → the bytes of a file with one thing changed; its format stays right."""
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
    """Change a row, a name or the keys of the first table that has some."""
    with _opened(data) as database:
        wanted = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        names = [name for (name,) in database.execute(wanted)]
        filled = [n for n in names if database.execute(f'SELECT 1 FROM "{n}"').fetchone()]
        keyed = [n for n in filled if _has_key(database, n)]
        columns = {
            n: [row[1] for row in database.execute(f'PRAGMA table_info("{n}")')] for n in filled
        }
    for table in filled[:1]:
        column, last = columns[table][-1], f'(SELECT max(rowid) FROM "{table}")'
        yield "row-dropped", _after(data, f'DELETE FROM "{table}" WHERE rowid = {last}')
        changed = f'UPDATE "{table}" SET "{column}" = 987654321 WHERE rowid = {last}'
        yield "value-changed", _after(data, changed)
        yield "table-renamed", _after(data, f'ALTER TABLE "{table}" RENAME TO "{table}_x"')
        renamed = f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x_x"'
        yield "column-renamed", _after(data, renamed)
    for table in keyed[:1]:
        copied = f'CREATE TABLE x_x AS SELECT * FROM "{table}"'
        moved = f'ALTER TABLE x_x RENAME TO "{table}"'
        yield "keys-dropped", _after(data, copied, f'DROP TABLE "{table}"', moved)


def _has_key(database: sqlite3.Connection, table: str) -> bool:
    primary = any(row[5] for row in database.execute(f'PRAGMA table_info("{table}")'))
    return primary or any(row[2] for row in database.execute(f'PRAGMA index_list("{table}")'))


@contextmanager
def _opened(data: bytes) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        yield database


def _after(data: bytes, *statements: str) -> bytes:
    """Return the database after some statements."""
    with _opened(data) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
        return database.serialize()


_FORMATS: dict[str, Callable[[str], Iterator[tuple[str, bytes]]]] = {
    "csv": _edited_csv,
    "json": _edited_json,
    "env": _edited_lines,
}
