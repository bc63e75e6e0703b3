"""Proposals: deterministic, least covered first, and where a hypothesis asks for them."""

from collections import Counter

import pytest

from flywheel.errors import ConfigError
from flywheel.families.catalogue import FAMILIES
from flywheel.propose import cells, propose, wishes
from flywheel.splits import assign_splits, combination, fingerprint, split_of
from schemas.config import CycleConfig, ProposeConfig
from schemas.hypothesis import DataChange, Hypothesis, Prediction
from schemas.lineage import Split
from schemas.task import SourceKind, TaskManifest

SMALL = ProposeConfig(seed_tasks=20, new_tasks=20, dev_tasks=12, holdout_tasks=6, per_hypothesis=5)
CONFIG = CycleConfig(propose=SMALL)
HELD = {"seed", "dev", "holdout-1"}


def first_cycle(config: CycleConfig = CONFIG) -> tuple[TaskManifest, ...]:
    return propose(config, wishes(config, (), ()), 1, Counter())


def hypothesis(family: str, *rules: str) -> Hypothesis:
    return Hypothesis(
        cycle_id="cycle-0001",
        cluster_id="clu-1",
        claim="claim",
        change=DataChange(family=family, rules=rules),
        prediction=Prediction(
            slice=f"family:{family}",
            treatment="new-uniform",
            control="old-uniform",
            at_least=0.1,
        ),
        refuted_if="less",
    )


def test_the_same_configuration_proposes_the_same_tasks() -> None:
    assert [t.version_id for t in first_cycle()] == [t.version_id for t in first_cycle()]


def test_the_first_cycle_makes_every_kind_in_the_numbers_asked_for() -> None:
    kinds = Counter(task.source.kind for task in first_cycle())
    assert kinds == {
        SourceKind.SEED: 20,
        SourceKind.EVALUATION: 12,
        SourceKind.HOLDOUT: 6,
        SourceKind.COVERAGE: 20,
    }


def test_every_proposal_is_admitted_to_the_split_it_was_made_for() -> None:
    tasks = first_cycle()
    marks = {task.task_id: fingerprint(task) for task in tasks}
    events = assign_splits(tasks, (), marks, "cycle-0001")
    assert {event.reason for event in events} == {"assigned"}
    splits = Counter(event.split for event in events)
    assert splits == {Split.TRAIN: 40, Split.DEV: 12, Split.HOLDOUT: 6}


def test_evaluation_shares_no_operand_and_no_rule_combination_with_training() -> None:
    by_split: dict[Split, list[TaskManifest]] = {split: [] for split in Split}
    for task in first_cycle():
        by_split[split_of(combination(task.family, task.rules))].append(task)
    for other in (Split.DEV, Split.HOLDOUT):
        for what in (lambda t: set(t.operands), lambda t: {combination(t.family, t.rules)}):
            train = set().union(*(what(t) for t in by_split[Split.TRAIN]))
            assert not train & set().union(*(what(t) for t in by_split[other]))


def test_a_later_cycle_makes_new_training_tasks_only() -> None:
    first = first_cycle()
    later = propose(CONFIG, wishes(CONFIG, (), HELD), 2, Counter())
    assert {task.source.kind for task in later} == {SourceKind.COVERAGE}
    assert not {task.task_id for task in first} & {task.task_id for task in later}


def test_a_new_holdout_generation_makes_a_new_holdout_and_nothing_else_again() -> None:
    config = CycleConfig(propose=SMALL.model_copy(update={"holdout_generation": 2}))
    kinds = Counter(t.source.kind for t in propose(config, wishes(config, (), HELD), 2, Counter()))
    assert kinds == {SourceKind.HOLDOUT: 6, SourceKind.COVERAGE: 20}


def test_a_hypothesis_gets_tasks_with_its_rules_live_and_twins_without() -> None:
    asked = hypothesis("orders", "half-even")
    tasks = propose(CONFIG, wishes(CONFIG, [asked], HELD), 2, Counter())
    mine = [task for task in tasks if task.source.hypothesis == asked.hypothesis_id]
    assert len(mine) == 5
    assert all(task.source.kind is SourceKind.HYPOTHESIS for task in mine)
    *with_rule, twin = sorted(mine, key=lambda task: task.source.parent is not None)
    assert all("half-even" in task.rules for task in with_rule)
    (original,) = (task for task in with_rule if task.task_id == twin.source.parent)
    assert set(twin.rules) == set(original.rules) - {"half-even"}
    assert twin.brief.environment == original.brief.environment
    assert len(tasks) == 20


def test_hypotheses_never_take_more_than_the_new_tasks() -> None:
    many = [hypothesis("orders", rule) for rule in ("half-even", "keep-last", "at-least")]
    many += [hypothesis("logs"), hypothesis("config"), hypothesis("orders")]
    tasks = propose(CONFIG, wishes(CONFIG, many, HELD), 2, Counter())
    assert len(tasks) == 20


def test_the_least_covered_cells_come_first() -> None:
    train = [c.name for c in cells(FAMILIES, SMALL.families) if split_of(c.name) is Split.TRAIN]
    covered = Counter(dict.fromkeys(train, 1))
    fresh = dict.fromkeys(train[::12], 0)
    covered.update(Counter())
    for name in fresh:
        covered[name] = 0
    tasks = propose(CONFIG, wishes(CONFIG, (), HELD), 2, covered)
    made = Counter(combination(task.family, task.rules) for task in tasks)
    families = Counter(name.split(":")[0] for name in fresh)
    for family, count in families.items():
        mine = [name for name in made if name.startswith(family + ":")]
        assert len(set(mine) & set(fresh)) == min(count, len(mine))


def test_founding_rules_can_be_held_back() -> None:
    config = CycleConfig(propose=SMALL.model_copy(update={"seed_rules": ("at-least", "since")}))
    seeds = [t for t in first_cycle(config) if t.source.kind is SourceKind.SEED]
    assert seeds
    assert {rule for task in seeds for rule in task.rules} <= {"at-least", "since"}


def test_an_unknown_family_is_named_with_those_that_there_are() -> None:
    config = CycleConfig(propose=SMALL.model_copy(update={"families": ("orders", "poetry")}))
    with pytest.raises(ConfigError, match=r"'poetry'.*config, .*logs, orders"):
        wishes(config, (), ())


def test_a_wish_without_a_cell_says_what_to_change() -> None:
    config = CycleConfig(propose=SMALL.model_copy(update={"seed_rules": ("no-such-rule",)}))
    with pytest.raises(ConfigError, match="seed_rules"):
        first_cycle(config)
