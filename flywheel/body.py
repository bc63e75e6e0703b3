"""Reads the body of an HTTP answer under a bound on size and time, whoever sent it."""

from collections.abc import Callable

import httpx


def read_body(
    response: httpx.Response, most: int, deadline: float, clock: Callable[[], float]
) -> tuple[bytes, bool]:
    """Return at most `most` bytes of a streamed answer, and whether that was all of it.

    The bytes are as they came over the wire: a compressed answer can't grow in memory.

    Args:
        response: an answer whose body has not been read.
        most: bytes.
        deadline: on `clock`, in seconds; a server that sends a byte now and then does not pass it.
        clock: rises monotonically.

    Raises:
        httpx.ReadTimeout: the deadline went by.
        httpx.TransportError: the connection broke before the end.
    """
    body = bytearray()
    for chunk in response.iter_raw():
        if clock() > deadline:
            raise httpx.ReadTimeout("the answer did not end in time")
        body += chunk
        if len(body) > most:
            return bytes(body[:most]), False
    return bytes(body), True
