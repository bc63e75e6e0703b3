"""Between an MCP server's descriptions and a task's tools: names, parameters, values, texts."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from flywheel.errors import ConfigError
from schemas.base import canonical_json
from schemas.tool import Parameter, ToolHome, ToolSpec

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool

MAX_ANSWER = 64 * 1024
"""Characters."""
MAX_DESCRIPTION = 4_000
DIGEST_HEX_DIGITS = 12
TASK_NAME = re.compile(r"[a-z0-9][a-z0-9._@/-]{0,127}")


class Misfit(Exception):
    """A value that is not of the type that the tool asks for: the agent's to deal with."""


class _Property(BaseModel):
    """The part of a parameter's JSON schema that is read."""

    type: str | list[str] = ()  # type: ignore[assignment]
    description: str = ""
    enum: list[object] = []
    variants: list["_Property"] = Field(default=[], alias="anyOf")

    def types(self) -> set[str]:
        """Return the JSON types allowed, those of its variants included; empty: any."""
        own = {self.type} if isinstance(self.type, str) else set(self.type)
        return own.union(*(variant.types() for variant in self.variants))


class _Input(BaseModel):
    properties: dict[str, _Property] = {}
    required: list[str] = []


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool that a server has."""

    spec: ToolSpec
    name: str
    """As the server spells it."""
    parameters: Mapping[str, tuple[str, frozenset[str]]]
    """The task's name → the server's name, and the JSON types allowed."""
    required: frozenset[str]

    def values(self, arguments: Mapping[str, str]) -> dict[str, object]:
        """Return what the server takes: an empty value leaves an optional parameter out.

        Raises:
            Misfit: a value is no JSON of the type asked for.
        """
        return {
            self.parameters[name][0]: _value(name, text, self.parameters[name][1])
            for name, text in arguments.items()
            if text or name in self.required
        }


def listed_tool(server: str, tool: "Tool") -> Listed:
    """Return a described tool as one that a task can hold.

    Raises:
        ConfigError: a name or the schema is none that a task can hold.
    """
    where = f"mcp server {server}: tool {tool.name!r}"
    try:
        schema = _Input.model_validate(tool.input_schema)
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(map(str, found["loc"]))
        raise ConfigError(f"{where}: input schema, {place}: {found['msg']}") from None
    names = {_task_name(name, where): name for name in schema.properties}
    if len(names) < len(schema.properties):
        raise ConfigError(f"{where}: two parameters differ by their case only")
    required = frozenset(task for task, own in names.items() if own in schema.required)
    digest = _digest(tool)
    spec = ToolSpec(
        name=_task_name(tool.name, where),
        description=_line(tool.description or tool.name),
        parameters=tuple(
            _parameter(task, schema.properties[own], task in required)
            for task, own in names.items()
        ),
        home=ToolHome.HOST,
        program=f"mcp:{server}/{_task_name(tool.name, where)}@{digest}",
    )
    types = {task: (own, frozenset(schema.properties[own].types())) for task, own in names.items()}
    return Listed(spec, tool.name, types, required)


def result_text(result: "CallToolResult") -> str:
    """Return what a tool said as text; what is no text is named and left out."""
    parts = [
        block.text if block.type == "text" else f"[{block.type} left out]"
        for block in result.content
    ]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(parts)
    cut = f"\n[cut after {MAX_ANSWER} characters]" if len(text) > MAX_ANSWER else ""
    return text[:MAX_ANSWER] + cut


def _digest(tool: "Tool") -> str:
    described = (tool.name, tool.description or "", tool.input_schema)
    return hashlib.sha256(canonical_json(described).encode()).hexdigest()[:DIGEST_HEX_DIGITS]


def _task_name(name: str, where: str) -> str:
    """Return a name in lower case, as tasks spell names."""
    lower = name.lower()
    if not TASK_NAME.fullmatch(lower):
        raise ConfigError(f"{where}: name {name!r} is not made of letters, digits and . _ @ / -")
    return lower


def _parameter(name: str, schema: _Property, required: bool) -> Parameter:
    types = sorted(schema.types() - {"string", "null"})
    notes = [f"JSON {' or '.join(types)}"] if types and "string" not in schema.types() else []
    notes += [] if required else ["optional: empty leaves it out"]
    described = _line(schema.description or name)
    choices = tuple(str(value) for value in schema.enum)
    return Parameter(
        name=name,
        description=f"{described} ({'; '.join(notes)})" if notes else described,
        choices=choices if required or not choices else (*choices, ""),
    )


def _value(name: str, text: str, types: frozenset[str]) -> object:
    if not types or "string" in types:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        wanted = " or ".join(sorted(types))
        raise Misfit(f"{name} must be JSON of type {wanted}") from None


def _line(text: str) -> str:
    """Return a text as one printable line."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())[:MAX_DESCRIPTION]
