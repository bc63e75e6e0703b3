"""Output of a call, bounded: its beginning, its end, and the number of bytes between."""


class Output:
    """The first and the last half of what a call wrote, and how much lay between."""

    def __init__(self, limit: int) -> None:
        self.dropped = 0
        self._head, self._tail = bytearray(), bytearray()
        self._head_size, self._tail_size = limit // 2, limit - limit // 2

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        surplus = len(self._tail) - self._tail_size
        if surplus > 0:
            del self._tail[:surplus]
            self.dropped += surplus

    def kept(self) -> bytes:
        """Return head and tail."""
        return bytes(self._head + self._tail)
