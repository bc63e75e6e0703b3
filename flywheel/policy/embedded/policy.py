"""The embedded policy: one tool call a turn, constrained by the brief's grammar.

A call is the tool's name, then a value for each of its parameters: one of the choices, or an
operand that the goal, an observation or an earlier call has named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from flywheel.policy import Action
from flywheel.policy.embedded.decoder import Weights, next_logprobs, rows_of
from flywheel.policy.embedded.encoding import (
    Allowed,
    Encoded,
    choice_ids,
    encode,
    is_alias,
    read_on,
    tool_ids,
)
from flywheel.policy.embedded.vocabulary import ALIASES, FIRST_ALIAS, Vocabulary
from schemas.attempt import Sampling, Tokens, Turn
from schemas.base import seed_from
from schemas.task import Brief
from schemas.tool import ToolCall


@dataclass(frozen=True)
class EmbeddedPolicy:
    """A set of weights that acts. Immutable: any number of attempts may use it at once."""

    version: str
    weights: Weights = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)

    def act(self, brief: Brief, turns: Sequence[Turn], sampling: Sampling, seed: int) -> Action:
        """Return the next call, drawn token by token from what the grammar allows.

        Log-probabilities are those of the distribution drawn from: masked by the grammar, scaled by
        the temperature, cut to top-p. Temperature 0 takes the likeliest token and reports its
        log-probability at temperature 1. Aliases are a function of `seed` alone, so that one seed
        an attempt keeps them. Where no operand is known, a literal is empty.

        Raises:
            PolicyError: the brief names more unseen tools and choices than there are guest rows.
        """
        names = self.vocabulary.names(brief.tools)
        prompt = encode(self.vocabulary, brief.goal, brief.tools, turns)
        speech = _Speech(self.weights, prompt, sampling, seed, len(turns))
        tools = tool_ids(brief.tools, names)
        spec = brief.tools[tools.index(speech.say(tools))]
        arguments = {}
        for parameter in spec.parameters:
            allowed = choice_ids(parameter, names)
            if allowed is not None:
                arguments[parameter.name] = parameter.choices[allowed.index(speech.say(allowed))]
            else:
                arguments[parameter.name] = speech.operand()
        call = ToolCall(tool=spec.name, arguments=arguments)
        return Action(call=call, raw=call.model_dump_json(), tokens=speech.tokens())


class _Speech:
    """One call being spoken: the tokens so far, under this attempt's aliases."""

    def __init__(
        self, weights: Weights, prompt: Encoded, sampling: Sampling, seed: int, turn: int
    ) -> None:
        self.weights, self.sampling, self.goal = weights, sampling, prompt.goal
        order = torch.randperm(ALIASES, generator=generator_of(seed)).tolist()
        self.ids = [FIRST_ALIAS + order[i - FIRST_ALIAS] if is_alias(i) else i for i in prompt.ids]
        self.literal = {FIRST_ALIAS + order[n]: text for n, text in enumerate(prompt.literals)}
        self.reading = list(prompt.reading)
        self.spoken = len(prompt.ids)
        self.logprobs: list[float] = []
        self.generator = generator_of(seed, turn)

    def say(self, allowed: Allowed) -> int:
        """Draw the next token from `allowed` (None: the operands in front) and return it."""
        scores = next_logprobs(self.weights, self.ids, self.goal, self.reading, rows_of(allowed))
        token, logprob = _draw(scores, self.sampling, self.generator)
        self.ids.append(token)
        self.logprobs.append(logprob)
        at = self.reading[-1]
        self.reading.append(read_on(self.ids[: self.goal], at, token) if allowed is None else at)
        return token

    def operand(self) -> str:
        """Draw an operand and return its literal; empty, and no token, where none is known."""
        return self.literal[self.say(None)] if self.literal else ""

    def tokens(self) -> Tokens:
        """Return what was fed and what was drawn."""
        prompt, completion = self.ids[: self.spoken], self.ids[self.spoken :]
        return Tokens(
            prompt=tuple(prompt), completion=tuple(completion), logprobs=tuple(self.logprobs)
        )


def generator_of(*parts: int) -> torch.Generator:
    """Return a generator of its own, a function of `parts`."""
    return torch.Generator().manual_seed(seed_from(*parts))


def _draw(scores: Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[int, float]:
    """Return a token and its log-probability under the distribution that it was drawn from."""
    if sampling.temperature == 0:
        token = int(scores.argmax())
        return token, float(scores[token])
    scaled = (scores / sampling.temperature).log_softmax(0)
    ordered, order = scaled.exp().sort(descending=True, stable=True)
    cut = order[ordered.cumsum(0) - ordered >= sampling.top_p]
    scaled = scaled.index_fill(0, cut, -torch.inf).log_softmax(0)
    token = int(torch.multinomial(scaled.exp(), 1, generator=generator))
    return token, float(scaled[token])
