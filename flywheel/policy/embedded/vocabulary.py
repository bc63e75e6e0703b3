"""Token ids: specials, aliases for operands, guests, and the keys that training has seen.

A key is a lower-cased word, a parameter's choice, or `tool:` and a tool's name. Keys claim rows in
the order in which training meets them and keep them in every later version.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from flywheel.errors import PolicyError
from schemas.tool import ToolSpec

PAD, UNKNOWN, NUMBER, ACT, NO_CALL = range(5)
"""Padding; an unseen word; a number outside backticks; the policy's turn; an unreadable call."""
FIRST_ALIAS, ALIASES = 5, 64
FIRST_GUEST, GUESTS = FIRST_ALIAS + ALIASES, 64
FIRST_KEY, KEYS = FIRST_GUEST + GUESTS, 512
ROWS = FIRST_KEY + KEYS
"""Rows of the embedding: fixed, so that a vocabulary grows without changing the weights' shape."""


def tool_key(name: str) -> str:
    """Return the key of a tool, which no word or choice can equal."""
    return f"tool:{name}"


def name_keys(tools: Iterable[ToolSpec]) -> Iterator[str]:
    """Yield the keys of all tools and choices, in the order of the brief."""
    for tool in tools:
        yield tool_key(tool.name)
        for parameter in tool.parameters:
            yield from parameter.choices


@dataclass(frozen=True)
class Vocabulary:
    """The keys that have rows, in the order in which they claimed them."""

    keys: tuple[str, ...] = ()

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {key: FIRST_KEY + index for index, key in enumerate(self.keys)}

    def word(self, text: str) -> int:
        """Return the id of a word outside backticks."""
        return NUMBER if text.isdigit() else self._rows.get(text, UNKNOWN)

    def names(self, tools: Iterable[ToolSpec]) -> dict[str, int]:
        """Return key → id of all that a call may name; keys without a row are guests.

        Guests take the guest rows, which no training touches, in the order of the brief.

        Raises:
            PolicyError: more unseen names than guest rows.
        """
        keys = list(dict.fromkeys(name_keys(tools)))
        unseen = [key for key in keys if key not in self._rows]
        if len(unseen) > GUESTS:
            raise PolicyError(
                "too-many-tools",
                f"the brief has {len(unseen)} unseen tools and choices, at most {GUESTS} fit",
                retryable=False,
            )
        guests = {key: FIRST_GUEST + index for index, key in enumerate(unseen)}
        return {key: guests[key] if key in guests else self._rows[key] for key in keys}

    def grown(self, keys: Iterable[str]) -> "Vocabulary":
        """Return a vocabulary in which new keys have claimed rows, while there are any."""
        return Vocabulary(tuple(dict.fromkeys((*self.keys, *keys)))[:KEYS])
