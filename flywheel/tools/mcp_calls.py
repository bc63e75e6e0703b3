"""Calls to an MCP server, and what may go wrong in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from pydantic import ValidationError

from flywheel.errors import ConfigError
from flywheel.tools.session import fault

if TYPE_CHECKING:
    from httpx2 import Response
    from mcp import Client
    from mcp.types import CallToolResult, Tool

MAX_PAGES = 20
"""Of a server's list of tools."""


def require_mcp() -> None:
    """Raise ConfigError unless the `mcp` package is there, in a version with a `Client`."""
    try:
        from mcp import Client as Client
    except ImportError:
        raise ConfigError("MCP tools need mcp>=2: install agent-data-flywheel[mcp]") from None


async def refuse_redirects(response: "Response") -> None:
    """Follow no redirect, not even within the server's own origin."""
    from httpx2 import TooManyRedirects

    if response.is_redirect:
        raise TooManyRedirects("the server redirects", request=response.request)


async def list_all(client: "Client") -> tuple["Tool", ...]:
    """Return all tools of a server, page by page."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


async def call_tool(
    client: "Client", tool: str, values: dict[str, object], seconds: float
) -> "CallToolResult | None":
    """Call a tool; arguments that the server does not take are the caller's to deal with.

    Returns None where no answer came within `seconds`.
    """
    from mcp import MCPError
    from mcp.types import INVALID_PARAMS, CallToolResult, TextContent

    try:
        with anyio.move_on_after(seconds):
            return await client.call_tool(tool, values)
    except MCPError as error:
        if error.code != INVALID_PARAMS:
            raise
        return CallToolResult(content=[TextContent(text=error.message)], is_error=True)
    return None


@contextmanager
def boundary(program: str) -> Iterator[None]:
    """Turn what a connection may raise into an infrastructure fault."""
    from httpx2 import HTTPError
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    try:
        yield
    except (
        MCPError,
        HTTPError,
        OSError,
        RuntimeError,  # a result that is not of the shape that the server announced
        ValidationError,
        ExceptionGroup,
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
    ) as error:
        cause = _leaf(error)
        said = cause.code if isinstance(cause, MCPError) else CONNECTION_CLOSED
        codes = {CONNECTION_CLOSED: "tool-unreachable", REQUEST_TIMEOUT: "tool-timeout"}
        code = codes.get(said, "tool-broke")
        raise fault(program, code, f"{type(cause).__name__}: {cause}") from None


def _leaf(error: Exception) -> Exception:
    """Return the first error of a group of groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
