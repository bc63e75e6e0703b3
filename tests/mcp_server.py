"""A real MCP server for tests: `mcp_server.py [changed] [PORT]`; without a port it speaks stdio."""

import os
import sys
import time
from typing import Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

_, *options = sys.argv
server = MCPServer("notes", log_level="CRITICAL")
notes: dict[str, dict[str, str]] = {}


def own(context: Context) -> dict[str, str]:  # type: ignore[type-arg]
    """Return the notes of this session; over stdio there is one a process."""
    session = (context.headers or {}).get("mcp-session-id", "stdio")
    return notes.setdefault(session, {})


@server.tool()
def put(
    context: Context,  # type: ignore[type-arg]
    key: str,
    text: str,
    timesRepeated: int = 1,
    unit: Literal["word", "line"] = "word",
) -> str:
    """Keep a text.

    It can be had back with `get`.
    """
    own(context)[key] = ("\n" if unit == "line" else "").join([text] * timesRepeated)
    return "kept"


@server.tool()
def get(context: Context, key: str) -> str:  # type: ignore[type-arg]
    """Return a text."""
    if key not in own(context):
        raise ToolError(f"no note {key}")
    return own(context)[key]


@server.tool()
def wait(seconds: float) -> str:
    """Take long."""
    time.sleep(seconds)
    return "waited"


@server.tool()
def die() -> str:
    """Break down."""
    os._exit(3)


@server.tool()
def secret() -> str:
    """Return a variable."""
    return f"{os.environ.get('GIVEN')} {os.environ.get('NOT_GIVEN')}"


if "changed" in options:
    options.remove("changed")
    server.remove_tool("get")

    @server.tool()
    def get(key: str, version: int) -> str:
        """Return a text."""
        return key


if options:
    server.run("streamable-http", host="127.0.0.1", port=int(options[0]))
else:
    server.run()
