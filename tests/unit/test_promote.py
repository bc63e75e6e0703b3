from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ConfigError, HoldoutViolation
from flywheel.promote import Grandparent, holdout_read, promote
from schemas.attempt import Attempt, AttemptKey, Purpose
from schemas.config import Cycle, CycleConfig
from schemas.evaluation import (
    ArmResult,
    Comparison,
    Decision,
    Effect,
    EvalReport,
    HoldoutRead,
    PromotionRule,
)
from schemas.lineage import Split
from tests.factories import make_attempt

CURRICULUM, UNIFORM, CONTROL = "new-curriculum", "new-uniform", "old-uniform"
CYCLE = Cycle(
    number=3,
    parent="parent-2",
    config=CycleConfig(),
    sandbox="bubblewrap",
    environment="env-0",
    started_at=0.0,
)


def compared(
    treatment: str, estimate: float, half: float = 0.05, control: str = "parent", **changes: Any
) -> Comparison:
    lower, upper = estimate - half, estimate + half
    effect = Effect.BETTER if lower > 0 else Effect.WORSE if upper < 0 else Effect.INCONCLUSIVE
    fields: dict[str, Any] = {
        "question": "q",
        "treatment": treatment,
        "control": control,
        "tasks": 48,
        "clusters": 12,
        "estimate": estimate,
        "lower": lower,
        "upper": upper,
        "level": 0.95,
        "detectable": 0.07,
        "sign_flip_p": None,
        "dropped": 0,
        "effect": effect,
    }
    return Comparison(**{**fields, **changes})


def arm(name: str, rate: float) -> ArmResult:
    passed = round(100 * rate)
    return ArmResult(
        arm=name,
        policy_version=f"policy-{name}",
        tasks=48,
        attempts=100,
        passed=passed,
        failed=100 - passed,
        ungraded=0,
        limits=0,
        rate=rate,
        seconds=1.0,
        tokens=1,
    )


def dev(rates: dict[str, float], *comparisons: Comparison) -> EvalReport:
    return EvalReport(
        cycle_id="cycle-0003",
        split=Split.DEV,
        tasks_digest="d",
        arms=tuple(arm(name, rate) for name, rate in rates.items()),
        comparisons=comparisons,
        unanswered=(),
    )


def read_of(candidate: str, effect: Effect = Effect.INCONCLUSIVE, **changes: Any) -> HoldoutRead:
    fields: dict[str, Any] = {
        "cycle_id": "cycle-0003",
        "holdout_version": "h-1",
        "purpose": "promotion",
        "number": 2,
        "allowed": 5,
        "candidate": candidate,
        "parent": "parent-2",
        "tasks": 25,
        "estimate": 0.2,
        "lower": -0.2,
        "upper": 0.4,
        "level": 0.99,
        "effect": effect,
    }
    return HoldoutRead(**{**fields, **changes})


class Reader:
    """A holdout that counts its reads."""

    def __init__(self, effect: Effect = Effect.INCONCLUSIVE) -> None:
        self.effect = effect
        self.read: list[str] = []

    def __call__(self, candidate: str) -> HoldoutRead:
        self.read.append(candidate)
        return read_of(candidate, self.effect)


BETTER_ARM = dev({CURRICULUM: 0.6, "parent": 0.4}, compared(CURRICULUM, 0.2))


def test_a_candidate_better_on_dev_and_not_worse_on_the_holdout_is_promoted() -> None:
    reader = Reader()
    promotion = promote(CYCLE, BETTER_ARM, reader, reads_used=1, reads_allowed=5)
    assert promotion.decision is Decision.PROMOTE
    assert promotion.next_parent == promotion.candidate == "policy-new-curriculum"
    assert reader.read == ["policy-new-curriculum"]
    assert promotion.read_id == read_of("policy-new-curriculum").read_id
    assert "dev +0.200 [+0.150, +0.250]" in promotion.reason
    assert "holdout read 2 of 5: inconclusive, +0.200 [-0.200, +0.400]" in promotion.reason


def test_a_candidate_worse_on_the_holdout_is_held() -> None:
    promotion = promote(CYCLE, BETTER_ARM, Reader(Effect.WORSE), reads_used=1, reads_allowed=5)
    assert (promotion.decision, promotion.next_parent) == (Decision.HOLD, "parent-2")
    assert promotion.candidate == "policy-new-curriculum"
    assert promotion.read_id is not None


@pytest.mark.parametrize(
    "report",
    [
        dev({CURRICULUM: 0.6}, compared(CURRICULUM, 0.2, half=0.3)),
        dev({CURRICULUM: 0.3}, compared(CURRICULUM, -0.2)),
        dev({CURRICULUM: 0.6}),
        dev({CURRICULUM: 0.6}, compared(CURRICULUM, 0.2, slice="rule:dedup")),
        dev({CURRICULUM: 0.6}, compared(CURRICULUM, 0.2, control=CONTROL)),
    ],
)
def test_without_a_candidate_the_parent_is_held_and_the_holdout_stays_closed(
    report: EvalReport,
) -> None:
    reader = Reader()
    promotion = promote(CYCLE, report, reader, reads_used=0, reads_allowed=5)
    assert (promotion.decision, promotion.next_parent) == (Decision.HOLD, "parent-2")
    assert (promotion.candidate, promotion.read_id, reader.read) == (None, None, [])


def test_a_hold_says_how_far_each_arm_was_and_what_could_have_been_seen() -> None:
    report = dev({CURRICULUM: 0.5}, compared(CURRICULUM, 0.02))
    reason = promote(CYCLE, report, Reader(), reads_used=0, reads_allowed=5).reason
    assert "new-curriculum +0.020 [-0.030, +0.070], detectable 0.070" in reason


def test_a_candidate_below_what_the_rule_asks_for_on_the_holdout_is_held() -> None:
    rule = PromotionRule(holdout_least=0.25)
    cycle = CYCLE.model_copy(update={"config": CycleConfig(promotion=rule)})
    promotion = promote(cycle, BETTER_ARM, Reader(), reads_used=0, reads_allowed=5)
    assert promotion.decision is Decision.HOLD
    assert "asked for: not worse, and at least +0.250" in promotion.reason


def test_used_up_reads_hold_without_another_look() -> None:
    reader = Reader()
    promotion = promote(CYCLE, BETTER_ARM, reader, reads_used=5, reads_allowed=5)
    assert promotion.decision is Decision.HOLD
    assert promotion.reason.startswith("holdout reads used up (5 of 5)")
    assert "propose.holdout_generation" in promotion.reason
    assert reader.read == []


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        ({CONTROL: 0.6, UNIFORM: 0.7, CURRICULUM: 0.65}, UNIFORM),
        ({CONTROL: 0.7, UNIFORM: 0.7, CURRICULUM: 0.7}, CURRICULUM),
        ({CONTROL: 0.7, UNIFORM: 0.7, CURRICULUM: 0.6}, UNIFORM),
        ({CONTROL: 0.8, UNIFORM: 0.7, CURRICULUM: 0.7}, CONTROL),
    ],
)
def test_the_highest_dev_rate_is_the_candidate_and_ties_go_to_the_curriculum(
    rates: dict[str, float], chosen: str
) -> None:
    report = dev(rates, *(compared(name, 0.2) for name in rates))
    assert (
        promote(CYCLE, report, Reader(), reads_used=0, reads_allowed=5).candidate
        == f"policy-{chosen}"
    )


@pytest.mark.parametrize(("gap", "passes"), [(-0.14, True), (-0.16, False)])
def test_an_arm_surely_below_the_control_by_more_than_the_margin_is_no_candidate(
    gap: float, passes: bool
) -> None:
    report = dev(
        {CURRICULUM: 0.6, CONTROL: 0.5},
        compared(CURRICULUM, 0.2),
        compared(CURRICULUM, gap, control=CONTROL),
    )
    promotion = promote(CYCLE, report, Reader(), reads_used=0, reads_allowed=5)
    assert (promotion.decision is Decision.PROMOTE) == passes
    assert ("worse than old-uniform by more than 0.1" in promotion.reason) != passes


def test_dev_intervals_below_the_registered_level_are_refused() -> None:
    report = dev({CURRICULUM: 0.6}, compared(CURRICULUM, 0.2, level=0.9))
    with pytest.raises(ConfigError, match=r"0\.9, promotion\.dev_level asks for 0\.95"):
        promote(CYCLE, report, Reader(), reads_used=0, reads_allowed=5)


def test_a_read_of_another_policy_is_refused() -> None:
    stranger: Callable[[str], HoldoutRead] = lambda _: read_of("policy-other")  # noqa: E731
    with pytest.raises(HoldoutViolation, match="policy-other"):
        promote(CYCLE, BETTER_ARM, stranger, reads_used=0, reads_allowed=5)


def test_a_parent_worse_than_its_own_parent_is_rolled_back_and_nothing_is_promoted() -> None:
    reader = Reader()
    grandparent = Grandparent("parent-1", compared("parent", -0.2, control="grandparent"))
    promotion = promote(
        CYCLE, BETTER_ARM, reader, reads_used=0, reads_allowed=5, grandparent=grandparent
    )
    assert (promotion.decision, promotion.next_parent) == (Decision.ROLL_BACK, "parent-1")
    assert (promotion.candidate, reader.read) == (None, [])
    assert "-0.200" in promotion.reason


def test_a_parent_not_shown_to_be_worse_is_no_reason_to_roll_back() -> None:
    grandparent = Grandparent("parent-1", compared("parent", -0.02, control="grandparent"))
    promotion = promote(
        CYCLE, BETTER_ARM, Reader(), reads_used=0, reads_allowed=5, grandparent=grandparent
    )
    assert promotion.decision is Decision.PROMOTE


def test_the_registered_rule_stands_in_the_promotion() -> None:
    config = CycleConfig(promotion=PromotionRule(holdout_reads=2))
    cycle = CYCLE.model_copy(update={"config": config})
    promotion = promote(cycle, BETTER_ARM, Reader(), reads_used=2, reads_allowed=2)
    assert promotion.reason.startswith("holdout reads used up (2 of 2)")
    assert promotion.rule == config.promotion


# Reading the holdout


def sealed(outcomes: list[bool | None], purpose: Purpose = Purpose.HOLDOUT) -> list[Attempt]:
    return [
        make_attempt(
            passed=outcome,
            key=AttemptKey(
                run_id="cycle-0003",
                purpose=purpose,
                arm="none",
                task_id=f"task-{i}",
                version_id=f"tv-{i}",
                setting_id="set-0",
                index=0,
            ),
        )
        for i, outcome in enumerate(outcomes)
    ]


def read(
    ours: list[Attempt], theirs: list[Attempt], number: int = 1, allowed: int = 5
) -> HoldoutRead:
    return holdout_read(
        "cycle-0003",
        "h-1",
        "policy-a",
        "parent-2",
        ours,
        theirs,
        {f"task-{i}": f"component-{i}" for i in range(len(ours))},
        purpose="promotion",
        number=number,
        allowed=allowed,
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_a_read_lets_out_steps_of_one_over_the_root_of_the_tasks(
    outcomes: list[tuple[bool, bool]],
) -> None:
    ours, theirs = zip(*outcomes, strict=True)
    result = read(sealed(list(ours)), sealed(list(theirs)))
    exact = (sum(ours) - sum(theirs)) / len(outcomes)
    step = 1 / sqrt(len(outcomes))
    assert result.estimate is not None
    assert result.lower is not None
    assert result.upper is not None
    assert abs(result.estimate - exact) <= step / 2 + 1e-9
    for value in (result.estimate, result.lower, result.upper):
        assert abs(value) == 1 or value / step == pytest.approx(round(value / step), abs=1e-6)
    assert result.lower - 1e-9 <= exact <= result.upper + 1e-9


@pytest.mark.parametrize(("allowed", "level"), [(5, 0.99), (1, 0.95), (10, 0.995)])
def test_the_reads_of_a_holdout_share_one_error_rate(allowed: int, level: float) -> None:
    result = read(sealed([True, False]), sealed([True, False]), allowed=allowed)
    assert result.level == pytest.approx(level)


def test_rounding_never_hides_a_loss() -> None:
    """One task in four lost: an upper end just below zero rounds up to zero."""
    lost = [i % 4 != 0 for i in range(48)]
    result = read(sealed(lost), sealed([True] * 48))
    assert (result.effect, result.upper) == (Effect.WORSE, 0.0)
    assert result.tasks == 48


@pytest.mark.parametrize("purpose", [p for p in Purpose if p is not Purpose.HOLDOUT])
@pytest.mark.parametrize("ours", [True, False])
def test_an_attempt_made_for_another_purpose_is_refused(purpose: Purpose, ours: bool) -> None:
    mixed, clean = sealed([True, True], purpose), sealed([True, True])
    with pytest.raises(HoldoutViolation, match=f"purpose {purpose.value}"):
        read(mixed if ours else clean, clean if ours else mixed)


@pytest.mark.parametrize(("number", "allowed"), [(6, 5), (0, 5), (1, 0)])
def test_a_read_beyond_those_allowed_is_refused(number: int, allowed: int) -> None:
    with pytest.raises(HoldoutViolation, match="rotate the holdout"):
        read(sealed([True, True]), sealed([True, True]), number, allowed)


def test_a_holdout_without_a_grade_has_no_number() -> None:
    result = read(sealed([None, None]), sealed([True, True]))
    assert (result.estimate, result.lower, result.upper) == (None, None, None)
    assert result.effect is Effect.INCONCLUSIVE
