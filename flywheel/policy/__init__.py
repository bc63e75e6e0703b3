"""Who acts: one Protocol, for scripted policies and policies that learn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.attempt import Sampling, Tokens, Turn
from schemas.task import Brief
from schemas.tool import ToolCall


@dataclass(frozen=True, slots=True)
class Action:
    """What a policy does next."""

    call: ToolCall | None
    """None: nothing that could be read as a call."""
    raw: str
    tokens: Tokens | None = None


class Policy(Protocol):
    """A model that acts. It sees the brief and its own turns, and nothing else."""

    @property
    def version(self) -> str:
        """Changes whenever the weights or the script change."""

    def act(self, brief: Brief, turns: Sequence[Turn], sampling: Sampling, seed: int) -> Action:
        """Return the next action; the same arguments give the same action.

        Raises PolicyError where the model could not be asked.
        """
