"""A two-layer transformer decoder over tool calls, as pure functions of its weights.

A goal's token sees its neighbours on both sides; all that follows sees every earlier turn and, of
the goal, the stretch around its reading position. The narrow views are what makes a small number
of demonstrations enough: whole goals can't be learned by heart. A token is generated, scored by its
embedding row, or copied from where it stands in the context; an operand is only ever copied.

Shapes: B rows, T tokens, M choices (tokens of calls), D width.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from flywheel.policy.embedded.vocabulary import ALIASES, FIRST_ALIAS, ROWS

WIDTH, LAYERS, HEADS = 64, 2, 4
SPAN = 3
"""Tokens that the short convolution in front of each block sees."""
NEAR, BEHIND, AHEAD = 4, 4, 32
"""How far a goal's token sees within the goal, and a turn's token behind and ahead in it."""
ROTARY_BASE = 1000.0
COPY_BIAS = -2.0
"""So that an untrained model generates more than it copies."""
SMALLEST = 1e-38
"""Keeps an underflow from becoming an infinite loss."""
Weights = Mapping[str, Tensor]


def initial_weights(seed: int) -> dict[str, Tensor]:
    """Return random weights, a function of `seed`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> Tensor:
        return torch.randn(*shape, generator=generator) * scale

    weights = {"embedding": normal(ROWS, WIDTH, scale=1.0)}
    for layer in range(LAYERS):
        weights |= {
            f"{layer}.mix": torch.zeros(SPAN, WIDTH),
            f"{layer}.attention_in": normal(WIDTH, 3 * WIDTH, scale=WIDTH**-0.5),
            f"{layer}.attention_out": normal(WIDTH, WIDTH, scale=WIDTH**-0.5 / 2),
            f"{layer}.hidden": normal(WIDTH, 4 * WIDTH, scale=WIDTH**-0.5),
            f"{layer}.out": normal(4 * WIDTH, WIDTH, scale=WIDTH**-0.5 / 4),
        }
    heads = {name: normal(WIDTH, WIDTH, scale=WIDTH**-0.5) for name in ("query", "key", "name")}
    return weights | heads


def states(weights: Weights, ids: Tensor, goals: Tensor, reading: Tensor) -> Tensor:
    """Return the contextual state of each token, (B, T, D).

    Args:
        weights: the model.
        ids: token ids, (B, T), padded at the end.
        goals: how many tokens each row's goal has, (B,).
        reading: reading positions, (B, T), in tokens.
    """
    x = weights["embedding"][ids]
    visible, turn = _visible(goals, reading), _rotation(reading)
    for layer in range(LAYERS):
        x = x + _mixed(weights[f"{layer}.mix"], _normed(x))
        x = x + _attention(weights, layer, _normed(x), visible, turn)
        hidden = functional.gelu(_normed(x) @ weights[f"{layer}.hidden"])
        x = x + hidden @ weights[f"{layer}.out"]
    return _normed(x)


def token_logprobs(
    weights: Weights, context: Tensor, ids: Tensor, at: Tensor, allowed: Tensor
) -> Tensor:
    """Return the log-probability of each token at each choice, (B, M, ROWS); -inf: not allowed.

    One softmax over the rows to generate from and the tokens in front to copy from (See et al.
    2017); a token's probability is the sum of both. At least one must be allowed.

    Args:
        weights: the model.
        context: the states of all tokens, (B, T, D).
        ids: the tokens, (B, T).
        at: positions of the choices, (B, M), from 1 to T.
        allowed: what the grammar allows, (B, M, ROWS).
    """
    chooser = context.gather(1, (at - 1)[..., None].expand(-1, -1, WIDTH))
    generated = chooser @ weights["name"] @ weights["embedding"].T * WIDTH**-0.5
    generated = generated.masked_fill(~allowed | is_operand(torch.arange(ROWS)), -torch.inf)
    sources = ids[:, None].expand(-1, at.shape[1], -1)
    front = torch.arange(ids.shape[1]) < at[..., None]
    copied = (chooser @ weights["query"]) @ (context @ weights["key"]).transpose(1, 2)
    copied = copied * WIDTH**-0.5 + COPY_BIAS
    copied = copied.masked_fill(~(front & allowed.gather(2, sources)), -torch.inf)
    shares = torch.cat((generated, copied), dim=2).softmax(2)
    total = shares[..., :ROWS].scatter_add(2, sources, shares[..., ROWS:])
    return total.clamp(min=SMALLEST).log().masked_fill(~allowed, -torch.inf)


def next_logprobs(
    weights: Weights, ids: Sequence[int], goal: int, reading: Sequence[int], allowed: Tensor
) -> Tensor:
    """Return the log-probability of each token after `ids`, (ROWS,); -inf: not allowed.

    Args:
        weights: the model.
        ids: all tokens so far.
        goal: how many of them are the goal.
        reading: their reading positions.
        allowed: what the grammar allows, (ROWS,).
    """
    with torch.inference_mode():
        tokens, end = torch.tensor([ids]), torch.tensor([[len(ids)]])
        context = states(weights, tokens, torch.tensor([goal]), torch.tensor([reading]).float())
        return token_logprobs(weights, context, tokens, end, allowed[None, None])[0, 0]


def rows_of(allowed: tuple[int, ...] | None) -> Tensor:
    """Return a mask of the rows in `allowed`, None standing for all operands, (ROWS,)."""
    if allowed is None:
        return is_operand(torch.arange(ROWS))
    return torch.zeros(ROWS, dtype=torch.bool).index_fill(0, torch.tensor(allowed), True)


def is_operand(ids: Tensor) -> Tensor:
    """Tell which ids are aliases: these can be copied only."""
    return (ids >= FIRST_ALIAS) & (ids < FIRST_ALIAS + ALIASES)


def _normed(x: Tensor) -> Tensor:
    return functional.rms_norm(x, (WIDTH,))


def _visible(goals: Tensor, reading: Tensor) -> Tensor:
    """Tell which token, (B, 1, T, T), sees which: see the module's docstring."""
    position = torch.arange(reading.shape[1])
    in_goal = position < goals[:, None]
    ahead = reading[:, None, :] - reading[:, :, None]
    near = torch.where(
        in_goal[:, :, None], ahead.abs() <= NEAR, (ahead >= -BEHIND) & (ahead <= AHEAD)
    )
    earlier = position <= position[:, None]
    return torch.where(in_goal[:, None, :], near, earlier & ~in_goal[:, :, None])[:, None]


def _rotation(reading: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotary embedding (Su et al. 2021), (B, 1, T, D / 2H)."""
    size = WIDTH // HEADS // 2
    rates = ROTARY_BASE ** (-torch.arange(size) / size)
    angles = reading[:, None, :, None] * rates
    return angles.cos(), angles.sin()


def _rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


def _mixed(mix: Tensor, x: Tensor) -> Tensor:
    """A short causal depthwise convolution: each token sees its neighbours from the start."""
    padded = functional.pad(x, (0, 0, SPAN - 1, 0))
    return sum((mix[k] * padded[:, k : k + x.shape[1]] for k in range(SPAN)), torch.zeros(()))


def _attention(
    weights: Weights, layer: int, x: Tensor, visible: Tensor, turn: tuple[Tensor, Tensor]
) -> Tensor:
    rows, length, _ = x.shape
    heads = (x @ weights[f"{layer}.attention_in"]).view(rows, length, 3, HEADS, WIDTH // HEADS)
    query, key, value = heads.permute(2, 0, 3, 1, 4)
    read = functional.scaled_dot_product_attention(
        _rotated(query, turn), _rotated(key, turn), value, attn_mask=visible
    )
    return read.transpose(1, 2).reshape(rows, length, WIDTH) @ weights[f"{layer}.attention_out"]
