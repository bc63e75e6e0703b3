"""Frames: what host and worker say to each other, over whatever stream of bytes connects them.

A frame is a 4-byte big-endian length and a body of that many bytes; the body is a sequence of
fields, each a 4-byte length and its bytes. The first field of a request is the operation, the
first field of a reply is `ok`, `refused` or `error`.
"""

import struct


def pack(*fields: bytes) -> bytes:
    """Return `fields` as one frame."""
    body = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return struct.pack(">I", len(body)) + body


def unpack(body: bytes) -> list[bytes]:
    """Return the fields of a frame's body; raise ValueError where it is none."""
    fields, start = [], 0
    while start < len(body):
        end = start + 4
        if end > len(body):
            raise ValueError("a field's length is cut off")
        (size,) = struct.unpack(">I", body[start:end])
        start = end + size
        if start > len(body):
            raise ValueError("a field is cut off")
        fields.append(body[end:start])
    return fields
