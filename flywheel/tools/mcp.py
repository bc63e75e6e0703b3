"""Tools that an MCP server answers, over stdio or streamable HTTP.

A task holds its tools as the server described them when they were pinned: name, description,
parameters, and in the program's name a digest of the whole description. A server that describes a
tool otherwise now is another tool: infrastructure, never the agent's failure.

A stdio server runs on this host with this user's rights: it is no sandbox.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from os import environ
from sys import __stderr__, stderr
from typing import TYPE_CHECKING

from anyio.from_thread import BlockingPortal, start_blocking_portal

from flywheel.endpoint import check_url, read_key
from flywheel.errors import ConfigError, SandboxError
from flywheel.tools.host import Answer, HostTool, OpenHostTool
from flywheel.tools.mcp_calls import boundary, call_tool, list_all, refuse_redirects, require_mcp
from flywheel.tools.mcp_schema import Listed, Misfit, listed_tool, result_text
from flywheel.tools.session import SharedSession, fault, timed_out
from schemas.tool import ToolSpec

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import Tool


@dataclass(frozen=True)
class McpServer:
    """Where some tools are answered: by a program started here, or at an address."""

    name: str
    tools: tuple[ToolSpec, ...] = ()
    """As `list_tools` returned them when they were pinned."""
    command: tuple[str, ...] = ()
    """Command line of a stdio server."""
    variables: tuple[str, ...] = ()
    """Environment variables that a stdio server is given, besides PATH, HOME and the like."""
    url: str = ""
    """Address of a streamable HTTP server."""
    key_variable: str = ""
    """Environment variable with a bearer token for `url`; empty: the server asks for none."""
    timeout: float = 10.0
    """Seconds within which it has to answer."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ConfigError(f"mcp server {self.name}: give either a command or a url")
        if self.url:
            check_url(self.url, f"mcp server {self.name}: url")

    @cached_property
    def openers(self) -> Mapping[str, OpenHostTool]:
        """Return what opens each tool for one attempt, by program."""
        return {tool.program: partial(self._tool, tool) for tool in self.tools}

    def list_tools(self) -> tuple[ToolSpec, ...]:
        """Ask the server for its tools, to be pinned.

        Raises:
            SandboxError: the server could not be reached.
            ConfigError: a tool has a name or parameters that a task can't hold.
        """
        with self._session() as session:
            return tuple(listed_tool(self.name, tool).spec for tool in session.described)

    @cached_property
    def _session(self) -> SharedSession["_Session"]:
        return SharedSession(self._open)

    @contextmanager
    def _tool(self, spec: ToolSpec) -> Iterator[HostTool]:
        with self._session() as session:
            yield _McpTool(self, session, session.find(self.name, spec))

    @contextmanager
    def _open(self) -> Iterator["_Session"]:
        require_mcp()
        program = f"mcp:{self.name}"
        with start_blocking_portal() as portal:
            connection = portal.wrap_async_context_manager(self._connect())
            with boundary(program):
                client = connection.__enter__()
            try:
                with boundary(program):
                    described = portal.call(list_all, client)
                yield _Session(portal, client, described)
            finally:
                # What ends the attempt is not handed to the connection, which would wrap it, and
                # a server that can't be closed any more takes nothing from what it answered.
                with suppress(SandboxError), boundary(program):
                    connection.__exit__(None, None, None)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator["Client"]:
        from mcp import Client

        # The handshake of protocol 2025-11-25: later ones have no session to keep state in.
        async with (
            self._transport() as transport,
            Client(transport, read_timeout_seconds=self.timeout, mode="legacy") as client,
        ):
            yield client

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator["Transport"]:
        """Yield the way to the server."""
        if self.command:
            yield self._stdio()
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        key = read_key(self.key_variable, f"mcp server {self.name}: key_variable")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(
            headers=headers,
            timeout=self.timeout,
            trust_env=False,
            event_hooks={"response": [refuse_redirects]},
        ) as client:
            yield streamable_http_client(self.url, http_client=client)

    def _stdio(self) -> "Transport":
        from mcp.client.stdio import StdioServerParameters, stdio_client

        absent = [name for name in self.variables if name not in environ]
        if absent:
            raise ConfigError(f"mcp server {self.name}: variables not set: {', '.join(absent)}")
        command, *arguments = self.command
        given = {name: environ[name] for name in self.variables}
        server = StdioServerParameters(command=command, args=arguments, env=given)
        # The process's own stream: what stands in for it in a notebook is no file.
        return stdio_client(server, errlog=__stderr__ or stderr)


@dataclass(frozen=True, slots=True)
class _Session:
    """One attempt's connection."""

    portal: BlockingPortal
    client: "Client"
    described: tuple["Tool", ...]

    def find(self, server: str, pinned: ToolSpec) -> Listed:
        """Return the tool that was pinned; raise `tool-changed` where it is not what it was."""
        named = [tool for tool in self.described if tool.name.lower() == pinned.name]
        try:
            listed = [listed_tool(server, tool) for tool in named]
        except ConfigError as error:
            raise fault(pinned.program, "tool-changed", str(error), retryable=False) from None
        for tool in listed:
            if tool.spec == pinned:
                return tool
        found = ", ".join(tool.spec.program for tool in listed) or "gone"
        raise fault(pinned.program, "tool-changed", f"is now {found}", retryable=False)


@dataclass(frozen=True, slots=True)
class _McpTool:
    server: McpServer
    session: _Session
    tool: Listed

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        """Call the tool; see HostTool."""
        program = self.tool.spec.program
        try:
            values = self.tool.values(arguments)
        except Misfit as misfit:
            return Answer(str(misfit), failed=True)
        allowed = min(seconds, self.server.timeout)
        with boundary(program):
            result = self.session.portal.call(
                call_tool, self.session.client, self.tool.name, values, allowed
            )
        if result is None:
            return timed_out(program, seconds, self.server.timeout)
        return Answer(result_text(result), failed=result.is_error)
