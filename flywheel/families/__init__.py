"""Task families: generators of executable tasks with rules, deterministic in their seed.

A family makes a case from a seed, says its goal in words, solves it by a script of tool calls (the
reference) and again in another way (the alternative), and computes the right answer by a further
implementation that shares no code with the tools. A rule is live on a case when leaving it out, or
taking its wrong neighbour, changes the right answer; cases where a wanted rule is not live are
drawn again.

Forward families state rules on data. Reverse families start from the goal state: each rule is a
corruption that was applied to it, the reference undoes them in reverse order, and `target` for
some of the rules is the state in which those, and only those, have been undone. So corruptions
that mask each other are not live.
"""

import hashlib
import inspect
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from random import Random
from typing import Generic, TypeVar

from flywheel.families.lexicon import Lexicon
from schemas.file import File
from schemas.task import Capability, Exercise, Requirement, ScriptedUser
from schemas.tool import Script, ToolCall, ToolSpec

Rules = frozenset[str]
Case = TypeVar("Case")


class Axis(StrEnum):
    """What a rule is about: the kinds of conditions that change decisions."""

    DUPLICATES = "duplicates"
    MISSING = "missing-fields"
    DATES = "date-and-zone"
    UNITS = "units"
    ROUNDING = "rounding"
    ORDER = "sort-and-tie-break"
    JOIN = "join"
    SCOPE = "scope"
    OUTPUT = "output-constraints"
    SIDE_EFFECTS = "side-effects"
    PRIORITY = "source-priority"
    REFUSAL = "refusal"
    REPAIR = "repair"
    """A corruption to be undone."""


@dataclass(frozen=True)
class Family(Generic[Case]):
    """One kind of task. All functions are pure."""

    name: str
    tools: tuple[ToolSpec, ...]
    rules: Mapping[str, Axis]
    """Each rule with what it is about, in the order in which a goal states them."""
    neighbours: Mapping[str, str]
    """Rule → the wrong rule that it is most easily taken for; the two never go together."""
    build: Callable[[Rules, Random, Lexicon], Case]
    """Make a case's data and operands; the rules, where data is there for one of them only."""
    inputs: Callable[[Case], tuple[File, ...]]
    """The files of the initial state."""
    goal: Callable[[Case, Rules, Random], tuple[Requirement, ...]]
    """The task in words, sentence by sentence; `Random` chooses the wording only."""
    reference: Callable[[Case, Rules], Script]
    """Solve it by tool calls."""
    alternative: Callable[[Case, Rules], Script]
    """Solve it otherwise: by other steps or another order, or by `bash`."""
    target: Callable[[Case, Rules], tuple[File, ...]]
    """What is to be left behind, by a further implementation; the exercises' outputs included."""
    artifacts: Callable[[Case], tuple[str, ...]]
    """What is taken out to be graded, apart from protected files."""
    checks: Callable[[Rules], tuple[str, ...]]
    """The done-condition."""
    grader: str = "compare"
    protected: Callable[[Case], tuple[str, ...]] = lambda case: ()
    """Inputs that must be left as they were."""
    exercises: Callable[[Case], tuple[Exercise, ...]] = lambda case: ()
    """Hidden runs of a program that is to be delivered."""
    user: Callable[[Case, Rules], ScriptedUser | None] = lambda case, rules: None
    """Who knows what the goal leaves out."""
    depth: Callable[[Case, Rules], int] | None = None
    """Longest chain of calls that each need the one before; None: the whole reference."""
    rounds: Callable[[Case, Rules], int] = lambda case, rules: 0
    """Fewest observations that have to be read before the last call can be chosen."""
    capabilities: frozenset[Capability] = frozenset()
    """Besides what follows from a task itself."""
    clashes: frozenset[frozenset[str]] = field(default=frozenset())
    """Further pairs of rules that can't both be live."""

    @property
    def version(self) -> str:
        """`name@…`, a digest of the module that defines the family."""
        source = inspect.getsource(inspect.getmodule(self.build) or self.build)
        return f"{self.name}@{hashlib.sha256(source.encode()).hexdigest()[:12]}"

    def allows(self, rules: Rules) -> bool:
        """Tell whether these rules can be live together."""
        clash = self.clashes | {frozenset(pair) for pair in self.neighbours.items()}
        return bool(rules) and not any(pair <= rules for pair in clash)

    def left_out(self, rules: Rules) -> dict[str, Rules]:
        """Return the wrong readings of `rules`: mutant name → the rules that it follows."""
        without = {f"without-{rule}": rules - {rule} for rule in sorted(rules)}
        swapped = {
            f"{self.neighbours[rule]}-for-{rule}": rules - {rule} | {self.neighbours[rule]}
            for rule in sorted(rules & self.neighbours.keys())
        }
        return without | swapped

    def is_live(self, case: Case, rules: Rules) -> bool:
        """Tell whether every wrong reading of the rules gives another answer."""
        right = self.target(case, rules)
        return all(self.target(case, wrong) != right for wrong in self.left_out(rules).values())


def say(
    sentences: Mapping[str, Sequence[str]],
    rules: Rules,
    rng: Random,
    checks: Sequence[str],
    **literals: str,
) -> dict[str, Requirement]:
    """Return rule → one of its wordings, literals filled in, in the order of `sentences`.

    A wording is drawn for every rule, stated or not: a pair of tasks words the others alike.

    Args:
        sentences: rule → wordings that mean the same.
        rules: those to state.
        rng: chooses the wording.
        checks: what fails where such a rule is not followed.
        literals: fill the wordings' braces.
    """
    drawn = {rule: rng.choice(wordings) for rule, wordings in sentences.items()}
    return {
        rule: Requirement(sentence=wording.format(**literals), checks=tuple(checks), rule=rule)
        for rule, wording in drawn.items()
        if rule in rules
    }


def by_python(name: str, arguments: Mapping[str, object]) -> Script:
    """Return a script of one `bash` call that runs `alternatives/NAME.py`.

    Args:
        name: a program beside this module, of its own: it shares no code with tools or targets.
        arguments: handed over as JSON, its only argument.
    """
    words = ["python3", "-c", _alternative(name), json.dumps(arguments, sort_keys=True)]
    return (ToolCall(tool="bash", arguments={"command": shlex.join(words)}),)


@cache
def _alternative(name: str) -> str:
    return (files(__package__) / "alternatives" / f"{name}.py").read_text("utf-8")
