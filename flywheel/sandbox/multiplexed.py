"""The stream of a Docker container without a terminal: two outputs, packet by packet.

A packet is a byte for the source, three of padding, four for the length (big-endian), the data.
"""

import io
import socket
import struct
from typing import Any

HEADER = struct.Struct(">BxxxI")
STDOUT = 1
ERRORS_KEPT = 2000


class Demultiplexed(io.RawIOBase):
    """A container's standard output, and in `errors` the start of its standard error."""

    def __init__(self, stream: socket.socket) -> None:
        self.errors = b""
        self._stream, self._left = stream, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes of standard output; 0: the stream ended."""
        while not self._left:
            header = self._stream.recv(HEADER.size, socket.MSG_WAITALL)
            if len(header) < HEADER.size:
                return 0
            source, size = HEADER.unpack(header)
            if source == STDOUT:
                self._left = size
            else:
                self.errors = (self.errors + self._stream.recv(size, socket.MSG_WAITALL))[
                    :ERRORS_KEPT
                ]
        taken = self._stream.recv_into(memoryview(buffer)[: self._left])
        self._left -= taken
        return taken
