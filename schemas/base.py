"""What every record shares: frozen, strict, and identified by its content."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

ID_HEX_DIGITS = 20
"""80 bits: ten million ids collide with a probability of about 4e-11."""

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0.0)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._@/-]*$", max_length=128)]
"""A name that is safe in a file name, a command line, an SQL literal and a page."""


class Record(BaseModel):
    """A value that is stored or crosses rooms: immutable, no unknown fields, no coercion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value`: keys sorted, no spaces, records by their fields alone.

    Derived (computed) fields are left out, so that adding one never changes an id.
    """
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def content_id(prefix: str, *parts: Any) -> str:
    """Return `prefix-<20 hex digits>`, a function of `parts` and nothing else."""
    digest = hashlib.sha256(canonical_json(parts).encode()).hexdigest()
    return f"{prefix}-{digest[:ID_HEX_DIGITS]}"


def seed_from(*parts: Any) -> int:
    """Return a 63-bit seed that depends on `parts` alone, for a generator of its own."""
    digest = hashlib.sha256(canonical_json(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump(mode="json", exclude=set(type(value).model_computed_fields))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(_plain(item) for item in value)
    return value
