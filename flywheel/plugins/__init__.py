"""Families, checks, tools and proposers from outside the package.

A plug-in is an object: named by an entry point of an installed distribution (`flywheel.families`,
`flywheel.checks`, `flywheel.tools`, `flywheel.proposers`), or by a path, `my_tasks.py:FAMILY`. It
is the user's own code: it runs in this process, with this process's rights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flywheel.errors import ConfigError
from flywheel.families import Family
from flywheel.families.catalogue import FAMILIES
from flywheel.plugins.find import Found, digest, find
from flywheel.plugins.kinds import (
    EXPECTED,
    Check,
    Kind,
    Proposer,
    Tool,
    ToolProgram,
    check_tool,
    has_program,
    kind_of,
)
from flywheel.plugins.run import run_check, run_proposer
from flywheel.tools import add_program
from flywheel.tools.host import add_host_tool
from schemas.base import Name
from schemas.tool import ToolHome

__all__ = [
    "Check",
    "Plugins",
    "Proposer",
    "Tool",
    "ToolProgram",
    "load",
    "register",
    "run_check",
    "run_proposer",
]


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded, by name."""

    families: dict[str, Family[Any]] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    proposers: dict[str, Proposer] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """`KIND/NAME` → `NAME@…`, a digest of the file that the plug-in stands in."""


def load(paths: Sequence[str]) -> Plugins:
    """Load the plug-ins of all installed distributions, and those that `paths` name.

    Args:
        paths: `FILE.py:NAME`, relative to the working directory or absolute.

    Raises:
        ConfigError: a plug-in can't be found or imported, is not what its group says, has the
            name of another one, or needs a tool that nobody brings. The message says which
            plug-in, what is wrong and what is expected.
    """
    plugins = Plugins()
    for found in find(paths):
        _add(plugins, found)
    for family in plugins.families.values():
        _check_tools(family, plugins)
    return plugins


def register(plugins: Plugins) -> None:
    """Make the tools known to sandboxes and attempts of this process.

    Raises:
        ConfigError: another tool program or service has that name.
    """
    for tool in plugins.tools.values():
        if isinstance(tool, ToolProgram):
            add_program(tool.name, tool.source)
        else:
            for program, open_tool in tool.openers.items():
                add_host_tool(program, open_tool)


def _add(plugins: Plugins, found: Found) -> None:
    """Put a plug-in where its kind belongs."""
    plugin, where = found.plugin, found.where
    kind = kind_of(plugin, where)
    if kind is None or found.expected not in (None, kind):
        what = type(plugin).__name__ + (f" ({kind.value})" if kind else "")
        raise ConfigError(f"{where}: found {what}; expected {found.expected or EXPECTED}")
    name = _name(plugin, where)
    shelf: dict[str, object] = getattr(plugins, kind.shelf)
    if name in shelf or (kind is Kind.FAMILY and name in FAMILIES):
        raise ConfigError(f"{where}: there is another {kind.value} named {name!r}")
    if isinstance(plugin, Tool):
        check_tool(plugin, where)
    shelf[name] = plugin
    program = plugin.source.encode() if isinstance(plugin, ToolProgram) else b""
    plugins.versions[f"{kind.value}/{name}"] = f"{name}@{digest(found.source + program)}"


def _name(plugin: object, where: str) -> str:
    name = getattr(plugin, "name", None) or getattr(plugin, "__name__", None)
    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise ConfigError(
            f"{where}: its name is {name!r}; expected lower-case letters, digits and . _ @ / -"
        ) from None


def _check_tools(family: Family[Any], plugins: Plugins) -> None:
    for spec in family.tools:
        known = spec.program in plugins.tools or has_program(spec.program)
        if spec.home is ToolHome.SANDBOX and not known:
            raise ConfigError(
                f"family {family.name}: nobody brings the tool program {spec.program!r}; "
                "name the ToolProgram too"
            )
