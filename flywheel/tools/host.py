"""Tools that are answered outside the sandbox: the scripted user, HTTP services, MCP servers.

Each attempt opens its own, so that what one attempt told a tool is unknown to the next.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from flywheel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool said."""

    text: str
    failed: bool = False
    """The tool was reached and refused: the agent's to deal with."""


class HostTool(Protocol):
    """A tool with the state of one attempt."""

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        """Answer one call within `seconds`.

        Raises:
            SandboxError: the tool could not be reached, or broke: infrastructure.
        """


OpenHostTool = Callable[[], AbstractContextManager[HostTool]]
_ADDED: dict[str, OpenHostTool] = {}
"""Tools of the user's own, by the program that a ToolSpec names: `http:NAME`, `mcp:NAME`."""


def add_host_tool(program: str, open_tool: OpenHostTool) -> None:
    """Make a tool that is answered outside the sandbox known.

    Raises:
        ConfigError: another tool has that name.
    """
    if _ADDED.setdefault(program, open_tool) is not open_tool:
        raise ConfigError(f"tool {program!r}: there is another one of that name")


def open_host_tool(program: str) -> AbstractContextManager[HostTool]:
    """Open a tool for one attempt.

    Raises:
        ConfigError: nobody has made such a tool known.
    """
    if program not in _ADDED:
        raise ConfigError(f"tool {program!r}: unknown; is a plug-in missing?")
    return _ADDED[program]()
