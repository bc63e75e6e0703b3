from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.curriculum import Candidate, DrawPlan, accept, draw_arm
from flywheel.errors import ConfigError
from schemas.attempt import Attempt, Purpose
from schemas.config import DrawConfig
from schemas.curriculum import AcceptReason, Arm, DrawReason
from schemas.difficulty import Bucket
from tests.factories import make_attempt, make_draw, make_infra, make_manifest, make_posterior

COUNTS = {
    Bucket.TOO_EASY: (16, 16),
    Bucket.LEARNABLE: (4, 8),
    Bucket.HARD: (1, 32),
    Bucket.UNSOLVED_UNKNOWN: (0, 16),
    Bucket.BORDERLINE: (3, 32),
    Bucket.UNDERSAMPLED: (1, 4),
    Bucket.UNMEASURABLE: (1, 4),
}


def candidate(
    number: int, bucket: Bucket | None = None, family: str = "orders", is_new: bool = False
) -> Candidate:
    passed, graded = COUNTS.get(bucket, (0, 0)) if bucket else (0, 0)
    return Candidate(
        task_id=f"task-{number:03d}",
        version_id=f"tv-{number:03d}",
        family=family,
        component=f"component-{number}",
        is_new=is_new,
        posterior=make_posterior(passed=passed, graded=graded, bucket=bucket) if bucket else None,
    )


def pool_of(size: int, *families: str) -> list[Candidate]:
    """Every bucket but UNMEASURABLE, and tasks never probed, over all families."""
    buckets = [None, *(bucket for bucket in COUNTS if bucket is not Bucket.UNMEASURABLE)]
    names = families or ("orders",)
    return [
        candidate(i, buckets[i % len(buckets)], names[i % len(names)], is_new=i % 3 == 0)
        for i in range(size)
    ]


def draw(
    arm: Arm, pool: list[Candidate], config: DrawConfig | None = None, seed: int = 0
) -> DrawPlan:
    rng = np.random.default_rng(seed)
    return draw_arm(arm, pool, config or DrawConfig(), "cycle-0001", rng)


pools = st.lists(
    st.tuples(
        st.sampled_from([None, *COUNTS]),
        st.sampled_from(["config", "logs", "orders"]),
        st.booleans(),
    ),
    min_size=30,
    max_size=80,
).map(lambda rows: [candidate(i, *row) for i, row in enumerate(rows)])


@settings(max_examples=60, deadline=None)
@given(pools, st.sampled_from(Arm), st.integers(1, 150), st.integers(1, 5), st.integers(0, 99))
def test_an_arm_draws_exactly_its_attempts_within_the_cap_or_says_why_not(
    pool: list[Candidate], arm: Arm, attempts: int, cap: int, seed: int
) -> None:
    config = DrawConfig(attempts=attempts, cap=cap)
    eligible = {
        c.task_id
        for c in pool
        if not (arm is Arm.OLD_UNIFORM and c.is_new)
        and not (arm is Arm.NEW_CURRICULUM and c.bucket is Bucket.UNMEASURABLE)
    }
    if len(eligible) * cap < attempts:
        with pytest.raises(ConfigError, match=rf"{len(eligible)} tasks .* {attempts}"):
            draw(arm, pool, config, seed)
        return
    draws = draw(arm, pool, config, seed).draws
    counts = Counter(d.task_id for d in draws)
    assert [d.slot for d in draws] == list(range(attempts))
    assert max(counts.values()) <= cap
    assert counts.keys() <= eligible


@settings(max_examples=30, deadline=None)
@given(pools, st.sampled_from(Arm), st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(
    pool: list[Candidate], arm: Arm, random: Random
) -> None:
    shuffled = pool.copy()
    random.shuffle(shuffled)
    config = DrawConfig(attempts=10, cap=3)
    assert draw(arm, shuffled, config) == draw(arm, pool, config)


def test_the_control_arm_draws_old_tasks_only_and_the_others_draw_both() -> None:
    pool = pool_of(60)
    new = {c.task_id for c in pool if c.is_new}
    assert not new & {d.task_id for d in draw(Arm.OLD_UNIFORM, pool).draws}
    for arm in (Arm.NEW_UNIFORM, Arm.NEW_CURRICULUM):
        drawn = {d.task_id for d in draw(arm, pool).draws}
        assert drawn & new
        assert drawn - new


def test_a_uniform_draw_gives_every_task_the_same_probability_and_count_within_one() -> None:
    draws = draw(Arm.NEW_UNIFORM, pool_of(36)).draws
    assert {round(d.probability, 9) for d in draws} == {1.0}
    assert set(Counter(d.task_id for d in draws).values()) == {1, 2}
    assert {d.reason for d in draws} == {DrawReason.UNIFORM}
    sparse = draw(Arm.NEW_UNIFORM, pool_of(96)).draws
    assert {round(d.probability, 9) for d in sparse} == {0.5}


@pytest.mark.parametrize("arm", [Arm.NEW_UNIFORM, Arm.NEW_CURRICULUM])
def test_inclusion_frequencies_match_the_logged_probabilities(arm: Arm) -> None:
    pool = pool_of(70, "orders", "logs", "config")
    config, runs = DrawConfig(attempts=40), 2_000
    seen: Counter[str] = Counter()
    logged: dict[str, float] = {}
    for seed in range(runs):
        draws = draw(arm, pool, config, seed).draws
        seen.update({d.task_id for d in draws})
        logged.update({d.task_id: d.probability for d in draws})
    assert logged.keys() == {c.task_id for c in pool}
    for task_id, probability in logged.items():
        error = 4.5 * (probability * (1 - probability) / runs) ** 0.5
        assert seen[task_id] / runs == pytest.approx(probability, abs=error + 1e-9)


def test_inclusion_probabilities_sum_to_the_attempts_where_none_is_cut() -> None:
    pool = pool_of(140, "orders", "logs")
    config = DrawConfig(attempts=10)
    logged = {
        d.task_id: d.probability
        for seed in range(3_000)
        for d in draw(Arm.NEW_CURRICULUM, pool, config, seed).draws
    }
    assert max(logged.values()) < 1
    assert len(logged) == len(pool)
    assert sum(logged.values()) == pytest.approx(10, abs=1e-9)


def test_each_reason_gets_its_share_of_the_curriculum_in_the_long_run() -> None:
    pool = pool_of(140)
    reasons = Counter(
        d.reason for s in range(400) for d in draw(Arm.NEW_CURRICULUM, pool, seed=s).draws
    )
    share = {reason: count / (400 * 48) for reason, count in reasons.items()}
    assert share[DrawReason.REHEARSAL] == pytest.approx(0.15, abs=0.01)
    assert share[DrawReason.EXPLORATION] == pytest.approx(0.15, abs=0.01)
    assert share[DrawReason.UNIFORM] == pytest.approx(0.05, abs=0.01)
    assert share[DrawReason.LEARNING] == pytest.approx(0.65, abs=0.01)


def test_rehearsal_draws_mastered_tasks_and_exploration_undecided_ones() -> None:
    pool = pool_of(140)
    bucket_of = {c.task_id: c.bucket for c in pool}
    drawn: dict[DrawReason, set[Bucket]] = {reason: set() for reason in DrawReason}
    for seed in range(50):
        for d in draw(Arm.NEW_CURRICULUM, pool, seed=seed).draws:
            drawn[d.reason].add(bucket_of[d.task_id])
    assert drawn[DrawReason.REHEARSAL] == {Bucket.TOO_EASY}
    assert drawn[DrawReason.EXPLORATION] == {Bucket.UNDERSAMPLED, Bucket.BORDERLINE}


def test_a_learnable_task_is_likelier_drawn_than_a_hard_or_an_unsolved_one() -> None:
    pool = pool_of(140)
    logged = {
        d.task_id: d.probability
        for seed in range(300)
        for d in draw(Arm.NEW_CURRICULUM, pool, DrawConfig(attempts=20), seed).draws
    }
    by_bucket = {c.bucket: logged[c.task_id] for c in pool if c.task_id in logged}
    assert by_bucket[Bucket.LEARNABLE] > 3 * by_bucket[Bucket.HARD]
    assert by_bucket[Bucket.LEARNABLE] > 3 * by_bucket[Bucket.UNSOLVED_UNKNOWN]


def test_an_unmeasurable_task_is_left_to_the_uniform_arms() -> None:
    pool = [*pool_of(60), *(candidate(100 + i, Bucket.UNMEASURABLE) for i in range(30))]
    drawn = {d.task_id for s in range(50) for d in draw(Arm.NEW_CURRICULUM, pool, seed=s).draws}
    assert not drawn & {f"task-{100 + i:03d}" for i in range(30)}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(0, 99), st.floats(0.05, 0.5))
def test_a_small_family_gets_its_floor_within_rounding(rare: int, seed: int, floor: float) -> None:
    pool = [
        *(candidate(i, Bucket.LEARNABLE, "orders") for i in range(80)),
        *(candidate(100 + i, Bucket.UNSOLVED_UNKNOWN, "logs") for i in range(rare)),
    ]
    plan = draw(Arm.NEW_CURRICULUM, pool, DrawConfig(domain_floor=floor), seed)
    drawn = sum(d.family == "logs" for d in plan.draws)
    reachable = min(floor * 48, rare * 2)
    assert drawn >= np.floor(reachable + 1e-9)
    short = [note for note in plan.unfilled if note.startswith("floor of family logs")]
    assert bool(short) == (rare * 2 < 0.9 * floor * 48)


def test_interleaved_families_keep_their_totals_within_one_draw() -> None:
    pool = pool_of(140, "orders", "logs", "config")
    for family in ("orders", "logs", "config"):
        totals = {
            sum(d.family == family for d in draw(Arm.NEW_CURRICULUM, pool, seed=seed).draws)
            for seed in range(100)
        }
        assert max(totals) - min(totals) <= 1


def test_a_quota_without_an_eligible_task_goes_to_learning_and_is_reported() -> None:
    plan = draw(Arm.NEW_CURRICULUM, [candidate(i, Bucket.LEARNABLE) for i in range(60)])
    assert plan.unfilled == ("rehearsal: 0.0 of 7.2 draws", "exploration: 0.0 of 7.2 draws")
    reasons = Counter(d.reason for d in plan.draws)
    assert reasons.keys() == {DrawReason.LEARNING, DrawReason.UNIFORM}


def test_a_rehearsal_quota_beyond_the_cap_is_reported_with_both_numbers() -> None:
    pool = [candidate(0, Bucket.TOO_EASY), *(candidate(i) for i in range(1, 60))]
    assert "rehearsal: 2.0 of 7.2 draws" not in draw(Arm.NEW_UNIFORM, pool).unfilled
    (note,) = draw(Arm.NEW_CURRICULUM, pool).unfilled
    assert note.startswith("rehearsal: ")
    assert float(note.split()[1]) <= 2.0


def test_a_pool_that_fills_every_quota_reports_nothing() -> None:
    assert draw(Arm.NEW_CURRICULUM, pool_of(140, "orders", "logs")).unfilled == ()


def test_quotas_that_leave_nothing_to_learning_still_draw_every_attempt() -> None:
    config = DrawConfig(rehearsal=0.5, exploration=0.5)
    draws = draw(Arm.NEW_CURRICULUM, pool_of(140), config).draws
    assert len(draws) == 48
    assert DrawReason.LEARNING not in {d.reason for d in draws}


def test_floors_that_use_up_the_whole_budget_are_met() -> None:
    families = ("a", "b", "c", "d", "e")
    draws = draw(Arm.NEW_CURRICULUM, pool_of(140, *families), DrawConfig(domain_floor=0.2)).draws
    assert set(Counter(d.family for d in draws).values()) <= {9, 10}


def test_floors_that_exceed_the_budget_are_refused() -> None:
    pool = pool_of(140, *"abcdefg")
    with pytest.raises(ConfigError, match=r"domain_floor 0\.15 x 7 families"):
        draw(Arm.NEW_CURRICULUM, pool)


def test_a_task_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="candidate twice"):
        draw(Arm.NEW_UNIFORM, [candidate(0), candidate(0)])


# Acceptance

TASK = make_manifest()


def collected(slot: int, outcome: str, try_number: int = 0, **changes: object) -> Attempt:
    infra = make_infra() if outcome == "fault" else None
    passed = {"passed": True, "failed": False}.get(outcome)
    fields = {"arm": "new-uniform", "try_number": try_number, "task": TASK, **changes}
    return make_attempt(slot, passed=passed, infra=infra, **fields)


OUTCOMES = {
    "passed": AcceptReason.GRADED,
    "failed": AcceptReason.GRADED,
    "ungraded": AcceptReason.UNGRADED,
    "fault": AcceptReason.INFRASTRUCTURE,
    "lost": AcceptReason.NOT_RETURNED,
}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(list(OUTCOMES)), max_size=12), st.randoms(use_true_random=False))
def test_every_draw_is_accounted_for_once_by_what_came_back(
    outcomes: list[str], random: Random
) -> None:
    draws = [make_draw(i, version_id=TASK.version_id) for i in range(len(outcomes))]
    attempts = [collected(i, outcome) for i, outcome in enumerate(outcomes) if outcome != "lost"]
    random.shuffle(attempts)
    acceptances = accept(draws, attempts)
    assert [a.draw_id for a in acceptances] == [d.draw_id for d in draws]
    assert [a.reason for a in acceptances] == [OUTCOMES[outcome] for outcome in outcomes]
    assert all(a.accepted == (a.reason is AcceptReason.GRADED) for a in acceptances)
    assert all(
        (a.attempt_id is None) == (outcome == "lost")
        for a, outcome in zip(acceptances, outcomes, strict=True)
    )


def test_a_retry_that_succeeded_is_the_one_accepted() -> None:
    fault, retry = collected(0, "fault"), collected(0, "failed", try_number=1)
    (acceptance,) = accept([make_draw(0, version_id=TASK.version_id)], [retry, fault])
    assert (acceptance.attempt_id, acceptance.accepted) == (retry.attempt_id, True)


@pytest.mark.parametrize(
    "other",
    [
        {"arm": "old-uniform"},
        {"run_id": "cycle-0002"},
        {"purpose": Purpose.PROBE},
        {"task": make_manifest(1)},
    ],
)
def test_an_attempt_of_another_arm_cycle_purpose_or_task_is_no_answer(other: dict) -> None:
    draws = [make_draw(0, version_id=TASK.version_id)]
    (acceptance,) = accept(draws, [collected(0, "passed", **other)])
    assert acceptance.reason is AcceptReason.NOT_RETURNED


def test_two_settings_can_not_both_answer_one_draw() -> None:
    both = [collected(0, "passed"), collected(0, "passed", policy_version="policy-1")]
    with pytest.raises(ValueError, match="different settings claim slot 0"):
        accept([make_draw(0, version_id=TASK.version_id)], both)
