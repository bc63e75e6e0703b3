"""Tools outside the sandbox: a real HTTP service and real MCP servers, well and faulty."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from flywheel.errors import ConfigError, SandboxError
from flywheel.tools.host import HostTool
from flywheel.tools.http import MAX_ANSWER_BYTES, HttpService, http_tool
from flywheel.tools.mcp import McpServer
from flywheel.tools.mcp_schema import MAX_ANSWER
from schemas.attempt import InfraStage
from schemas.tool import Parameter, ToolHome

TEXT = Parameter(name="text", description="what to look for")
SEARCH = http_tool("facts", "search", "Search.", (TEXT,))
SERVER = Path(__file__).parent.parent / "mcp_server.py"
MCP = McpServer("notes", command=(sys.executable, str(SERVER)))


@dataclass
class Facts:
    """A running HTTP service: the argument `text` says what it does."""

    url: str
    sessions: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextmanager
def serve_facts() -> Iterator[Facts]:
    facts = Facts("")
    seen: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            session = self.headers["x-session-id"]
            facts.sessions.append(session)
            facts.keys.append(self.headers["authorization"])
            seen[session] = seen.get(session, 0) + 1
            text = json.loads(self.rfile.read(int(self.headers["content-length"])))["text"]
            if text == "hang up":
                return
            if text == "slow":
                time.sleep(0.5)
            status = int(text) if text.isdigit() else 200
            body = (
                b"x" * (2 * MAX_ANSWER_BYTES)
                if text == "big"
                else f"call {seen[session]}: {text}".encode()
            )
            self.send_response(status)
            if status == 302:
                self.send_header("location", facts.url)
            self.send_header("content-length", str(len(body) + (text == "truncated")))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    facts.url = f"http://127.0.0.1:{server.server_port}/tools/"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield facts
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def facts() -> Iterator[Facts]:
    with serve_facts() as running:
        yield running


def service(facts: Facts, **changes: object) -> HttpService:
    return replace(HttpService("facts", facts.url, (SEARCH,)), **changes)


def fault_of(tool: HostTool, arguments: dict[str, str], seconds: float = 5.0) -> tuple[str, bool]:
    """Return the code of the fault that a call ends in, and whether it may be tried again."""
    with pytest.raises(SandboxError) as caught:
        tool.answer(arguments, seconds)
    assert caught.value.status.stage is InfraStage.TOOL
    return caught.value.status.code, caught.value.status.retryable


def open_all(service: HttpService | McpServer, stack: ExitStack, *programs: str) -> list[HostTool]:
    chosen = programs or tuple(service.openers)
    return [stack.enter_context(service.openers[program]()) for program in chosen]


def test_an_http_tool_answers_with_the_services_text(facts: Facts) -> None:
    with service(facts).openers[SEARCH.program]() as tool:
        answer = tool.answer({"text": "reef"}, 5.0)
    assert (answer.text, answer.failed) == ("call 1: reef", False)


def test_each_attempt_has_a_session_of_its_own_that_its_tools_share(facts: Facts) -> None:
    other = http_tool("facts", "look-up", "Look up.", (TEXT,))
    both = service(facts, tools=(SEARCH, other))
    facts.sessions.clear()
    for _ in range(2):
        with ExitStack() as stack:
            first, second = open_all(both, stack)
            assert first.answer({"text": "a"}, 5.0).text == "call 1: a"
            assert second.answer({"text": "b"}, 5.0).text == "call 2: b"
    one, same, two, as_well = facts.sessions
    assert one == same != two == as_well


def test_attempts_in_different_threads_never_share_a_session(facts: Facts) -> None:
    shared, texts = service(facts), []
    with shared.openers[SEARCH.program]() as mine:
        mine.answer({"text": "a"}, 5.0)

        def attempt() -> None:
            with shared.openers[SEARCH.program]() as tool:
                texts.append(tool.answer({"text": "b"}, 5.0).text)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        assert mine.answer({"text": "c"}, 5.0).text == "call 2: c"
    assert texts == ["call 1: b"]


@pytest.mark.parametrize("status", ["400", "409", "422"])
def test_what_the_service_refuses_is_the_agents_to_deal_with(facts: Facts, status: str) -> None:
    with service(facts).openers[SEARCH.program]() as tool:
        answer = tool.answer({"text": status}, 5.0)
    assert answer.failed
    assert answer.text == f"call 1: {status}"


@pytest.mark.parametrize(
    ("text", "code", "retryable"),
    [
        ("500", "tool-unavailable", True),
        ("429", "tool-unavailable", True),
        ("401", "tool-denied", False),
        ("404", "tool-broke", False),
        ("302", "tool-redirects", False),
        ("truncated", "tool-broke", True),
        ("hang up", "tool-broke", True),
    ],
)
def test_a_service_that_breaks_is_infrastructure(
    facts: Facts, text: str, code: str, retryable: bool
) -> None:
    with service(facts).openers[SEARCH.program]() as tool:
        assert fault_of(tool, {"text": text}) == (code, retryable)


def test_a_redirect_is_not_followed(facts: Facts) -> None:
    facts.sessions.clear()
    with service(facts).openers[SEARCH.program]() as tool:
        fault_of(tool, {"text": "302"})
    assert len(facts.sessions) == 1


def test_nobody_listening_is_infrastructure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        away = HttpService("facts", f"http://127.0.0.1:{unused.getsockname()[1]}", (SEARCH,))
        with away.openers[SEARCH.program]() as tool:
            assert fault_of(tool, {"text": "x"}) == ("tool-unreachable", True)


def test_a_long_answer_is_cut_and_says_so(facts: Facts) -> None:
    with service(facts).openers[SEARCH.program]() as tool:
        answer = tool.answer({"text": "big"}, 5.0)
    assert answer.text == "x" * MAX_ANSWER_BYTES + f"\n[cut after {MAX_ANSWER_BYTES} bytes]"


def test_a_slow_tool_is_infrastructure_but_a_spent_budget_is_the_attempts(facts: Facts) -> None:
    with service(facts, timeout=0.2).openers[SEARCH.program]() as tool:
        assert fault_of(tool, {"text": "slow"}, seconds=5.0) == ("tool-timeout", True)
        answer = tool.answer({"text": "slow"}, 0.1)
    assert answer.failed
    assert "no answer within 0.1 s" in answer.text


def test_a_services_key_comes_from_the_environment(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = service(facts, key_variable="FACTS_KEY")
    monkeypatch.delenv("FACTS_KEY", raising=False)
    with pytest.raises(ConfigError, match="FACTS_KEY"), locked.openers[SEARCH.program]():
        pass
    monkeypatch.setenv("FACTS_KEY", "k-1")
    with locked.openers[SEARCH.program]() as tool:
        tool.answer({"text": "x"}, 5.0)
    assert facts.keys[-1] == "Bearer k-1"
    assert "k-1" not in repr(locked)


@pytest.fixture(scope="module")
def pinned() -> McpServer:
    """The stdio server with its tools as they are now."""
    return replace(MCP, tools=MCP.list_tools())


def program_of(server: McpServer, name: str) -> str:
    return next(tool.program for tool in server.tools if tool.name == name)


@pytest.fixture(scope="module")
def over_http(pinned: McpServer) -> Iterator[McpServer]:
    """The same server at an address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)])
    try:
        for _ in range(600):
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield replace(pinned, command=(), url=f"http://127.0.0.1:{port}/mcp")
    finally:
        process.kill()
        process.wait()


def test_a_servers_tools_are_listed_as_a_task_can_hold_them(pinned: McpServer) -> None:
    put = next(tool for tool in pinned.tools if tool.name == "put")
    assert put.home is ToolHome.HOST
    assert put.description == "Keep a text. It can be had back with `get`."
    assert [(p.name, p.choices) for p in put.parameters] == [
        ("key", ()),
        ("text", ()),
        ("timesrepeated", ()),
        ("unit", ("word", "line", "")),
    ]
    assert put.parameters[2].description.endswith("(JSON integer; optional: empty leaves it out)")
    name, _, digest = put.program.partition("@")
    assert (name, len(digest)) == ("mcp:notes/put", 12)


@pytest.mark.parametrize("transport", ["pinned", "over_http"])
def test_the_tools_of_a_server_share_an_attempts_session_and_no_other(
    transport: str, request: pytest.FixtureRequest
) -> None:
    server: McpServer = request.getfixturevalue(transport)
    put_and_get = program_of(server, "put"), program_of(server, "get")
    with ExitStack() as stack:
        put, get = open_all(server, stack, *put_and_get)
        kept = {"key": "k", "text": "ab", "timesrepeated": "3", "unit": ""}
        assert put.answer(kept, 5.0).text == "kept"
        assert get.answer({"key": "k"}, 5.0).text == "ababab"
    with ExitStack() as stack:
        (get,) = open_all(server, stack, put_and_get[1])
        answer = get.answer({"key": "k"}, 5.0)
        assert answer.failed
        assert "no note k" in answer.text


def test_arguments_that_do_not_fit_are_the_agents_to_deal_with(over_http: McpServer) -> None:
    with over_http.openers[program_of(over_http, "put")]() as put:
        given = {"key": "k", "text": "x", "unit": ""}
        for wrong in ("many", '"many"', "[" * 100_000):
            answer = put.answer({**given, "timesrepeated": wrong}, 5.0)
            assert answer.failed
        long = {"key": "k", "text": "x", "unit": "", "timesrepeated": "5"}
        assert not put.answer(long, 5.0).failed


def test_a_long_answer_of_a_server_is_cut_and_says_so(over_http: McpServer) -> None:
    with ExitStack() as stack:
        put, get = open_all(
            over_http, stack, program_of(over_http, "put"), program_of(over_http, "get")
        )
        times = str(2 * MAX_ANSWER)
        put.answer({"key": "k", "text": "x", "timesrepeated": times, "unit": ""}, 5.0)
        text = get.answer({"key": "k"}, 5.0).text
    assert text == "x" * MAX_ANSWER + f"\n[cut after {MAX_ANSWER} characters]"


def test_a_server_that_breaks_down_is_infrastructure_and_closes_all_the_same(
    pinned: McpServer,
) -> None:
    with ExitStack() as stack:
        die, get = open_all(pinned, stack, program_of(pinned, "die"), program_of(pinned, "get"))
        assert fault_of(die, {}) == ("tool-unreachable", True)
        assert fault_of(get, {"key": "k"}) == ("tool-unreachable", True)


def test_a_slow_server_is_infrastructure_but_a_spent_budget_is_the_attempts(
    over_http: McpServer,
) -> None:
    hasty = replace(over_http, timeout=1.5)
    with hasty.openers[program_of(hasty, "wait")]() as wait:
        assert wait.answer({"seconds": "0.3"}, 0.1).failed
        assert fault_of(wait, {"seconds": "3"}, seconds=5.0) == ("tool-timeout", True)


def test_a_tool_that_is_not_what_was_pinned_is_infrastructure(pinned: McpServer) -> None:
    changed = replace(pinned, command=(*pinned.command, "changed"))
    with ExitStack() as stack:
        open_all(changed, stack, program_of(pinned, "put"))
        with pytest.raises(SandboxError, match="tool-changed") as caught:
            open_all(changed, stack, program_of(pinned, "get"))
    assert "is now mcp:notes/get@" in caught.value.status.evidence
    assert not caught.value.status.retryable


def test_an_attempts_own_error_comes_out_as_it_is(over_http: McpServer) -> None:
    with (
        pytest.raises(SandboxError, match="boot/lost"),
        over_http.openers[program_of(over_http, "get")](),
    ):
        raise SandboxError(InfraStage.BOOT, "lost", "the agent's sandbox died")


@pytest.mark.parametrize(
    "command",
    [
        ("/nonexistent/server",),
        (sys.executable, "-c", "pass"),
        (sys.executable, "-c", "print('x')"),
    ],
)
def test_a_program_that_is_no_server_is_infrastructure(command: tuple[str, ...]) -> None:
    with pytest.raises(SandboxError, match="tool-unreachable"):
        McpServer("notes", command=command).list_tools()


def test_an_address_without_a_server_is_infrastructure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(SandboxError, match="tool-unreachable"):
            McpServer("notes", url=f"http://127.0.0.1:{unused.getsockname()[1]}/mcp").list_tools()


def test_a_stdio_server_sees_the_variables_that_it_is_given_and_no_others(
    pinned: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "yes")
    monkeypatch.setenv("NOT_GIVEN", "leaked")
    given = replace(pinned, variables=("GIVEN",))
    with given.openers[program_of(pinned, "secret")]() as secret:
        assert secret.answer({}, 5.0).text == "yes None"
    monkeypatch.delenv("GIVEN")
    with pytest.raises(ConfigError, match="GIVEN"):
        given.list_tools()


def test_a_server_is_a_command_or_an_address() -> None:
    for wrong in ({}, {"command": ("x",), "url": "http://x"}):
        with pytest.raises(ConfigError, match="either a command or a url"):
            McpServer("notes", **wrong)
