"""What a plug-in may be, how its kind is told, and what each kind has to bring."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from inspect import isfunction
from typing import get_args, get_type_hints

from flywheel.errors import ConfigError
from flywheel.families import Family
from flywheel.tools import program_source
from flywheel.tools.http import HttpService
from flywheel.tools.mcp import McpServer
from schemas.screening import ScreenCheck
from schemas.task import TaskManifest
from schemas.tool import ToolHome, ToolSpec

Check = Callable[[TaskManifest], ScreenCheck]
"""Looks at a task; the kind of its result becomes `plugin/NAME`."""
Proposer = Callable[[int, int], Iterable[TaskManifest]]
"""Makes at most so many tasks, from a seed."""
EXPECTED = (
    "a Family, a ToolProgram, an HttpService, an McpServer, a function annotated to return a "
    "ScreenCheck (a check), or one annotated to return Iterable[TaskManifest] (a proposer)"
)


class Kind(StrEnum):
    """What a plug-in adds."""

    FAMILY = "family"
    CHECK = "check"
    TOOL = "tool"
    PROPOSER = "proposer"

    @property
    def shelf(self) -> str:
        """The plural, as in `flywheel.families`."""
        return "families" if self is Kind.FAMILY else f"{self.value}s"


@dataclass(frozen=True, slots=True)
class ToolProgram:
    """A program that runs in the sandbox, and the tools that are its subcommands."""

    name: str
    source: str
    """Python with a function `main(argv) -> int`, standard library only."""
    tools: tuple[ToolSpec, ...]


Tool = ToolProgram | HttpService | McpServer


def kind_of(plugin: object, where: str) -> Kind | None:
    """Return a plug-in's kind, None where it is none.

    Raises:
        ConfigError: a function's annotations can't be read.
    """
    if isinstance(plugin, Family):
        return Kind.FAMILY
    if isinstance(plugin, Tool):
        return Kind.TOOL
    if not isfunction(plugin):
        return None
    try:
        returned = get_type_hints(plugin).get("return")
    except (NameError, TypeError) as error:
        raise ConfigError(f"{where}: its annotations can't be read: {error}") from None
    if returned is ScreenCheck:
        return Kind.CHECK
    return Kind.PROPOSER if get_args(returned)[:1] == (TaskManifest,) else None


def check_tool(tool: Tool, where: str) -> None:
    """Accept a tool whose descriptions lead to it; raise ConfigError otherwise."""
    if isinstance(tool, ToolProgram):
        _check_program(tool, where)
        home, stem = ToolHome.SANDBOX, tool.name
    else:
        scheme = "http" if isinstance(tool, HttpService) else "mcp"
        home, stem = ToolHome.HOST, f"{scheme}:{tool.name}/"
    for spec in tool.tools:
        leads = spec.program.startswith(stem) if stem.endswith("/") else spec.program == stem
        if spec.home is not home or not leads:
            raise ConfigError(
                f"{where}: tool {spec.name} has home {spec.home.value!r} and program "
                f"{spec.program!r}; expected {home.value!r} and {stem!r}"
            )


def _check_program(tool: ToolProgram, where: str) -> None:
    try:
        body = ast.parse(tool.source).body
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{where}: source of program {tool.name}: {error}") from None
    if not any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in body):
        raise ConfigError(f"{where}: program {tool.name}: expected a function main(argv) -> int")
    if has_program(tool.name) and program_source(tool.name) != tool.source:
        raise ConfigError(f"{where}: there is another tool program named {tool.name!r}")


def has_program(name: str) -> bool:
    """Tell whether a tool program of this name is known."""
    try:
        program_source(name)
    except ConfigError:
        return False
    return True
