"""Matched pairs: one case, told and graded with a rule and without it."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_pair
from schemas.lineage import Split
from schemas.task import Budget, MutantKind, Source, SourceKind, TaskManifest
from tests.programs import attempt

SOURCE = Source(kind=SourceKind.COVERAGE, uri="paired-1", licence="Apache-2.0", hypothesis="hyp-1")
RUN_HERE = ("orders", "logs", "config")
"""Families whose tools and grader run in this process."""


def pair(
    family: str, rules: set[str] | frozenset[str], rule: str, seed: int = 0
) -> tuple[TaskManifest, TaskManifest]:
    lexicon = Lexicon(Split.TRAIN)
    return make_pair(FAMILIES[family], frozenset(rules), rule, seed, lexicon, Budget(), SOURCE)


SETS = {
    name: [
        rules
        for size in (1, 2, 3)
        for rules in map(frozenset, combinations(family.rules, size))
        if family.allows(rules)
    ]
    for name, family in FAMILIES.items()
}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[TaskManifest, TaskManifest, str]:
    """A pair of any family, and the rule that the second one does without."""
    name = draw(st.sampled_from(sorted(FAMILIES)))
    rules = draw(st.sampled_from(SETS[name]))
    rule = draw(st.sampled_from(sorted(rules)))
    return (*pair(name, rules, rule, draw(st.integers(0, 10_000))), rule)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_both_stand_in_one_environment_and_differ_by_the_rule_and_its_answer(
    made: tuple[TaskManifest, TaskManifest, str],
) -> None:
    first, twin, rule = made
    assert set(twin.rules) == set(first.rules) - {rule}
    assert rule in first.rules
    for part in ("environment", "tools", "artifacts", "budget"):
        assert getattr(twin.brief, part) == getattr(first.brief, part)
    assert twin.sealed.grader.expected != first.sealed.grader.expected
    assert (twin.family, twin.seed) == (first.family, first.seed)
    assert twin.task_id != first.task_id


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_the_other_rules_are_told_in_the_same_words(
    made: tuple[TaskManifest, TaskManifest, str],
) -> None:
    first, twin, rule = made
    told = [
        {item.rule: item.sentence for item in task.sealed.requirements if item.rule}
        for task in (first, twin)
    ]
    assert told[1] == {name: words for name, words in told[0].items() if name != rule}
    assert first.brief.goal != twin.brief.goal


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_the_twin_is_solved_by_what_leaves_the_rule_out(
    made: tuple[TaskManifest, TaskManifest, str],
) -> None:
    first, twin, rule = made
    (mutant,) = (
        m for m in first.sealed.mutants if m.rule == rule and m.kind is MutantKind.RULE_LEFT_OUT
    )
    assert mutant.script == twin.sealed.reference


@settings(max_examples=20, deadline=None)
@given(pairs())
def test_the_twin_is_the_child_of_the_first_and_keeps_its_source(
    made: tuple[TaskManifest, TaskManifest, str],
) -> None:
    first, twin, _ = made
    assert first.source == SOURCE
    assert dict(twin.source) == {**dict(SOURCE), "parent": first.task_id}


@pytest.mark.parametrize(
    ("family", "rule"), [(name, rule) for name in RUN_HERE for rule in FAMILIES[name].rules]
)
def test_who_overlooks_the_rule_fails_the_first_and_passes_the_twin(family: str, rule: str) -> None:
    others = (other for other in FAMILIES[family].rules if other != rule)
    partner = next(o for o in others if FAMILIES[family].allows(frozenset({rule, o})))
    for rules in ({rule}, {rule, partner}):
        first, twin = pair(family, rules, rule)
        assert all(attempt(first, first.sealed.reference).values())
        assert not all(attempt(first, twin.sealed.reference).values())
        assert all(attempt(twin, twin.sealed.reference).values())
        assert all(attempt(twin, ()).values()) is False


def test_known_pair_of_half_up_tells_one_sentence_less_and_expects_unrounded_totals() -> None:
    first, twin = pair("orders", {"half-up", "at-least"}, "half-up")
    (rounding,) = (r.sentence for r in first.sealed.requirements if r.rule == "half-up")
    follow = "Follow these rules in order. "
    assert follow in first.brief.goal
    assert first.brief.goal.replace(f"{rounding} ", "").replace(follow, "") == twin.brief.goal
    (whole,), (exact,) = (task.sealed.grader.expected for task in (first, twin))
    totals = [line.split(",")[2] for line in whole.content.splitlines()[1:]]
    assert all(total.endswith(".0") for total in totals)
    assert whole.content != exact.content


def test_the_same_arguments_make_the_same_pair_and_another_seed_another() -> None:
    rules = {"keep-last", "half-even"}
    assert pair("orders", rules, "keep-last") == pair("orders", rules, "keep-last")
    here, there = pair("orders", rules, "keep-last"), pair("orders", rules, "keep-last", 1)
    assert here[0].brief.environment != there[0].brief.environment


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ({"keep-last"}, "half-even"),
        ({"keep-last", "keep-first"}, "keep-last"),
        ({"keep-last", "unheard-of"}, "keep-last"),
        (set(), "keep-last"),
    ],
)
def test_a_pair_that_can_not_be_is_refused_with_family_and_rule(rules: set[str], rule: str) -> None:
    with pytest.raises(ManifestError, match=f"family orders: no pair on '{rule}'"):
        pair("orders", rules, rule)
