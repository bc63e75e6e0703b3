"""Tools that an HTTP service answers, reached from outside the sandbox.

The contract: `POST URL/TOOL` with the arguments as a JSON object of strings and the header
`X-Session-Id`, the same for all calls of one attempt and of no other. 200 is an answer, as text;
400, 409 and 422 are refusals, which the agent has to deal with; everything else is infrastructure.
A redirect is never followed: only the configured address is asked.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import quote

import httpx

from flywheel.body import read_body
from flywheel.endpoint import check_url, read_key
from flywheel.tools.host import Answer, HostTool, OpenHostTool
from flywheel.tools.session import SharedSession, fault, timed_out
from schemas.tool import Parameter, ToolHome, ToolSpec

SESSION_HEADER = "x-session-id"
MAX_ANSWER_BYTES = 64 * 1024
REFUSALS = frozenset({400, 409, 422})
DENIALS = frozenset({401, 403})


def new_session_id() -> str:
    """Return an id that no other attempt has."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class HttpService:
    """Where some tools are answered."""

    name: str
    url: str
    tools: tuple[ToolSpec, ...]
    """Home `host`, program `http:NAME/TOOL` (`http_tool` makes it so)."""
    key_variable: str = ""
    """Environment variable with a bearer token; empty: the service asks for none."""
    timeout: float = 10.0
    """Seconds within which it has to answer."""
    new_id: Callable[[], str] = new_session_id

    def __post_init__(self) -> None:
        check_url(self.url, f"http service {self.name}: url")

    @cached_property
    def openers(self) -> Mapping[str, OpenHostTool]:
        """Return what opens each tool for one attempt, by program."""
        return {tool.program: partial(self._tool, tool.name) for tool in self.tools}

    @cached_property
    def _session(self) -> SharedSession[httpx.Client]:
        return SharedSession(self._client)

    @contextmanager
    def _tool(self, tool: str) -> Iterator[HostTool]:
        with self._session() as client:
            yield _HttpTool(self, tool, client)

    def _client(self) -> AbstractContextManager[httpx.Client]:
        headers = {SESSION_HEADER: self.new_id(), "accept-encoding": "identity"}
        key = read_key(self.key_variable, f"http service {self.name}: key_variable")
        if key:
            headers["authorization"] = f"Bearer {key}"
        # trust_env: no proxy of this machine's user stands between a task and its tool.
        return httpx.Client(headers=headers, trust_env=False, follow_redirects=False)


def http_tool(
    service: str, name: str, description: str, parameters: tuple[Parameter, ...] = ()
) -> ToolSpec:
    """Return a tool that the service of this name answers."""
    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        home=ToolHome.HOST,
        program=f"http:{service}/{name}",
    )


@dataclass(frozen=True, slots=True)
class _HttpTool:
    service: HttpService
    tool: str
    client: httpx.Client

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        program = f"http:{self.service.name}/{self.tool}"
        allowed = min(seconds, self.service.timeout)
        deadline = time.monotonic() + allowed
        url = f"{self.service.url.rstrip('/')}/{quote(self.tool, safe='')}"
        try:
            with self.client.stream("POST", url, json=dict(arguments), timeout=allowed) as response:
                data, whole = read_body(response, MAX_ANSWER_BYTES, deadline, time.monotonic)
        except httpx.TimeoutException:
            return timed_out(program, seconds, self.service.timeout)
        except httpx.RemoteProtocolError as error:
            raise fault(program, "tool-broke", str(error)) from None
        except httpx.TransportError as error:
            raise fault(program, "tool-unreachable", str(error)) from None
        return _read(program, response, data, whole)


def _read(program: str, response: httpx.Response, data: bytes, whole: bool) -> Answer:
    """Sort an answer into the tool's own words and faults."""
    status, text = response.status_code, data.decode("utf-8", errors="replace")
    if status == httpx.codes.OK or status in REFUSALS:
        cut = "" if whole else f"\n[cut after {MAX_ANSWER_BYTES} bytes]"
        return Answer(text + cut, failed=status != httpx.codes.OK)
    evidence = f"{status}: {text}"
    if response.is_redirect:
        raise fault(program, "tool-redirects", evidence, retryable=False)
    if status in DENIALS:
        # The service may quote the token that it refused.
        raise fault(program, "tool-denied", f"{status}", retryable=False)
    if status == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
        raise fault(program, "tool-unavailable", evidence)
    raise fault(program, "tool-broke", evidence, retryable=False)
