"""Sequences of calls that a tool is tried with: all short ones, or a sample of many."""

from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random

from schemas.tool import Script, ToolCall, ToolSpec

SHORT = 2
"""Sequences of so many calls are all tried where `MOST` allows; shorter ones begin them."""
LONG = range(3, 9)
"""Lengths of the random ones."""
RANDOM_SEQUENCES = 20
MOST = 200
"""Sequences of one tool, whatever its parameters allow."""
MOST_SHORT = MOST - RANDOM_SEQUENCES - 1
MOST_CALLS = 50
"""Different calls that they are made of."""


def sequences(tool: ToolSpec, reference: Script, seed: int) -> tuple[Script, ...]:
    """Return call sequences for `tool`: all of `SHORT` calls, random longer ones, the reference's.

    A parameter without choices takes the values that the reference gives it. They are at most
    `MOST`: of more calls than `MOST_CALLS` a sample is used, of more pairs than `MOST_SHORT` each
    call alone and a sample of pairs. None where there is no call to make.
    """
    own = tuple(call for call in reference if call.tool == tool.name)
    values, rng = _values(tool, own), Random(seed)
    calls = [_call(tool, values, number) for number in _some(prod(map(len, values)), rng)]
    if not calls:
        return (own,) if own else ()
    longer = [tuple(rng.choices(calls, k=rng.choice(LONG))) for _ in range(RANDOM_SEQUENCES)]
    short: list[Script] = []
    if len(calls) ** SHORT <= MOST_SHORT:
        short += product(calls, repeat=SHORT)
    else:
        short += [(call,) for call in calls]
        short += [tuple(rng.choices(calls, k=SHORT)) for _ in range(MOST_SHORT - len(calls))]
    return (*short, *longer, *([own] if own else []))


def left_out(tool: ToolSpec, reference: Script) -> str:
    """Say of what `sequences` returns a sample; nothing where every pair of calls is in it."""
    total = prod(map(len, _values(tool, [call for call in reference if call.tool == tool.name])))
    if total**SHORT <= MOST_SHORT:
        return ""
    count = f"{total}" if total < 10**9 else "more than 10^9"
    return f"; a sample: {min(total, MOST_CALLS)} of {count} calls, not every pair of them"


def _values(tool: ToolSpec, own: Sequence[ToolCall]) -> list[Sequence[str]]:
    """Return what each parameter may be."""
    given = {
        parameter.name: sorted(
            {c.arguments[parameter.name] for c in own if parameter.name in c.arguments}
        )
        for parameter in tool.parameters
    }
    return [parameter.choices or given[parameter.name] for parameter in tool.parameters]


def _some(total: int, rng: Random) -> Sequence[int]:
    """Return the numbers below `total`, or `MOST_CALLS` of them; `total` may be beyond counting."""
    if total <= MOST_CALLS:
        return range(total)
    chosen: dict[int, None] = {}
    while len(chosen) < MOST_CALLS:
        chosen[rng.randrange(total)] = None
    return list(chosen)


def _call(tool: ToolSpec, values: Sequence[Sequence[str]], number: int) -> ToolCall:
    """Return the call of this number, of all that `values` allow."""
    arguments = {}
    for parameter, of in zip(tool.parameters, values, strict=True):
        number, chosen = divmod(number, len(of))
        arguments[parameter.name] = of[chosen]
    return ToolCall(tool=tool.name, arguments=arguments)
