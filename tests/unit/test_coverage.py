"""Coverage: what tasks ask for is counted, what none asks for is said, pairs of rules come first.

The order of proposals is part of it: rules are covered pairwise before they are covered deeper.
"""

from collections import Counter
from itertools import combinations, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.coverage import Coverage, coverage, new_pairs, pairs_of, possible_pairs
from flywheel.families import Axis
from flywheel.families.catalogue import FAMILIES
from flywheel.generate import generated
from flywheel.propose import cells, propose, wishes
from flywheel.splits import combination, split_of
from schemas.config import CycleConfig, ProposeConfig
from schemas.lineage import Split
from schemas.task import Capability, TaskManifest
from tests.factories import make_manifest
from tests.real_tasks import real_task

ORDERS = FAMILIES["orders"]
NAMES = st.lists(st.sampled_from("abcdefg"), unique=True)


def orders_coverage(*tasks: TaskManifest) -> Coverage:
    return coverage(tasks, [ORDERS])


def test_tasks_are_counted_by_family_kind_of_rule_and_capability() -> None:
    tasks = (
        real_task("keep-last", "half-up"),
        real_task("keep-last", "at-least"),
        real_task("since", family="logs"),
    )
    found = coverage(tasks, [ORDERS, FAMILIES["logs"]])
    assert found.tasks == {"orders": 2, "logs": 1}
    assert found.axes == {
        (Axis.DUPLICATES, "orders"): 2,
        (Axis.ROUNDING, "orders"): 1,
        (Axis.SCOPE, "orders"): 1,
        (Axis.DATES, "logs"): 1,
    }
    assert found.pairs == {"orders": (2, 26), "logs": (0, 20)}
    assert found.capabilities == Counter(
        (capability, task.family)
        for task in tasks
        for capability in (Capability.TOOL_DOCS, Capability.TOOL_CHOICE, Capability.DEPENDENCY)
    )


def test_a_pair_of_rules_counts_once_however_many_tasks_have_it() -> None:
    both = [real_task("keep-last", "half-up", seed=seed) for seed in range(3)]
    three = real_task("keep-last", "half-up", "at-least")
    assert orders_coverage(*both).pairs["orders"] == (1, 26)
    assert orders_coverage(*both, three).pairs["orders"] == (3, 26)


def test_other_seeds_and_names_cover_the_same() -> None:
    found = [
        orders_coverage(real_task("keep-last", "half-up", seed=seed, split=split))
        for seed, split in ((1, Split.TRAIN), (2, Split.TRAIN), (1, Split.DEV))
    ]
    assert found[0] == found[1] == found[2]


def test_what_no_task_asks_for_is_said_in_words() -> None:
    gaps = orders_coverage(real_task("keep-last", "half-up")).gaps
    assert "capability clarification" in gaps
    assert "capability choosing-tools" not in gaps
    assert "rules about join" in gaps
    assert "rules about rounding" not in gaps
    assert "25 of 26 rule pairs in orders" in gaps


def test_a_family_whose_pairs_are_all_covered_is_no_gap() -> None:
    tasks = [real_task(*pair, family="config") for pair in possible_pairs(FAMILIES["config"])]
    found = coverage(tasks, [FAMILIES["config"]])
    assert found.pairs["config"] == (len(tasks), len(tasks))
    assert not any("config" in gap for gap in found.gaps)


def test_nothing_covers_nothing() -> None:
    found = coverage([], FAMILIES.values())
    assert set(found.pairs) == set(FAMILIES)
    assert all(got == 0 < of for got, of in found.pairs.values())
    assert len(found.gaps) == len(Capability) + len(Axis) + len(FAMILIES)


def test_a_foreign_task_and_a_rule_that_its_family_lost_are_counted_as_tasks_only() -> None:
    tasks = (make_manifest(family="poetry", rules=("rhyme", "metre")), make_manifest())
    found = orders_coverage(*tasks)
    assert found.tasks == {"poetry": 1, "orders": 1}
    assert (found.axes, found.capabilities, found.things) == ({}, {}, {})
    assert found.pairs == {"orders": (0, 26)}


def test_business_objects_are_counted_by_capability() -> None:
    config = CycleConfig(
        propose=ProposeConfig(families=("orders",), new_tasks=6, things=("ticket", "parcel"))
    )
    held = {"seed", "dev", "holdout-1"}
    tasks = propose(config, wishes(config, (), held), 2, Counter())
    things = orders_coverage(*tasks).things
    assert {thing for thing, _ in things} == {"ticket", "parcel"}
    assert things["ticket", Capability.TOOL_DOCS] == things["parcel", Capability.TOOL_DOCS] == 3


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("a", [{"a"}]),
        ("ab", [{"a", "b"}]),
        ("cab", [{"a", "b"}, {"a", "c"}, {"b", "c"}]),
    ],
)
def test_pairs_of_few_rules_are_the_known_ones(rules: str, found: list[set[str]]) -> None:
    assert pairs_of(rules) == set(map(frozenset, found))


@given(NAMES.filter(lambda rules: len(rules) > 1))
def test_there_are_n_over_two_pairs_of_n_rules_in_any_order(rules: list[str]) -> None:
    found = pairs_of(rules)
    assert len(found) == len(rules) * (len(rules) - 1) // 2
    assert found == pairs_of(reversed(rules))
    assert all(len(pair) == 2 and pair <= set(rules) for pair in found)


@given(NAMES, NAMES, NAMES)
def test_what_is_covered_is_never_new_and_more_coverage_never_makes_it_newer(
    rules: list[str], some: list[str], more: list[str]
) -> None:
    few, many = pairs_of(some), pairs_of(some) | pairs_of(more)
    assert new_pairs(rules, pairs_of(rules)) == 0
    assert 0 <= new_pairs(rules, many) <= new_pairs(rules, few) <= new_pairs(rules, set())
    assert new_pairs(rules, set()) == len(pairs_of(rules))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pairs_of_a_family_are_those_that_can_go_together(family: str) -> None:
    rules = FAMILIES[family].rules
    clashing = {frozenset(p) for p in FAMILIES[family].neighbours.items() if set(p) <= set(rules)}
    found = possible_pairs(FAMILIES[family])
    assert not found & clashing
    every = set(map(frozenset, combinations(rules, 2)))
    assert found == every - clashing - FAMILIES[family].clashes


# The order of proposals


def reachable(family: str) -> set[frozenset[str]]:
    """The pairs in a family's training cells; a rule alone is the pair of itself."""
    train = [c for c in cells(FAMILIES, [family]) if split_of(c.name) is Split.TRAIN]
    return {pair for cell in train for pair in pairs_of(cell.rules)}


def gains(tasks: list[TaskManifest]) -> list[int]:
    """How many pairs that no task before had each task brings."""
    covered: set[frozenset[str]] = set()
    found = []
    for task in tasks:
        found.append(new_pairs(task.rules, covered))
        covered |= pairs_of(task.rules)
    return found


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["orders", "logs", "config", "encoding"]), st.integers(0, 10_000))
def test_every_pair_is_covered_before_any_cell_comes_again(family: str, seed: int) -> None:
    wanted = reachable(family)
    tasks = list(islice(generated(FAMILIES, [family], seed), len(wanted)))
    found = gains(tasks)
    assert found == sorted(found, reverse=True)
    assert sum(found) == len(wanted)
    first = tasks[: sum(gain > 0 for gain in found)]
    assert len({task.rules for task in first}) == len(first) < len(wanted)


def test_once_the_pairs_are_covered_the_cells_come_equally_often() -> None:
    train = [c for c in cells(FAMILIES, ["config"]) if split_of(c.name) is Split.TRAIN]
    tasks = islice(generated(FAMILIES, ["config"], 3), 2 * len(train))
    counts = Counter(combination(task.family, task.rules) for task in tasks)
    assert set(counts.values()) == {2}
    assert set(counts) == {cell.name for cell in train}


def test_families_come_in_turn() -> None:
    tasks = islice(generated(FAMILIES, ["orders", "config", "logs"], 5), 9)
    assert [task.family for task in tasks] == ["config", "logs", "orders"] * 3


@pytest.mark.parametrize("seed", range(10))
def test_a_pair_that_earlier_cycles_left_out_comes_first(seed: int) -> None:
    """Before cells that no task has either, but whose pairs other cells covered."""
    pair, covered = frozenset({"keep-last", "at-least"}), set[frozenset[str]]()
    held: Counter[str] = Counter()
    for cell in cells(FAMILIES, ["orders"]):
        without = split_of(cell.name) is Split.TRAIN and not pair <= cell.rules
        if without and new_pairs(cell.rules, covered):
            held[cell.name] += 1
            covered |= pairs_of(cell.rules)
    config = CycleConfig(propose=ProposeConfig(families=("orders",), new_tasks=1), seed=seed)
    (first,) = propose(config, wishes(config, (), {"seed", "dev", "holdout-1"}), 2, held)
    assert pair <= set(first.rules)
