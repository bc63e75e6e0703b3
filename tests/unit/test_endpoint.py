"""Asking a model behind an OpenAI-compatible endpoint, over real connections."""

import logging
import socket
import time
import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.endpoint import (
    FIRST_WAIT,
    MAX_EVIDENCE,
    MAX_WAIT,
    TRIES,
    Completion,
    Endpoint,
    Message,
    Prices,
)
from flywheel.errors import ConfigError, PolicyError
from tests import model_server
from tests.model_server import PROMPT_TOKENS, Fault, serve

KEY = "sk-secret-0123456789"
HELLO = (Message("system", "Be short."), Message("user", "Hello"))


def ask(url: str, sleep: Callable[[float], None] = lambda seconds: None) -> Completion:
    return Endpoint(url, "m", "", 10.0, sleep=sleep).complete(HELLO, 64, 0.5)


def fault_of(turn: Fault, timeout: float = 10.0) -> tuple[PolicyError, int]:
    """Return the error that a server's fault ends in, and how often it was asked."""
    with serve([turn]) as server, pytest.raises(PolicyError) as caught:
        Endpoint(server.url, "m", "", timeout, sleep=lambda seconds: None).complete(HELLO, 64, 0.5)
    return caught.value, len(server.asked)


def test_a_completion_says_its_text_its_tokens_and_its_price() -> None:
    with serve(["x" * 39]) as server:
        priced = Endpoint(server.url, "m", "", 10.0, Prices(prompt=2.0, completion=10.0))
        answer = priced.complete(HELLO, 64, 0.5)
    assert answer == Completion("x" * 39, PROMPT_TOKENS, 10, pytest.approx(0.0015))
    assert server.asked[0].body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Hello"},
        ],
        "max_tokens": 64,
        "temperature": 0.5,
    }


def test_without_prices_the_cost_is_unknown_not_zero() -> None:
    with serve(["hi"]) as server:
        assert ask(server.url).cost is None


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cost_is_the_sum_of_its_parts(prompt: int, completion: int) -> None:
    prices = Prices(prompt=0.5, completion=1.5)
    total = prices.cost(prompt, completion)
    assert total == pytest.approx(prices.cost(prompt, 0) + prices.cost(0, completion))
    assert prices.cost(1_000_000, 0) == 0.5


@pytest.mark.parametrize(
    "turn", [model_server.RATE_LIMITED, model_server.BROKEN_SERVER, model_server.HUNG_UP]
)
def test_a_passing_fault_is_followed_by_another_try(turn: Fault) -> None:
    with serve([turn, turn, "hi"]) as server:
        assert ask(server.url).text == "hi"
    assert len(server.asked) == 3


def test_a_lasting_fault_ends_after_a_bounded_number_of_tries() -> None:
    error, tries = fault_of(model_server.BROKEN_SERVER)
    assert tries == TRIES
    assert (error.status.code, error.status.retryable) == ("server-error", True)
    assert "500: oops" in error.status.evidence


def test_waits_double_and_what_the_server_asks_for_is_honoured_up_to_a_cap() -> None:
    waits: list[float] = []
    limited = model_server.RATE_LIMITED
    greedy = Fault(status=503, headers={"retry-after": "86400"})
    with serve([model_server.BROKEN_SERVER, limited, greedy, "hi"]) as server:
        ask(server.url, waits.append)
    assert waits == [FIRST_WAIT, 7.0, MAX_WAIT]
    waits.clear()
    with serve([model_server.BROKEN_SERVER] * 3 + ["hi"]) as server:
        ask(server.url, waits.append)
    assert waits == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]


def test_a_wait_may_be_asked_for_as_a_date() -> None:
    waits: list[float] = []
    dated = Fault(status=429, headers={"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"})
    with serve([dated, "hi"]) as server:
        ask(server.url, waits.append)
    assert waits == [0.0]
    senseless = Fault(status=429, headers={"retry-after": "soon"})
    with serve([senseless, "hi"]) as server:
        ask(server.url, waits.append)
    assert waits[1:] == [FIRST_WAIT]


@pytest.mark.parametrize("turn", [model_server.SLOW, model_server.DRIPPING])
def test_a_slow_answer_ends_at_the_deadline_also_where_it_drips(turn: Fault) -> None:
    began = time.monotonic()
    error, tries = fault_of(turn, timeout=0.2)
    assert error.status.code == "timeout"
    assert tries == TRIES
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("turn", "code", "retryable"),
    [
        (model_server.TRUNCATED, "truncated", True),
        (model_server.NO_JSON, "unreadable", True),
        (Fault(body=b'{"choices": [], "usage": {}}'), "unreadable", True),
        (
            Fault(
                body=b'{"choices": [{"message": {"content": "x"}}],'
                b' "usage": {"prompt_tokens": -5, "completion_tokens": 1}}'
            ),
            "unreadable",
            True,
        ),
        (Fault(body=b'{"choices": [{"message": {"content": "x"}}]}'), "unreadable", True),
        (Fault(body=b"[" * 100_000), "unreadable", True),
        (model_server.ENDLESS, "too-large", False),
        (Fault(status=401), "denied", False),
        (Fault(status=400, body=b"no such model"), "refused", False),
        (Fault(status=302, headers={"location": "http://127.0.0.1:1/"}), "refused", False),
    ],
)
def test_an_answer_that_is_none_is_a_typed_error_after_one_try(
    turn: Fault, code: str, retryable: bool
) -> None:
    error, tries = fault_of(turn)
    assert (error.status.code, error.status.retryable, tries) == (code, retryable, 1)
    assert error.status.evidence.isprintable()
    assert len(error.status.evidence) <= MAX_EVIDENCE + 20


def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(PolicyError, match="model/unreachable"):
            ask(url)


def test_the_key_is_sent_and_is_in_no_error_log_or_repr(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MODEL_KEY", f" {KEY}\n")
    caplog.set_level(logging.DEBUG)
    echo = Fault(status=401, body=f"bad key {KEY}".encode())
    with serve([echo]) as server:
        endpoint = Endpoint(server.url, "m", "MODEL_KEY", 10.0)
        with pytest.raises(PolicyError) as caught:
            endpoint.complete(HELLO, 64, 0.5)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(endpoint)
    assert "bad key ***" in told
    assert KEY not in told


@pytest.mark.parametrize("value", [None, "", "two\nlines", "ключ"])
def test_a_key_that_can_be_none_is_refused_without_quoting_it(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MODEL_KEY", value)
    with pytest.raises(ConfigError, match="MODEL_KEY is not set") as caught:
        Endpoint("http://127.0.0.1:1/v1", "m", "MODEL_KEY", 1.0).complete(HELLO, 1, 0.0)
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://a:b@x/v1", "http://x:y"])
def test_an_address_that_can_be_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoint\.url"):
        Endpoint(url, "m", "", 1.0)
