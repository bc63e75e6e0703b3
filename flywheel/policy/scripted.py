"""A policy that follows a script: references, mutants and doing nothing are all this."""

from collections.abc import Sequence
from dataclasses import dataclass

from flywheel.policy import Action
from schemas.attempt import Sampling, Turn
from schemas.base import content_id
from schemas.task import Brief
from schemas.tool import SUBMIT, Script


@dataclass(frozen=True)
class ScriptedPolicy:
    """Makes the calls of `script` in order, then submits."""

    name: str
    script: Script

    @property
    def version(self) -> str:
        """`name@…`, a function of the script."""
        return f"{self.name}@{content_id('script', self.script).removeprefix('script-')}"

    def act(self, brief: Brief, turns: Sequence[Turn], sampling: Sampling, seed: int) -> Action:
        """Return the call at this turn, whatever was observed."""
        call = self.script[len(turns)] if len(turns) < len(self.script) else SUBMIT
        return Action(call=call, raw=call.model_dump_json())
