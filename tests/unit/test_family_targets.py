"""What families are made of: operands of a split, right answers worked out by hand."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.families import config, logs, orders
from flywheel.families.lexicon import Lexicon
from schemas.file import File
from schemas.lineage import Split


@given(st.integers(0, 10_000), st.integers(0, 50), st.integers(2, 20))
def test_a_lexicon_draws_numbers_of_its_split_within_the_bounds(
    seed: int, low: int, width: int
) -> None:
    drawn = [Lexicon(split).number(Random(seed), low, low + width) for split in Split]
    assert all(low <= number <= low + width for number in drawn)
    assert len(set(drawn)) == len(Split)


ORDERS = orders.Orders(
    source="in.csv",
    output="out.csv",
    columns=("order", "group", "status", "quantity", "amount"),
    rows=(
        ("a", "x", "paid", 5, 10),  # 2.50
        ("b", "y", "paid", 9, 14),  # 3.50
        ("a", "y", "open", 7, 6),  # 1.50
        ("c", "x", "paid", 9, None),
    ),
    status="paid",
    quantity=6,
    thing="order",
)


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        (set(), ["x,2,2.5", "y,2,5.0"]),
        ({"keep-last"}, ["x,1,0.0", "y,2,5.0"]),
        ({"keep-first"}, ["x,2,2.5", "y,1,3.5"]),
        ({"skip-missing"}, ["x,1,2.5", "y,2,5.0"]),
        ({"only-status"}, ["x,2,2.5", "y,1,3.5"]),
        ({"at-least"}, ["x,1,0.0", "y,2,5.0"]),
        ({"half-even"}, ["x,2,2.0", "y,2,6.0"]),
        ({"half-up"}, ["x,2,3.0", "y,2,6.0"]),
        ({"largest-first"}, ["y,2,5.0", "x,2,2.5"]),
    ],
)
def test_orders_are_summarised_as_worked_out_by_hand(rules: set[str], answer: list[str]) -> None:
    (right,) = orders.target(ORDERS, frozenset(rules))
    assert right.content.splitlines() == ["group,count,total", *answer]


LOG = logs.Log(
    source="in.log",
    output="out.json",
    fields=("message", "minute", "level", "service", "code"),
    lines=(
        ("a", 1, "info", "x", "7"),
        ("b", 2, "warn", "y", ""),
        ("a", 9, "warn", "y", ""),
        ("c", 9, "warn", "z", "8"),
    ),
    level="warn",
    service="z",
    minute=2,
)


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        (set(), {"x": 1, "y": 2, "z": 1}),
        ({"repeats-first"}, {"x": 1, "y": 1, "z": 1}),
        ({"repeats-last"}, {"y": 2, "z": 1}),
        ({"with-code"}, {"x": 1, "z": 1}),
        ({"only-level"}, {"y": 2, "z": 1}),
        ({"not-service"}, {"x": 1, "y": 2}),
        ({"since"}, {"y": 2, "z": 1}),
        ({"busiest-first"}, {"y": 2, "x": 1, "z": 1}),
        ({"repeats-last", "with-code"}, {"z": 1}),
    ],
)
def test_logs_are_counted_as_worked_out_by_hand(rules: set[str], answer: dict[str, int]) -> None:
    (right,) = logs.target(LOG, frozenset(rules))
    rows = json.loads(right.content)
    assert [(row["service"], row["count"]) for row in rows] == list(answer.items())


CONFIG = config.Config(
    base="base.ini",
    override="over.ini",
    output="out.env",
    base_settings=(("a.one", "red"), ("a.two", "5"), ("b.six", "blue")),
    override_settings=(("a.two", "8"), ("b.new", "green")),
    renamed=("b.six", "b.ten"),
    seconds="a.two",
    default=("b.gone", "grey"),
)
BASE = {"a.one": "red", "a.two": "5", "b.six": "blue"}


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        (set(), BASE),
        ({"override-wins"}, BASE | {"a.two": "8", "b.new": "green"}),
        ({"base-wins"}, BASE | {"b.new": "green"}),
        ({"rename-key"}, {"a.one": "red", "a.two": "5", "b.ten": "blue"}),
        ({"drop-key"}, {"a.two": "5", "b.six": "blue"}),
        ({"to-milliseconds"}, BASE | {"a.two": "5000"}),
        ({"default-if-missing"}, BASE | {"b.gone": "grey"}),
        ({"override-wins", "to-milliseconds"}, BASE | {"a.two": "8000", "b.new": "green"}),
    ],
)
def test_settings_are_converted_as_worked_out_by_hand(
    rules: set[str], answer: dict[str, str]
) -> None:
    (right,) = config.target(CONFIG, frozenset(rules))
    assert json.loads(right.content) == answer


def test_env_names_are_section_and_name_in_capitals() -> None:
    (right,) = config.target(CONFIG, frozenset({"as-env", "drop-key"}))
    assert right == File(path="out.env", content="A_TWO=5\nB_SIX=blue\n")
