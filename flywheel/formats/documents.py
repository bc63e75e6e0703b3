"""Text, TOML and YAML that somebody else wrote, with bounds on size, depth and expansion.

YAML is read as plain values (what JSON has): no tags, no dates, no duplicate keys; aliases count
as often as they are used.
"""

import json
import tomllib
from collections.abc import Iterable
from typing import ClassVar, cast

import yaml

from flywheel.formats.collection import Files, FormatError
from schemas.file import MAX_FILE_BYTES, File

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""A value of a YAML or JSON document."""
MAX_TOML_BYTES = 256 * 1024
MAX_NODES = 200_000
"""Of a YAML document, aliases expanded."""
MAX_DEPTH = 40


def text_at(files: Files, path: str) -> str:
    """Return the text of a file that must be there.

    Raises:
        FormatError: it is absent, or no UTF-8 text.
    """
    if path not in files:
        raise FormatError(path, "", "missing: add this file")
    return text_of(files[path])


def text_of(file: File) -> str:
    """Return a file's text; raise FormatError where it is no UTF-8 text without NUL."""
    if file.encoding != "utf-8":
        raise FormatError(file.path, "", "not UTF-8 text: save it as UTF-8")
    return file.content


def read_toml(text: str, path: str) -> dict[str, object]:
    """Parse TOML; `path` is for the message.

    Raises:
        FormatError: too large, or broken (with the line).
    """
    if len(text) > MAX_TOML_BYTES:
        raise FormatError(path, "", f"more than {MAX_TOML_BYTES} characters of TOML: shrink it")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        raise FormatError(path, "", f"broken TOML: {problem}") from None
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _items(value)]
    if level:
        raise FormatError(path, "", f"more than {MAX_DEPTH} levels of tables: simplify it")
    return document


def _items(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_yaml(text: str, path: str) -> Value:
    """Parse one YAML document into plain values; `path` is for the message.

    Raises:
        FormatError: too large, too deep, a tag, a duplicate key, or broken (with the line).
    """
    if len(text) > MAX_FILE_BYTES:
        raise FormatError(path, "", f"more than {MAX_FILE_BYTES} characters of YAML: shrink it")
    try:
        _check_events(text, path)
        return cast(Value, yaml.load(text, Loader=_Loader))
    except (yaml.YAMLError, ValueError) as problem:
        raise FormatError(path, "", f"broken YAML: {problem}") from None


def read_json(text: str, path: str) -> Value:
    """Parse JSON with finite numbers and no key twice; `path` is for the message.

    Raises:
        FormatError: too deep, a duplicate key, or broken (with the line).
    """
    try:
        return cast(Value, json.loads(text, object_pairs_hook=_pairs, parse_constant=_not_a_number))
    except (ValueError, RecursionError) as problem:
        raise FormatError(path, "", f"broken JSON: {problem}") from None


def _pairs(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _not_a_number(text: str) -> Value:
    raise ValueError(f"{text} is no number")


def _check_events(text: str, path: str) -> None:
    """Walk the document without building it; an alias weighs what its anchor holds."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=_Parser):
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise FormatError(path, f"*{event.anchor}", "an alias of what holds it")
            total += sizes[event.anchor]
        elif isinstance(event, yaml.NodeEvent):
            total += 1
            _refuse_tag(event, path)
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append((event.anchor, total - 1))
            elif event.anchor is not None:
                sizes[event.anchor] = 1
        if total > MAX_NODES or len(open_nodes) > MAX_DEPTH:
            raise FormatError(
                path, "", f"more than {MAX_NODES} values or {MAX_DEPTH} levels: simplify it"
            )


def _refuse_tag(event: yaml.NodeEvent, path: str) -> None:
    tag = getattr(event, "tag", None)
    if tag not in (None, "!"):
        raise FormatError(path, str(tag), "a tag: write a plain value")


_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc, valid-type]
    """Plain values only."""

    yaml_implicit_resolvers: ClassVar = {
        first: [
            item for item in items if item[0].rpartition(":")[2] in ("null", "bool", "int", "float")
        ]
        for first, items in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Value]:
        """Build a mapping whose keys are different texts."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) != len(node.value):
            where = f"line {node.start_mark.line + 1}"
            raise yaml.constructor.ConstructorError(
                None, None, f"{where}: a key is there twice, or is no text", node.start_mark
            )
        pairs = zip(keys, (value for _, value in node.value), strict=True)
        return {key: self.construct_object(value, deep=True) for key, value in pairs}
