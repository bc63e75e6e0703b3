"""Briefs and turns as token ids.

Literals in backticks are operands: each is replaced by an alias, the same one wherever it stands in
an attempt. Which operand it is can't be told from the tokens, so that acting on operands never
seen before is given by construction; what has to be learned is which of them a call needs.

Reading positions say where in the goal a token stands; the tokens of a turn stand where the last
operand named in a call stands. So "what comes next" means the same in a goal of two sentences and
in one of five. That goals name operands in the order of use is thereby assumed, not learned; where
they don't, the policy has to find its way by content alone.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flywheel.policy.embedded.vocabulary import (
    ACT,
    ALIASES,
    FIRST_ALIAS,
    NO_CALL,
    UNKNOWN,
    Vocabulary,
    name_keys,
    tool_key,
)
from schemas.attempt import Turn
from schemas.tool import Parameter, ToolCall, ToolSpec

MAX_TOKENS = 512
_PIECE = re.compile(r"`([^`]+)`|([^\W\d_]+(?:-[^\W\d_]+)*|\d+|[^\w\s])")
Piece = int | str
"""A token id, or a literal that still needs its alias."""
Allowed = tuple[int, ...] | None
"""The names that a token is chosen from; None: the aliases in front of it."""
Token = tuple[Piece, Allowed]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the model is fed, with aliases numbered in order of appearance."""

    ids: tuple[int, ...]
    goal: int
    """How many of the ids are the goal."""
    reading: tuple[int, ...]
    """Where in the goal each id stands, or how far it has been carried out there."""
    targets: tuple[tuple[int, Allowed], ...]
    """Positions of the tokens of well-formed calls, and what each was chosen from."""
    literals: tuple[str, ...]
    """Alias number → literal."""


def words_of(text: str) -> Iterator[str]:
    """Yield the lower-cased words, numbers and marks outside backticks."""
    for match in _PIECE.finditer(text):
        if match[2]:
            yield match[2].lower()


def keys_of(goal: str, tools: Sequence[ToolSpec], turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the vocabulary keys of a demonstration, names first."""
    yield from name_keys(tools)
    for text in (goal, *(turn.observation for turn in turns)):
        yield from (word for word in words_of(text) if not word.isdigit())


def encode(
    vocabulary: Vocabulary, goal: str, tools: Sequence[ToolSpec], turns: Sequence[Turn]
) -> Encoded:
    """Return the goal, the turns and a final ACT as ids, at most `MAX_TOKENS` of them.

    What is too long is cut: first the oldest observations, then the oldest turns, then the end of
    the goal.
    """
    names = vocabulary.names(tools)
    parts = [(_call(t.call, tools, names), _pieces(vocabulary, t.observation)) for t in turns]
    head = _cut(_pieces(vocabulary, goal), parts)
    pieces, targets = list(head), list[tuple[int, Allowed]]()
    for call, observation in parts:
        pieces.append(ACT)
        targets += [(len(pieces) + index, allowed) for index, (_, allowed) in enumerate(call)]
        pieces += [*(piece for piece, _ in call), *observation]
    literals = tuple(dict.fromkeys(piece for piece in pieces if isinstance(piece, str)))[:ALIASES]
    alias = {literal: FIRST_ALIAS + number for number, literal in enumerate(literals)}
    ids = [alias.get(piece, UNKNOWN) if isinstance(piece, str) else piece for piece in pieces]
    ids.append(ACT)
    return Encoded(
        ids=tuple(ids),
        goal=len(head),
        reading=_reading(ids, len(head), {at for at, allowed in targets if allowed is None}),
        targets=tuple(target for target in targets if _could_choose(ids, *target)),
        literals=literals,
    )


def read_on(goal: Sequence[int], at: int, token: int) -> int:
    """Return where the reading of the goal stands once a call has named `token`, from `at`.

    That is the operand's next occurrence, else its first; an operand that the goal does not name
    leaves it where it is.
    """
    found = [position for position, other in enumerate(goal) if other == token]
    return next((position for position in found if position > at), found[0] if found else at)


def _reading(ids: Sequence[int], goal: int, operands: Container[int]) -> tuple[int, ...]:
    positions, at = list(range(goal)), 0
    for position in range(goal, len(ids)):
        if position in operands:
            at = read_on(ids[:goal], at, ids[position])
        positions.append(at)
    return tuple(positions)


def _could_choose(ids: Sequence[int], at: int, allowed: Allowed) -> bool:
    """Tell whether the grammar and the context allow the token at `at`."""
    if allowed is None:
        return is_alias(ids[at]) and ids[at] in ids[:at]
    return ids[at] in allowed


def is_alias(token: int) -> bool:
    """Tell whether a token stands for an operand."""
    return FIRST_ALIAS <= token < FIRST_ALIAS + ALIASES


def tool_ids(tools: Sequence[ToolSpec], names: Mapping[str, int]) -> tuple[int, ...]:
    """Return the ids of the tools, in the order of the brief."""
    return tuple(names[tool_key(tool.name)] for tool in tools)


def choice_ids(parameter: Parameter, names: Mapping[str, int]) -> Allowed:
    """Return the ids of a parameter's choices, None where it takes a literal."""
    return tuple(names[choice] for choice in parameter.choices) or None


def _pieces(vocabulary: Vocabulary, text: str) -> list[Piece]:
    """Split a text; an operand stays a literal."""
    return [
        match[1] if match[1] else vocabulary.word(match[2].lower())
        for match in _PIECE.finditer(text)
    ]


def _call(
    call: ToolCall | None, tools: Sequence[ToolSpec], names: Mapping[str, int]
) -> list[Token]:
    """Return a call's tokens: the tool, then a value for each parameter."""
    spec = next((tool for tool in tools if call and tool.name == call.tool), None)
    if call is None or spec is None:
        return [(NO_CALL if call is None else UNKNOWN, ())]
    tokens: list[Token] = [(names[tool_key(spec.name)], tool_ids(tools, names))]
    for parameter in spec.parameters:
        value, allowed = call.arguments.get(parameter.name, ""), choice_ids(parameter, names)
        tokens.append((value if allowed is None else names.get(value, UNKNOWN), allowed))
    return tokens


def _cut(head: list[Piece], turns: list[tuple[list[Token], list[Piece]]]) -> list[Piece]:
    """Empty the oldest observations, then drop the oldest turns, then the goal's end."""

    def length() -> int:
        return len(head) + 1 + sum(1 + len(call) + len(seen) for call, seen in turns)

    for _, seen in turns:
        if length() > MAX_TOKENS:
            seen.clear()
    while turns and length() > MAX_TOKENS:
        turns.pop(0)
    return head[: MAX_TOKENS - 1]
