"""The views give known numbers on a small store."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flywheel.store import Store, append, close, open_store
from schemas.attempt import InfraStage, Purpose, Termination
from schemas.curriculum import Arm
from schemas.failure import FailureLayer
from schemas.hypothesis import HypothesisVerdict, Judgement
from schemas.lineage import Split
from schemas.screening import ScreenVerdict
from schemas.training import RejectReason
from tests.factories import (
    START,
    make_acceptance,
    make_assignment,
    make_attempt,
    make_draw,
    make_failure,
    make_hypothesis,
    make_infra,
    make_manifest,
    make_posterior,
    make_rejected,
    make_screen_report,
    make_sft,
)

Row = tuple[object, ...]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store on which every call of the clock is a second later."""
    ticks = iter(range(10**6))
    opened = open_store(tmp_path / "main.duckdb", clock=lambda: START + next(ticks))
    yield opened
    close(opened)


def rows(store: Store, view: str, columns: str) -> list[Row]:
    sql = f"SELECT {columns} FROM {view} ORDER BY ALL"
    return list(store.connection.execute(sql).fetchall())


def test_attempt_outcomes_has_one_flat_row_an_attempt(store: Store) -> None:
    infra = make_infra(InfraStage.GRADER, "no-result")
    attempts = [
        make_attempt(0),
        make_attempt(1, passed=False, termination=Termination.STEP_LIMIT, seconds={}),
        make_attempt(2, infra=infra),
        make_attempt(2, infra=infra, try_number=1),
    ]
    append(store, attempts)
    flat = (
        "attempt_index, try_number, verdict, reward, at_limit, infra_stage, infra_code, "
        "infra_retryable, seconds_total, family"
    )
    assert rows(store, "attempt_outcomes", flat) == [
        (0, 0, "passed", 1.0, False, None, None, None, 2.0, "orders"),
        (1, 0, "failed", 0.0, True, None, None, None, 0.0, "orders"),
        (2, 0, "ungraded", None, False, "grader", "no-result", True, 2.0, "orders"),
        (2, 1, "ungraded", None, False, "grader", "no-result", True, 2.0, "orders"),
    ]
    started = datetime.fromtimestamp(START, UTC).replace(tzinfo=None)
    assert {row[0] for row in rows(store, "attempt_outcomes", "started_at")} == {started}


def test_success_is_over_graded_attempts_of_one_purpose_policy_and_family(store: Store) -> None:
    other = make_manifest(family="logs")
    append(
        store,
        [
            *(make_attempt(index, passed=True) for index in range(2)),
            make_attempt(2, passed=False),
            make_attempt(3, passed=False, termination=Termination.TIME_LIMIT),
            make_attempt(4, passed=None),
            make_attempt(5, infra=make_infra()),
            make_attempt(0, passed=False, task=other),
            make_attempt(1, infra=make_infra(), policy_version="policy-1"),
            make_attempt(0, passed=True, purpose=Purpose.PROBE),
        ],
    )
    columns = (
        "purpose, policy_version, family, attempts, passed, failed, ungraded, failed_at_limit, "
        "success_rate"
    )
    assert rows(store, "success_by_policy_family", columns) == [
        ("collect", "policy-0", "logs", 1, 0, 1, 0, 0, 0.0),
        ("collect", "policy-0", "orders", 6, 2, 2, 2, 1, 0.5),
        ("collect", "policy-1", "orders", 1, 0, 0, 1, 0, None),
        ("probe", "policy-0", "orders", 1, 1, 0, 0, 0, 1.0),
    ]


def test_the_dispatch_funnel_adds_up(store: Store) -> None:
    returned = [
        make_attempt(0),
        make_attempt(1),
        make_attempt(2, passed=False),
        make_attempt(3, passed=None),
        make_attempt(4, infra=make_infra()),
        None,
        None,
    ]
    draws = [make_draw(slot) for slot in range(10)]
    other = [make_draw(0, arm=Arm.OLD_UNIFORM), make_draw(0, cycle_id="cycle-0002")]
    append(store, draws + other)
    append(store, [make_acceptance(*pair) for pair in zip(draws, returned, strict=False)])
    append(store, [make_sft(attempt) for attempt in returned[:2] if attempt])
    columns = (
        "cycle_id, arm, drawn, pending, not_returned, returned, infrastructure, ungraded, graded, "
        "accepted, sft_rows, preference_rows, rl_rows"
    )
    found = rows(store, "dispatch_funnel", columns)
    assert found == [
        ("cycle-0001", "new-uniform", 10, 3, 2, 5, 1, 1, 3, 3, 2, 0, 0),
        ("cycle-0001", "old-uniform", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        ("cycle-0002", "new-uniform", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    ]
    sums = (
        "drawn = pending + not_returned + returned, returned = infrastructure + ungraded + graded"
    )
    assert set(rows(store, "dispatch_funnel", sums)) == {(True, True)}


def test_the_latest_posterior_of_a_setting_is_the_one_recorded_last(store: Store) -> None:
    append(store, [make_posterior("set-a", passed=3, graded=4)])
    append(store, [make_posterior("set-a", passed=2, graded=4), make_posterior("set-b", graded=4)])
    append(store, [make_posterior("set-b", graded=graded) for graded in (5, 9, 6, 7, 8)])
    assert rows(store, "latest_posteriors", "setting_id, passed, graded") == [
        ("set-a", 2, 4),
        ("set-b", 1, 9),
    ]


def test_failure_shares_are_over_all_layers_of_a_cycle(store: Store) -> None:
    failed = [make_attempt(index, passed=False) for index in range(5)]
    infra = FailureLayer.INFRASTRUCTURE
    append(
        store,
        [
            *(make_failure(attempt) for attempt in failed[:2]),
            make_failure(failed[2], code="gave-up"),
            make_failure(failed[3], layer=infra, code="boot"),
            make_failure(failed[4], cycle_id="cycle-0002"),
        ],
    )
    assert rows(store, "failure_shares", "cycle_id, layer, code, failures, total, share") == [
        ("cycle-0001", "capability", "gave-up", 1, 4, 0.25),
        ("cycle-0001", "capability", "wrong-value", 2, 4, 0.5),
        ("cycle-0001", "infrastructure", "boot", 1, 4, 0.25),
        ("cycle-0002", "capability", "wrong-value", 1, 1, 1.0),
    ]


def test_screen_outcomes_count_the_last_receipt_of_each_version(store: Store) -> None:
    tasks = [make_manifest(seed) for seed in range(4)]
    rejected, unknown = ScreenVerdict.REJECTED, ScreenVerdict.UNSCREENED
    survived = {"verdict": rejected, "reason": "mutants-fail", "mutants": 5, "mutants_killed": 3}
    append(store, [make_screen_report(tasks[0]), make_screen_report(tasks[1], **survived)])
    append(store, [make_screen_report(tasks[2], mutants=4, mutants_killed=4)])
    append(store, [make_screen_report(tasks[0], **survived, harness_version="2")])
    append(store, [make_screen_report(tasks[2], verdict=unknown, reason="boot")])
    append(store, [make_screen_report(tasks[3], verdict=unknown, reason="boot")])
    assert rows(store, "screen_outcomes", "verdict, reason, tasks, mutants, mutants_killed") == [
        ("accepted", "accepted", 1, 4, 4),
        ("rejected", "mutants-fail", 2, 10, 6),
        ("unscreened", "boot", 1, 1, 0),
    ]


def test_a_version_screened_again_after_a_fault_keeps_its_later_verdict(store: Store) -> None:
    fault = make_screen_report(verdict=ScreenVerdict.UNSCREENED, reason="boot")
    assert append(store, [fault]) == 1
    assert append(store, [make_screen_report()]) == 1
    assert rows(store, "screen_outcomes", "verdict, tasks") == [("accepted", 1)]


def test_refusals_are_counted_by_use_and_reason(store: Store) -> None:
    append(
        store,
        [
            *(make_rejected(f"att-{index}") for index in range(3)),
            make_rejected("att-3", reason=RejectReason.NOT_GRADED),
            make_rejected("att-3", use="rl", reason=RejectReason.NO_TOKENS),
            make_rejected("att-0", cycle_id="cycle-0002"),
        ],
    )
    assert rows(store, "refusals", "cycle_id, arm, use, reason, count") == [
        ("cycle-0001", "new-uniform", "rl", "no-tokens", 1),
        ("cycle-0001", "new-uniform", "sft", "not-graded", 1),
        ("cycle-0001", "new-uniform", "sft", "not-passed", 3),
        ("cycle-0002", "new-uniform", "sft", "not-passed", 1),
    ]


def test_the_history_of_a_hypothesis_has_every_judgement_or_says_there_is_none(
    store: Store,
) -> None:
    judged, open_one = make_hypothesis("clu-a"), make_hypothesis("clu-b")
    append(store, [judged, open_one])
    for cycle_id, judgement in (("cycle-0002", "inconclusive"), ("cycle-0003", "supported")):
        verdict = HypothesisVerdict(
            hypothesis_id=judged.hypothesis_id,
            cycle_id=cycle_id,
            judgement=Judgement(judgement),
            estimate=0.3,
            lower=0.1,
            upper=0.5,
            reason="paired difference",
        )
        append(store, [verdict])
    columns = "cluster_id, proposed_in, slice, at_least, judged_in, judgement, estimate"
    said = ("cycle-0001", "rule:dedup-last", 0.2)
    assert rows(store, "hypothesis_history", columns) == [
        ("clu-a", *said, "cycle-0002", "inconclusive", 0.3),
        ("clu-a", *said, "cycle-0003", "supported", 0.3),
        ("clu-b", *said, None, None, None),
    ]


def test_a_tasks_split_is_its_last_assignment_and_a_refused_copy_never_moves_it(
    store: Store,
) -> None:
    task, moved = make_manifest(0), make_manifest(1)
    copy = make_manifest(0, goal="The same in other words.")
    withdrawn = make_manifest(2)
    assert copy.task_id == task.task_id
    append(store, [make_assignment(t) for t in (task, moved, withdrawn)])
    later = {"cycle_id": "cycle-0002", "admitted": False}
    append(
        store,
        [
            make_assignment(copy, split=Split.DEV, reason="duplicate", **later),
            make_assignment(moved, split=Split.DEV, cycle_id="cycle-0002"),
            make_assignment(withdrawn, reason="withdrawn", **later),
        ],
    )
    assert set(rows(store, "task_splits", "task_id, split, admitted, reason")) == {
        (task.task_id, "train", True, "assigned"),
        (moved.task_id, "dev", True, "assigned"),
        (withdrawn.task_id, "train", False, "withdrawn"),
    }
