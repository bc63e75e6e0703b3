"""Tools: what an agent may call, where each one runs, and whether its answers are real."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import model_validator

from schemas.base import Name, Record


class ToolKind(StrEnum):
    """Whether a tool's answers come from execution."""

    REAL = "real"
    SIMULATED = "simulated"


class ToolHome(StrEnum):
    """Where a tool runs."""

    SANDBOX = "sandbox"
    """A subcommand of a program in the agent's sandbox."""
    SHELL = "shell"
    """A command line, by bash in the agent's sandbox."""
    HOST = "host"
    """Outside the sandbox: the scripted user, an HTTP service, an MCP server."""
    HARNESS = "harness"
    """Part of the protocol: `submit`."""


class Parameter(Record):
    """One named argument of a tool."""

    name: Name
    description: str
    choices: tuple[str, ...] = ()
    """The only values allowed; empty for a literal that the task or an observation names."""


class ToolSpec(Record):
    """Something that an agent may call."""

    name: Name
    description: str
    parameters: tuple[Parameter, ...] = ()
    kind: ToolKind = ToolKind.REAL
    home: ToolHome = ToolHome.SANDBOX
    program: str = ""
    """What answers: a program's name (`sandbox`), `user`, `http:NAME` or `mcp:NAME` (`host`)."""
    observes: bool = False
    """It looks and changes nothing: a right solution may do without it."""

    @model_validator(mode="after")
    def _answered_by_something(self) -> "ToolSpec":
        if (self.home in (ToolHome.SANDBOX, ToolHome.HOST)) != bool(self.program):
            raise ValueError(
                f"tool {self.name}: home {self.home.value!r} "
                + ("needs a program" if not self.program else "takes no program")
            )
        return self


class ToolCall(Record):
    """One call: the tool's name and its arguments, in the order of the tool's parameters."""

    tool: Name
    arguments: Mapping[str, str] = {}


SUBMIT = ToolCall(tool="submit")
"""The call that ends an attempt: the policy says that it is done."""

Script = tuple[ToolCall, ...]
"""What a scripted policy does, ending without `submit` (the harness adds it)."""
