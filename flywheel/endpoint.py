"""A model behind an OpenAI-compatible endpoint: messages in, a completion with its price out.

The key comes from an environment variable and goes into one header: it is in no record, no log
and no error.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Annotated, Literal

import httpx
from pydantic import BaseModel, Field, ValidationError

from flywheel.body import read_body
from flywheel.errors import ConfigError, PolicyError
from schemas.base import Count

TRIES = 4
FIRST_WAIT = 1.0
"""Seconds before the second try; it doubles with each further one."""
MAX_WAIT = 30.0
"""Seconds: longest wait that a server may ask for."""
MAX_ANSWER_BYTES = 8 * 1024 * 1024
MAX_EVIDENCE = 300
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; zero for a model of one's own."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return what so many tokens cost, in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / MILLION


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said, and what the server says that it took."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """US dollars; None where no prices are configured."""


class _Usage(BaseModel):
    prompt_tokens: Count
    completion_tokens: Count


class _Said(BaseModel):
    content: str | None


class _Choice(BaseModel):
    message: _Said


class _Answer(BaseModel):
    """The part of a chat completion that is read; other fields are ignored."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage


class _Fault(PolicyError):
    """A try that failed."""

    def __init__(
        self,
        code: str,
        evidence: str,
        *,
        retryable: bool = True,
        again: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(code, evidence, retryable=retryable)
        self.again = again
        """Ask once more within this call."""
        self.wait = wait
        """Seconds that the server asked for."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served, and under which name."""

    url: str
    """Up to and with the version: `https://models.example.org/v1`."""
    model: str
    key_variable: str
    """Environment variable that holds the key; empty: the server asks for none."""
    timeout: float
    """Seconds for one try."""
    prices: Prices | None = None
    sleep: Callable[[float], None] = time.sleep
    """Waits between tries."""

    def __post_init__(self) -> None:
        check_url(self.url, "endpoint.url")

    def complete(
        self, messages: Sequence[Message], max_tokens: int, temperature: float
    ) -> Completion:
        """Ask for one completion of at most `max_tokens` tokens.

        Tries again on 429, 5xx, timeouts and lost connections, up to TRIES in all.

        Raises:
            ConfigError: the key's variable is not set, or holds no key.
            PolicyError: `rate-limited`, `server-error`, `timeout`, `unreachable`, `truncated`,
                `too-large`, `unreadable`, `denied` or `refused`.
        """
        body = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
        }
        key = read_key(self.key_variable, "endpoint.key_variable")
        wait = FIRST_WAIT
        with httpx.Client(timeout=self.timeout) as client:
            for _ in range(TRIES - 1):
                try:
                    return self._try(client, body, key)
                except _Fault as fault:
                    if not fault.again:
                        raise
                    self.sleep(min(MAX_WAIT, wait if fault.wait is None else fault.wait))
                    wait *= 2
            return self._try(client, body, key)

    def _try(self, client: httpx.Client, body: Mapping[str, object], key: str) -> Completion:
        """Ask once."""
        headers = {"accept-encoding": "identity"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        deadline = time.monotonic() + self.timeout
        try:
            url = f"{self.url.rstrip('/')}/chat/completions"
            with client.stream("POST", url, json=body, headers=headers) as response:
                data, whole = read_body(response, MAX_ANSWER_BYTES, deadline, time.monotonic)
        except httpx.TimeoutException:
            evidence = f"no whole answer within {self.timeout:g} s"
            raise _Fault("timeout", evidence, again=True) from None
        except httpx.RemoteProtocolError as error:
            raise _Fault("truncated", str(error)[:MAX_EVIDENCE], again=_was_reset(error)) from None
        except httpx.TransportError as error:
            raise _Fault("unreachable", str(error)[:MAX_EVIDENCE], again=True) from None
        if response.status_code != httpx.codes.OK:
            raise _status_fault(response, _evidence(data, key))
        if not whole:
            raise _Fault("too-large", f"more than {MAX_ANSWER_BYTES} bytes", retryable=False)
        return self._read(data, key)

    def _read(self, data: bytes, key: str) -> Completion:
        try:
            answer = _Answer.model_validate_json(data)
        except ValidationError as error:
            where = error.errors()[0]
            found = f"{'.'.join(map(str, where['loc']))}: {where['msg']}; {_evidence(data, key)}"
            raise _Fault("unreadable", found[:MAX_EVIDENCE]) from None
        usage = answer.usage
        spent = usage.prompt_tokens, usage.completion_tokens
        cost = None if self.prices is None else self.prices.cost(*spent)
        return Completion(answer.choices[0].message.content or "", *spent, cost)


def check_url(url: str, field: str) -> None:
    """Accept the address of a service; raise ConfigError where it can't be one."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"{field}: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise ConfigError(
            f"{field} must be http(s)://HOST/… without a user or password in it; "
            "put a key into an environment variable and name that in key_variable"
        )


def read_key(variable: str, field: str) -> str:
    """Return the key that an environment variable holds; empty where none is named.

    Raises:
        ConfigError: it is not set, or holds no key.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"{field}: {variable} is not set to a key (printable ASCII)")
    return key


def _was_reset(error: httpx.RemoteProtocolError) -> bool:
    """Tell whether the server hung up before it said anything."""
    return "without sending a response" in str(error)


def _status_fault(response: httpx.Response, evidence: str) -> _Fault:
    status = response.status_code
    found = f"{status}: {evidence}"
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return _Fault("rate-limited", found, again=True, wait=_asked_wait(response.headers))
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return _Fault("server-error", found, again=True, wait=_asked_wait(response.headers))
    denied = status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
    return _Fault("denied" if denied else "refused", found, retryable=False)


def _asked_wait(headers: httpx.Headers) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3: seconds or a date)."""
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        until = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, until.total_seconds())


def _evidence(data: bytes, key: str) -> str:
    """Return the beginning of an answer, printable and without the key."""
    text = data.decode("utf-8", errors="replace")
    text = text.replace(key, "***") if key else text
    return text.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
