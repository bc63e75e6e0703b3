"""Task families: generators of executable tasks with rules, deterministic in their seed.

A family makes a case from a seed, says its goal in words, solves it by a script of tool calls (the
reference) and computes the right answer by a second implementation that shares no code with the
tools. A rule is live on a case when leaving it out, or taking its wrong neighbour, changes the
right answer; cases where a wanted rule is not live are drawn again.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from flywheel.errors import ManifestError
from flywheel.families.lexicon import Lexicon
from flywheel.graders import grader_version
from schemas.base import seed_from
from schemas.task import (
    Brief,
    Budget,
    Environment,
    File,
    Grader,
    Mutant,
    MutantKind,
    Script,
    Sealed,
    Source,
    TaskManifest,
    ToolSpec,
)

Rules = frozenset[str]
Case = TypeVar("Case")
MAX_DRAWS = 200


@dataclass(frozen=True)
class Family(Generic[Case]):
    """One kind of task. All functions are pure."""

    name: str
    tools: tuple[ToolSpec, ...]
    rules: tuple[str, ...]
    """In the order in which a goal states them."""
    neighbours: Mapping[str, str]
    """Rule → the wrong rule that it is most easily taken for; the two never go together."""
    build: Callable[[Rules, Random, Lexicon], Case]
    """Make a case's data and operands; the rules, where a file is there for one of them only."""
    inputs: Callable[[Case], tuple[File, ...]]
    """The files of the initial state, which must not be changed."""
    goal: Callable[[Case, Rules, Random], str]
    """The task in words; `Random` chooses the wording only."""
    reference: Callable[[Case, Rules], Script]
    """Solve it by tool calls."""
    target: Callable[[Case, Rules], File]
    """The right answer, by a second implementation."""
    checks: Callable[[Rules], tuple[str, ...]]
    """The done-condition."""
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
    sentences: Mapping[str, Sequence[str]], rules: Rules, rng: Random, **literals: str
) -> dict[str, str]:
    """Return rule → one of its wordings, literals filled in, in the order of `sentences`."""
    return {
        rule: rng.choice(wordings).format(**literals)
        for rule, wordings in sentences.items()
        if rule in rules
    }


def make_task(
    family: Family[Case],
    rules: Rules,
    seed: int,
    lexicon: Lexicon,
    budget: Budget,
    source: Source,
) -> TaskManifest:
    """Return the task of this family, rules and seed, with every rule live.

    Raises:
        ManifestError: the rules clash, or no case with all of them live was found.
    """
    if not family.allows(rules) or not rules <= set(family.rules):
        raise ManifestError(f"family {family.name}: rules {sorted(rules)} can't go together")
    for draw in range(MAX_DRAWS):
        rng = Random(seed_from(family.name, sorted(rules), lexicon.split, seed, draw))
        case = family.build(rules, rng, lexicon)
        if family.is_live(case, rules):
            return _manifest(family, case, rules, seed, rng, budget, source)
    raise ManifestError(
        f"family {family.name}: no case with {sorted(rules)} live in {MAX_DRAWS} draws of "
        f"seed {seed}"
    )


def _manifest(
    family: Family[Case],
    case: Case,
    rules: Rules,
    seed: int,
    rng: Random,
    budget: Budget,
    source: Source,
) -> TaskManifest:
    inputs, target = family.inputs(case), family.target(case, rules)
    reference = family.reference(case, rules)
    return TaskManifest(
        family=family.name,
        family_version=family.version,
        rules=tuple(sorted(rules)),
        seed=seed,
        operands=_operands(family.tools, reference),
        brief=Brief(
            goal=family.goal(case, rules, rng),
            environment=Environment(files=inputs),
            tools=family.tools,
            artifacts=(target.path, *(file.path for file in inputs)),
            budget=budget,
        ),
        sealed=Sealed(
            grader=Grader(
                program="compare",
                version=grader_version("compare"),
                checks=family.checks(rules),
                expected=(target,),
            ),
            reference=reference,
            mutants=_mutants(family, case, rules, reference),
        ),
        source=source,
    )


def _operands(tools: Iterable[ToolSpec], script: Script) -> tuple[str, ...]:
    """Return the literals that a script names: its arguments, but for those chosen from a list."""
    chosen = {(tool.name, item.name) for tool in tools for item in tool.parameters if item.choices}
    named = (
        value
        for call in script
        for name, value in call.arguments.items()
        if (call.tool, name) not in chosen
    )
    return tuple(sorted(set(named)))


def _mutants(
    family: Family[Case], case: Case, rules: Rules, reference: Script
) -> tuple[Mutant, ...]:
    """One mutant for each wrong reading of the rules, and one with the last command dropped."""
    wrong = [
        Mutant(
            name=name,
            kind=MutantKind.RULE_LEFT_OUT if others < rules else MutantKind.RULE_SWAPPED,
            rule=next(iter(rules - others)),
            script=family.reference(case, others),
        )
        for name, others in family.left_out(rules).items()
    ]
    dropped = Mutant(
        name="last-command-dropped",
        kind=MutantKind.COMMAND_DROPPED,
        rule=None,
        script=reference[:-1],
    )
    return (*wrong, dropped)
