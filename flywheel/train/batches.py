"""Demonstrations as tensors: encoded once, changed at every use so that less can be memorised.

Aliases are re-drawn, and the distance between neighbouring tokens of the goal is jittered: which
sentence comes next stays, exact offsets don't.

Shapes: N rows, T tokens, M choices (tokens of calls), B rows of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from flywheel.policy.embedded.decoder import is_operand, rows_of
from flywheel.policy.embedded.encoding import Allowed, Encoded
from flywheel.policy.embedded.vocabulary import ALIASES, FIRST_ALIAS, PAD, ROWS

JITTER = 0.5
"""Largest change of the distance between two tokens, which is 1."""


@dataclass(frozen=True)
class Batch:
    """What one step needs. All positions count from the front."""

    ids: Tensor
    """(B, T)"""
    goals: Tensor
    """(B,)"""
    reading: Tensor
    """(B, T)"""
    at: Tensor
    """Positions of the choices, (B, M), 1 where there is none."""
    real: Tensor
    """Which of them are choices, (B, M)."""
    allowed: Tensor
    """What each is chosen from, (B, M, ROWS); everything where there is none."""

    @property
    def tokens(self) -> int:
        """How many tokens carry loss."""
        return int(self.real.sum())


class Rows:
    """Encoded demonstrations, padded to the longest."""

    def __init__(self, rows: Sequence[Encoded]) -> None:
        sets: dict[Allowed, int] = {tuple(range(ROWS)): 0}
        width = max(len(row.ids) for row in rows)
        most = max(len(row.targets) for row in rows)
        self.ids = torch.full((len(rows), width), PAD)
        self.at = torch.ones(len(rows), most, dtype=torch.long)
        self.set = torch.zeros_like(self.at)
        self.reading = torch.zeros_like(self.ids)
        self.goals = torch.tensor([row.goal for row in rows])
        self.lengths = torch.tensor([len(row.ids) for row in rows])
        self.choices = torch.tensor([len(row.targets) for row in rows])
        for number, row in enumerate(rows):
            self.ids[number, : len(row.ids)] = torch.tensor(row.ids)
            self.reading[number, : len(row.ids)] = torch.tensor(row.reading)
            for index, (at, allowed) in enumerate(row.targets):
                self.at[number, index] = at
                self.set[number, index] = sets.setdefault(allowed, len(sets))
        self.allowed = torch.stack([rows_of(allowed) for allowed in sets])

    def batch(self, chosen: Tensor, generator: torch.Generator) -> Batch:
        """Return rows `chosen`, (B,), cut to the longest of them, under new aliases."""
        width, most = int(self.lengths[chosen].max()), int(self.choices[chosen].max())
        ids, sets = self.ids[chosen, :width], self.set[chosen, :most]
        steps = 1 + JITTER * (2 * torch.rand(ids.shape, generator=generator) - 1)
        places = steps.cumsum(1) - steps[:, :1]
        order = torch.rand(len(chosen), ALIASES, generator=generator).argsort(1)
        redrawn = FIRST_ALIAS + order.gather(1, (ids - FIRST_ALIAS).clamp(0, ALIASES - 1))
        return Batch(
            ids=torch.where(is_operand(ids), redrawn, ids),
            goals=self.goals[chosen],
            reading=places.gather(1, self.reading[chosen, :width]),
            at=self.at[chosen, :most],
            real=sets > 0,
            allowed=self.allowed[sets],
        )
