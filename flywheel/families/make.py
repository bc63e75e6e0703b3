"""Making tasks from a family: one with all of its rules live, or a matched pair."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from flywheel.errors import ManifestError
from flywheel.families import Case, Family, Rules
from flywheel.families.lexicon import Lexicon
from flywheel.graders import grader_version
from schemas.base import seed_from
from schemas.task import (
    Brief,
    Budget,
    Capability,
    Environment,
    Features,
    Grader,
    Mutant,
    MutantKind,
    Requirement,
    Sealed,
    Source,
    TaskManifest,
)
from schemas.tool import Script, ToolSpec

MAX_DRAWS = 200
LONG_HORIZON = 7
"""Calls from which on a reference counts as a long horizon."""
CHOICE = 4
"""Tools from which on picking the right one counts as a choice."""


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
    if not family.allows(rules) or not rules <= family.rules.keys():
        raise ManifestError(f"family {family.name}: rules {sorted(rules)} can't go together")
    for case, rng in _draws(family, rules, seed, lexicon):
        if family.is_live(case, rules):
            return _manifest(family, case, rules, seed, rng, lexicon, budget, source)
    raise _never_live(family, rules, seed)


def make_pair(
    family: Family[Case],
    rules: Rules,
    rule: str,
    seed: int,
    lexicon: Lexicon,
    budget: Budget,
    source: Source,
) -> tuple[TaskManifest, TaskManifest]:
    """Return the task with `rule` live, and the same case without it: its child.

    A claim that `rule` is what a policy gets wrong predicts that it fails the first one only.

    Raises:
        ManifestError: the rules clash, `rule` is none of them, or no case was found where all
            are live, the others also without `rule`.
    """
    if rule not in rules or not family.allows(rules) or not rules <= family.rules.keys():
        raise ManifestError(f"family {family.name}: no pair on {rule!r} with {sorted(rules)}")
    others = rules - {rule}
    for case, rng in _draws(family, rules, seed, lexicon):
        if family.is_live(case, rules) and family.is_live(case, others):
            wording = rng.getstate()
            first = _manifest(family, case, rules, seed, rng, lexicon, budget, source)
            rng.setstate(wording)
            child = Source.model_validate({**dict(source), "parent": first.task_id})
            return first, _manifest(family, case, others, seed, rng, lexicon, budget, child)
    raise _never_live(family, rules, seed)


def _draws(
    family: Family[Case], rules: Rules, seed: int, lexicon: Lexicon
) -> Iterator[tuple[Case, Random]]:
    for draw in range(MAX_DRAWS):
        rng = Random(seed_from(family.name, sorted(rules), lexicon.split, seed, draw))
        yield family.build(rules, rng, lexicon), rng


def _never_live(family: Family[Case], rules: Rules, seed: int) -> ManifestError:
    return ManifestError(
        f"family {family.name}: no case with {sorted(rules)} live in {MAX_DRAWS} draws of "
        f"seed {seed}"
    )


def _manifest(
    family: Family[Case],
    case: Case,
    rules: Rules,
    seed: int,
    rng: Random,
    lexicon: Lexicon,
    budget: Budget,
    source: Source,
) -> TaskManifest:
    requirements = family.goal(case, rules, rng)
    reference = family.reference(case, rules)
    return TaskManifest(
        family=family.name,
        family_version=family.version,
        rules=tuple(sorted(rules)),
        seed=seed,
        operands=_operands(family.tools, reference),
        brief=Brief(
            goal=" ".join(requirement.sentence for requirement in requirements),
            environment=Environment(files=family.inputs(case)),
            tools=family.tools,
            artifacts=(*family.artifacts(case), *family.protected(case)),
            budget=budget,
        ),
        sealed=Sealed(
            grader=Grader(
                program=family.grader,
                version=grader_version(family.grader),
                checks=family.checks(rules),
                expected=family.target(case, rules),
                protected=family.protected(case),
                exercises=family.exercises(case),
            ),
            reference=reference,
            alternatives=(family.alternative(case, rules),),
            mutants=_mutants(family, case, rules),
            requirements=requirements,
            user=family.user(case, rules),
        ),
        features=_features(family, case, rules, reference, requirements, lexicon),
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


def _mutants(family: Family[Case], case: Case, rules: Rules) -> tuple[Mutant, ...]:
    """One mutant for each wrong reading of the rules."""
    return tuple(
        Mutant(
            name=name,
            kind=MutantKind.RULE_LEFT_OUT if others < rules else MutantKind.RULE_SWAPPED,
            rule=next(iter(rules - others)),
            script=family.reference(case, others),
        )
        for name, others in family.left_out(rules).items()
    )


def _features(
    family: Family[Case],
    case: Case,
    rules: Rules,
    reference: Script,
    requirements: Sequence[Requirement],
    lexicon: Lexicon,
) -> Features:
    user = family.user(case, rules)
    depth = family.depth(case, rules) if family.depth else len(reference)
    capabilities = {
        *family.capabilities,
        *([Capability.TOOL_DOCS] if reference else []),
        *([Capability.TOOL_CHOICE] if len(family.tools) > CHOICE else []),
        *([Capability.DEPENDENCY] if depth > 1 else []),
        *([Capability.LONG_HORIZON] if len(reference) >= LONG_HORIZON else []),
        *([Capability.CLARIFICATION] if user else []),
    }
    return Features(
        depth=depth,
        missing=len(user.answers) if user else 0,
        rounds=family.rounds(case, rules),
        live_rules=len(rules),
        capabilities=tuple(sorted(capabilities)),
        thing=lexicon.thing if any(lexicon.thing in r.sentence for r in requirements) else "",
    )
