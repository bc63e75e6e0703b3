"""How a record becomes columns: scalars as they are, everything nested as JSON text.

In: records and what their schemas declare. Out: Arrow tables, and records again. The columns
follow from the schema alone, so a table that lacks one is found by a test, not by a user.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import pyarrow as pa
from pydantic import ValidationError
from pydantic_core import to_json

from flywheel.errors import StoreError
from schemas.attempt import Attempt
from schemas.base import Record

SqlType = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "JSON"]
R = TypeVar("R", bound=Record)

ARROW_TYPES: Mapping[SqlType, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "JSON": pa.string(),
}

INLINED: Mapping[type[Record], tuple[str, ...]] = {Attempt: ("key", "trajectory")}
"""Nested records whose fields become columns of their own, to be filtered and joined by."""

RENAMED = {"index": "attempt_index"}
"""Inlined fields whose name says too little outside their record."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a record's table."""

    name: str
    path: tuple[str, ...]
    """Where its value is in the record."""
    type: SqlType
    derived: bool
    """A computed field: stored for SQL, left out when the record is built again."""


@cache
def columns_of(record_type: type[Record]) -> tuple[Column, ...]:
    """Return the columns of `record_type`, in the order of its fields, computed ones last."""
    found: list[Column] = []
    for name, field in record_type.model_fields.items():
        if name in INLINED.get(record_type, ()) and isinstance(field.annotation, type):
            found.extend(_inlined(name, field.annotation))
        else:
            found.append(Column(name, (name,), _sql_type(field.annotation), derived=False))
    for name, computed in record_type.model_computed_fields.items():
        found.append(Column(name, (name,), _sql_type(computed.return_type), derived=True))
    return tuple(found)


def to_arrow(records: Sequence[Record], columns: Iterable[Column]) -> pa.Table:
    """Return one row a record, with `columns` in their order."""
    arrays = {column.name: _values(records, column) for column in columns}
    return pa.table(arrays)


def from_arrow(table: pa.Table, record_type: type[R]) -> tuple[R, ...]:
    """Build one record a row; `table` has at least the columns that are not derived.

    Raises StoreError where a row no longer fits the schema.
    """
    columns = [column for column in columns_of(record_type) if not column.derived]
    texts = [(column.path, _json_texts(table, column)) for column in columns]
    try:
        return tuple(record_type.model_validate_json(text) for text in _objects(texts))
    except ValidationError as error:
        raise StoreError(
            f"a stored {record_type.__name__} does not fit its schema ({error}): "
            "add a migration that brings old rows up to date"
        ) from error


def _inlined(name: str, record_type: type[Record]) -> list[Column]:
    return [
        Column(RENAMED.get(inner, inner), (name, inner), _sql_type(field.annotation), derived=False)
        for inner, field in record_type.model_fields.items()
    ]


def _sql_type(annotation: Any) -> SqlType:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _sql_type(get_args(annotation)[0])
    if origin in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        return _sql_type(members[0]) if len(members) == 1 else "JSON"
    if origin is Literal and all(isinstance(value, str) for value in get_args(annotation)):
        return "VARCHAR"
    return _scalar_type(annotation)


def _scalar_type(annotation: Any) -> SqlType:
    # bool is an int in Python: it has to be asked first.
    scalars: tuple[tuple[type, SqlType], ...] = (
        (bool, "BOOLEAN"),
        (str, "VARCHAR"),
        (int, "BIGINT"),
        (float, "DOUBLE"),
    )
    if isinstance(annotation, type):
        for python_type, sql_type in scalars:
            if issubclass(annotation, python_type):
                return sql_type
    return "JSON"


def _values(records: Sequence[Record], column: Column) -> pa.Array:
    values = list(map(attrgetter(".".join(column.path)), records))
    if column.type == "JSON":
        values = [None if value is None else to_json(value).decode() for value in values]
    try:
        return pa.array(values, type=ARROW_TYPES[column.type])
    except OverflowError as error:
        raise StoreError(f"{column.name}: a value does not fit 64 bits") from error


def _json_texts(table: pa.Table, column: Column) -> list[str]:
    values = table.column(column.name).to_pylist()
    if column.type == "JSON":
        return ["null" if value is None else value for value in values]
    return [to_json(value).decode() for value in values]


def _objects(texts: Sequence[tuple[tuple[str, ...], list[str]]]) -> Iterable[str]:
    """Return one JSON object a row, given each member's path and its text in every row."""
    members: list[list[str]] = []
    for name, group in groupby(texts, key=lambda item: item[0][0]):
        inner = [(path[1:], values) for path, values in group]
        values = inner[0][1] if inner[0][0] == () else list(_objects(inner))
        members.append([f'"{name}":{value}' for value in values])
    return ("{" + ",".join(row) + "}" for row in zip(*members, strict=True))
