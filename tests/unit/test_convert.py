"""Conversion: every attempt is a row or one refusal, and no row is there that can't be defended."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.convert import Basis
from flywheel.convert.preference import to_pairs
from flywheel.convert.rl import to_rl
from flywheel.convert.sft import demonstrations, own_successes, select_rows, to_sft
from flywheel.errors import HoldoutViolation, SplitViolation, TrainingError
from schemas.attempt import Attempt, Termination, Tokens, Trajectory, Turn, TurnStatus
from schemas.curriculum import Draw
from schemas.failure import Failure, FailureLayer
from schemas.lineage import Split
from schemas.screening import Trust
from schemas.task import Brief, Instrument, Sealed, TaskManifest
from schemas.tool import SUBMIT, ToolCall, ToolKind, ToolSpec
from schemas.training import PreferencePair, Rejected, RejectReason, RlTrajectory
from tests.factories import (
    make_attempt,
    make_draw,
    make_failure,
    make_infra,
    make_manifest,
    make_setting,
    make_turn,
)

TASK, OTHER = make_manifest(1), make_manifest(2)
TOKENS = Tokens(prompt=(1, 2), completion=(3,), logprobs=(-0.5,))
SUBMITTED = make_turn(
    "submit", call=SUBMIT, status=TurnStatus.SUBMITTED, exit_code=None, tokens=TOKENS
)


def basis(
    *tasks: TaskManifest,
    split: Split | None = Split.TRAIN,
    screened: bool = True,
    trust: Trust = Trust.VERIFIED,
) -> Basis:
    tasks = tasks or (TASK, OTHER)
    return Basis(
        cycle_id="cycle-0001",
        arm="new-uniform",
        manifests={task.version_id: task for task in tasks},
        splits={task.task_id: split for task in tasks} if split else {},
        trust={task.version_id: trust.value for task in tasks} if screened else {},
    )


def step(word: str, *, status: TurnStatus = TurnStatus.OK, observation: str = "done") -> Turn:
    return make_turn(
        call=ToolCall(tool="sum", arguments={"file": word}),
        raw=word,
        status=status,
        observation=observation,
        tokens=TOKENS,
    )


def attempt_with(
    *turns: Turn, passed: bool | None = True, index: int = 0, task: TaskManifest = TASK
) -> Attempt:
    trajectory = Trajectory(turns=(*turns, SUBMITTED), artifacts=())
    return make_attempt(index, task=task, passed=passed, trajectory=trajectory)


def triaged(
    attempts: Sequence[Attempt], layer: FailureLayer = FailureLayer.CAPABILITY
) -> dict[str, Failure]:
    return {a.attempt_id: make_failure(a, layer=layer) for a in attempts if a.reward != 1}


def reasons(rejected: Sequence[Rejected]) -> list[RejectReason]:
    return [rejection.reason for rejection in rejected]


def pairs_of(
    *attempts: Attempt, layer: FailureLayer = FailureLayer.CAPABILITY
) -> tuple[tuple[PreferencePair, ...], tuple[Rejected, ...]]:
    return to_pairs(attempts, triaged(attempts, layer), basis())


def trajectories_of(
    *attempts: Attempt,
    dispatched: int = 9,
    layer: FailureLayer = FailureLayer.CAPABILITY,
    trust: Trust = Trust.VERIFIED,
) -> tuple[tuple[RlTrajectory, ...], tuple[Rejected, ...]]:
    by_id = {s.setting_id: s for s in (make_setting(t.version_id) for t in (TASK, OTHER))}
    sent = {TASK.version_id: dispatched, OTHER.version_id: dispatched}
    return to_rl(attempts, triaged(attempts, layer), by_id, sent, basis(trust=trust))


# What holds for every use


@pytest.mark.parametrize(
    ("split", "error"),
    [(Split.DEV, SplitViolation), (Split.HOLDOUT, HoldoutViolation), (None, SplitViolation)],
)
def test_a_task_outside_the_train_split_stops_every_conversion(
    split: Split | None, error: type[Exception]
) -> None:
    attempts = (make_attempt(task=TASK),)
    outside = basis(split=split)
    with pytest.raises(error, match=TASK.task_id):
        to_sft(attempts, outside)
    with pytest.raises(error, match=TASK.task_id):
        to_pairs(attempts, {}, outside)
    with pytest.raises(error, match=TASK.task_id):
        to_rl(attempts, {}, {}, {}, outside)


def test_no_use_takes_an_unscreened_task_or_an_ungraded_attempt() -> None:
    faulty = make_attempt(1, task=TASK, infra=make_infra())
    for screened, reason in ((False, RejectReason.NOT_SCREENED), (True, RejectReason.NOT_GRADED)):
        ground = basis(screened=screened)
        for rows, rejected in (
            to_sft((faulty,), ground),
            to_pairs((faulty,), {}, ground),
            to_rl((faulty,), {}, {}, {}, ground),
        ):
            assert rows == ()
            assert reasons(rejected) == [reason]


def test_a_failed_attempt_that_nobody_triaged_is_a_callers_mistake() -> None:
    failed = attempt_with(passed=False)
    with pytest.raises(ValueError, match="triage it first"):
        to_pairs((failed,), {}, basis())


WORDS = st.sampled_from(["a", "b"])
STATUSES = st.sampled_from([TurnStatus.OK, TurnStatus.OK, TurnStatus.TOOL_ERROR])
OUTCOMES = st.tuples(
    st.lists(st.tuples(WORDS, STATUSES), max_size=3),
    st.sampled_from([True, False, None]),
    st.sampled_from([TASK, OTHER]),
    st.sampled_from([FailureLayer.CAPABILITY, FailureLayer.UNDETERMINED]),
    st.booleans(),
)


@settings(deadline=None)
@given(outcomes=st.lists(OUTCOMES, max_size=7))
def test_every_attempt_is_accounted_for_exactly_once_for_each_use(
    outcomes: list[tuple[list[tuple[str, TurnStatus]], bool | None, TaskManifest, str, bool]],
) -> None:
    attempts, failures = [], {}
    for index, (turns, passed, task, layer, with_tokens) in enumerate(outcomes):
        made = [step(word, status=status) for word, status in turns]
        if not with_tokens:
            made = [turn.model_copy(update={"tokens": None}) for turn in made]
        attempt = attempt_with(*made, passed=passed, index=index, task=task)
        attempts.append(attempt)
        failures[attempt.attempt_id] = make_failure(attempt, layer=FailureLayer(layer))
    by_id = {s.setting_id: s for s in (make_setting(t.version_id) for t in (TASK, OTHER))}
    given_ids = Counter(attempt.attempt_id for attempt in attempts)

    sft, sft_no = to_sft(attempts, basis())
    assert given_ids == Counter(
        [row.provenance.attempt_id for row in sft] + [r.attempt_id for r in sft_no]
    )
    sent = {TASK.version_id: 7, OTHER.version_id: 7}
    rl, rl_no = to_rl(attempts, failures, by_id, sent, basis())
    assert given_ids == Counter(
        [row.provenance.attempt_id for row in rl] + [r.attempt_id for r in rl_no]
    )
    pairs, pairs_no = to_pairs(attempts, failures, basis())
    losers = [pair.rejected_provenance.attempt_id for pair in pairs]
    winners = {pair.chosen_provenance.attempt_id for pair in pairs}
    assert given_ids == Counter([*losers, *winners, *(r.attempt_id for r in pairs_no)])
    assert all(pair.chosen != pair.rejected for pair in pairs)


# Demonstrations


def test_a_success_becomes_a_demonstration_as_recorded_with_its_provenance() -> None:
    attempt = attempt_with(step("a"))
    (row,), rejected = to_sft((attempt,), basis())
    assert rejected == ()
    assert row.turns == attempt.trajectory.turns
    assert (row.goal, row.tools) == (TASK.brief.goal, TASK.brief.tools)
    assert row.provenance.attempt_id == attempt.attempt_id
    assert row.provenance.teacher == attempt.policy_version
    assert (row.provenance.split, row.provenance.trust) == (Split.TRAIN, "verified")
    assert (row.provenance.instrument, row.provenance.simulated) == (None, ())
    assert row.provenance.filter == "sft@2"


def test_a_reference_is_named_as_the_teacher() -> None:
    attempt = make_attempt(task=TASK, policy_version="reference@abc")
    (row,), _ = to_sft((attempt,), basis())
    assert row.provenance.teacher == "reference@abc"


@pytest.mark.parametrize(
    "status",
    [TurnStatus.TOOL_ERROR, TurnStatus.TIMEOUT, TurnStatus.MALFORMED, TurnStatus.FORBIDDEN],
)
def test_a_success_with_a_failing_call_is_no_demonstration(status: TurnStatus) -> None:
    rows, rejected = to_sft((attempt_with(step("a", status=status), step("b")),), basis())
    assert rows == ()
    assert reasons(rejected) == [RejectReason.HAS_TOOL_ERROR]


def test_a_failure_is_no_demonstration() -> None:
    _, rejected = to_sft((attempt_with(passed=False),), basis())
    assert reasons(rejected) == [RejectReason.NOT_PASSED]


def changed(**parts: Brief | Sealed) -> TaskManifest:
    fields = {name: getattr(TASK, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, **parts})


SUM = ToolSpec(name="sum", description="Pretend.", kind=ToolKind.SIMULATED, program="sums")
SIMULATED = changed(brief=TASK.brief.model_copy(update={"tools": (SUM,)}))


@pytest.mark.parametrize("trust", [Trust.PARTIAL, Trust.REVIEWED])
def test_a_simulated_tool_that_nobody_compared_is_no_ground_for_a_demonstration(
    trust: Trust,
) -> None:
    ground = basis(SIMULATED, trust=trust)
    _, rejected = to_sft((attempt_with(step("a"), task=SIMULATED),), ground)
    assert reasons(rejected) == [RejectReason.SIMULATED_TOOL]
    rows, _ = to_sft((attempt_with(task=SIMULATED),), ground)  # never called it
    assert len(rows) == 1


def test_a_simulated_tool_of_a_verified_task_is_named_on_the_row() -> None:
    (row,), _ = to_sft((attempt_with(step("a"), task=SIMULATED),), basis(SIMULATED))
    assert row.provenance.simulated == ("sum",)


def test_a_model_that_graded_is_named_on_the_row_with_its_prompt() -> None:
    judge = Instrument(
        model="judge-1", prompt_hash="prompt-1", false_accept=0.1, false_reject=0.2, measured_on=50
    )
    grader = TASK.sealed.grader.model_copy(update={"instrument": judge})
    task = changed(sealed=TASK.sealed.model_copy(update={"grader": grader}))
    (row,), _ = to_sft((attempt_with(step("a"), task=task),), basis(task))
    assert row.provenance.instrument == "judge-1@prompt-1"


def draws(*tasks: TaskManifest) -> list[Draw]:
    return [
        make_draw(slot, task_id=task.task_id, version_id=task.version_id)
        for slot, task in enumerate(tasks)
    ]


def references(*tasks: TaskManifest) -> dict[str, Attempt]:
    return {
        task.version_id: make_attempt(task=task, policy_version="reference@abc") for task in tasks
    }


def test_a_reference_is_shown_once_for_each_task_drawn() -> None:
    recorded = references(TASK, OTHER)
    assert demonstrations(draws(OTHER, TASK, OTHER), recorded) == (
        recorded[OTHER.version_id],
        recorded[TASK.version_id],
    )


def test_a_drawn_task_without_any_demonstration_is_an_error() -> None:
    with pytest.raises(TrainingError, match="screen it"):
        demonstrations(draws(TASK), {})
    with pytest.raises(TrainingError, match="slot 0"):
        select_rows(draws(TASK), (), (), 1, 0)


def test_own_successes_fill_as_many_slots_as_asked_and_the_reference_the_rest() -> None:
    own, _ = to_sft([attempt_with(index=i, task=TASK) for i in range(2)], basis())
    shown, _ = to_sft(references(TASK, OTHER).values(), basis())
    drawn = draws(TASK, OTHER, TASK, OTHER, TASK)
    assert own_successes(drawn, own, 5) == 3
    rows = select_rows(reversed(drawn), own, shown, 5, 2)
    teachers = [row.provenance.teacher for row in rows]
    assert teachers == ["policy-0", "reference@abc", "policy-0", *["reference@abc"] * 2]
    assert rows[0] != rows[2]  # two successes, shown in turn
    assert rows[1] == rows[3]


def test_more_own_successes_than_there_are_is_an_error() -> None:
    shown, _ = to_sft(references(TASK).values(), basis())
    with pytest.raises(TrainingError, match="1 more"):
        select_rows(draws(TASK), (), shown, 1, 1)


@given(
    drawn=st.lists(st.sampled_from([TASK, OTHER]), min_size=1, max_size=8),
    solved=st.sets(st.sampled_from([0, 1])),
    data=st.data(),
)
def test_arms_train_on_the_same_number_and_kind_of_rows_whatever_they_solved(
    drawn: list[TaskManifest], solved: set[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(drawn)))
    own, _ = to_sft([attempt_with(task=(TASK, OTHER)[i]) for i in solved], basis())
    shown, _ = to_sft(references(TASK, OTHER).values(), basis())
    wanted = data.draw(st.integers(0, own_successes(draws(*drawn), own, count)))
    rows = select_rows(draws(*drawn), own, shown, count, wanted)
    mine = sum(row.provenance.teacher == "policy-0" for row in rows)
    assert (len(rows), mine) == (count, wanted)
    versions = [row.provenance.version_id for row in rows]
    assert versions == [task.version_id for task in drawn[:count]]


def test_more_rows_than_draws_is_an_error() -> None:
    with pytest.raises(TrainingError, match=r"lower train\.rows"):
        select_rows(draws(TASK), (), (), 2, 0)


# Preference pairs


def test_a_pair_is_cut_at_the_first_call_that_differs() -> None:
    passed = attempt_with(step("a"), step("b"), step("c"), index=0)
    failed = attempt_with(step("a"), step("x"), step("c"), passed=False, index=1)
    (pair,), rejected = pairs_of(passed, failed)
    assert rejected == ()
    assert pair.shared == passed.trajectory.turns[:1]
    assert (pair.chosen.raw, pair.rejected.raw) == ("b", "x")
    assert pair.chosen_provenance.attempt_id == passed.attempt_id
    assert pair.rejected_provenance.attempt_id == failed.attempt_id


def test_the_success_that_parts_last_is_chosen_whatever_the_order() -> None:
    early = attempt_with(step("y"), step("b"), index=0)
    late = attempt_with(step("a"), step("b"), index=1)
    failed = attempt_with(step("a"), step("x"), passed=False, index=2)
    (pair,), rejected = pairs_of(early, late, failed)
    assert pair.chosen_provenance.attempt_id == late.attempt_id
    assert [(r.attempt_id, r.reason) for r in rejected] == [
        (early.attempt_id, RejectReason.NO_COUNTERPART)
    ]
    assert pairs_of(failed, late, early) == ((pair,), rejected)


def test_each_failure_has_at_most_one_pair_and_a_success_may_serve_several() -> None:
    passed = attempt_with(step("a"), index=0)
    failed = [attempt_with(step(f"x{i}"), passed=False, index=1 + i) for i in range(3)]
    pairs, rejected = pairs_of(passed, *failed)
    assert rejected == ()
    assert {p.rejected_provenance.attempt_id for p in pairs} == {a.attempt_id for a in failed}
    assert {p.chosen_provenance.attempt_id for p in pairs} == {passed.attempt_id}


def test_the_same_acts_with_another_verdict_are_identical_not_a_preference() -> None:
    passed, failed = attempt_with(step("a")), attempt_with(step("a"), passed=False, index=1)
    _, rejected = pairs_of(passed, failed)
    by_id = {r.attempt_id: r.reason for r in rejected}
    assert by_id[failed.attempt_id] is RejectReason.IDENTICAL


def test_the_same_call_in_other_words_is_identical_too() -> None:
    said = step("a").model_copy(update={"raw": "I shall add up a"})
    passed = attempt_with(said, step("b"))
    failed = attempt_with(step("a"), step("x"), passed=False, index=1)
    pairs, rejected = pairs_of(passed, failed)
    assert pairs == ()
    assert RejectReason.IDENTICAL in reasons(rejected)


def test_histories_with_another_observation_are_never_shared() -> None:
    passed = attempt_with(step("a", observation="3 rows"), step("b"))
    failed = attempt_with(step("a", observation="4 rows"), step("x"), passed=False, index=1)
    pairs, rejected = pairs_of(passed, failed)
    assert pairs == ()
    assert reasons(rejected) == [RejectReason.NO_COUNTERPART] * 2


def test_a_call_that_failed_is_never_the_preferred_one() -> None:
    passed = attempt_with(step("oops", status=TurnStatus.TOOL_ERROR), step("b"))
    failed = attempt_with(step("a"), passed=False, index=1)
    pairs, rejected = pairs_of(passed, failed)
    assert pairs == ()
    assert RejectReason.HAS_TOOL_ERROR in reasons(rejected)


def test_attempts_at_other_versions_or_under_other_settings_make_no_pair() -> None:
    passed = attempt_with(step("a"))
    elsewhere = attempt_with(step("x"), passed=False, task=OTHER)
    other_policy = make_attempt(
        2, task=TASK, passed=False, policy_version="policy-1", trajectory=elsewhere.trajectory
    )
    pairs, rejected = pairs_of(passed, elsewhere, other_policy)
    assert pairs == ()
    assert reasons(rejected) == [RejectReason.NO_COUNTERPART] * 3


@pytest.mark.parametrize("layer", [FailureLayer.GRADER, FailureLayer.UNDETERMINED])
def test_a_failure_that_may_not_be_the_models_is_no_negative_example(layer: FailureLayer) -> None:
    passed, failed = attempt_with(step("a")), attempt_with(step("x"), passed=False, index=1)
    pairs, rejected = pairs_of(passed, failed, layer=layer)
    assert pairs == ()
    assert RejectReason.SYSTEM_FAILURE in reasons(rejected)
    rows, rejected = trajectories_of(passed, failed, layer=layer)
    assert rows == ()
    assert sorted(reasons(rejected)) == ["group-too-small", "system-failure"]


# RL


def test_a_trajectory_carries_tokens_reward_and_both_group_sizes() -> None:
    passed = attempt_with(step("a"))
    failed = attempt_with(step("x"), passed=False, index=1)
    lost = make_attempt(2, task=TASK, infra=make_infra())
    rows, rejected = trajectories_of(passed, failed, lost, dispatched=4)
    assert reasons(rejected) == [RejectReason.NOT_GRADED]
    assert [row.reward for row in rows] == [1.0, 0.0]
    assert {row.group_id for row in rows} == {rows[0].group_id}
    assert {(row.group_dispatched, row.group_graded) for row in rows} == {(4, 2)}
    assert rows[0].segments == (TOKENS, TOKENS)
    assert rows[0].sampling == make_setting(TASK.version_id).sampling


@pytest.mark.parametrize("trust", [Trust.PARTIAL, Trust.REVIEWED])
def test_no_reward_rests_on_a_grader_that_was_not_verified(trust: Trust) -> None:
    both = attempt_with(step("a")), attempt_with(step("x"), passed=False, index=1)
    rows, rejected = trajectories_of(*both, trust=trust)
    assert rows == ()
    assert reasons(rejected) == [RejectReason.NOT_VERIFIED] * 2


@pytest.mark.parametrize(
    ("termination", "truncated"),
    [
        (Termination.SUBMITTED, False),
        (Termination.PROTOCOL, False),
        (Termination.STEP_LIMIT, True),
        (Termination.TOKEN_LIMIT, True),
        (Termination.TIME_LIMIT, True),
        (Termination.COST_LIMIT, True),
        (Termination.CONTEXT_LIMIT, True),
    ],
)
def test_truncated_means_cut_off_by_a_limit(termination: Termination, truncated: bool) -> None:
    failed = attempt_with(step("x"), passed=False, index=1)
    cut = failed.model_copy(update={"termination": termination})
    rows, _ = trajectories_of(attempt_with(step("a")), cut)
    assert (rows[1].termination, rows[1].truncated) == (termination, truncated)


def test_one_turn_without_tokens_keeps_an_attempt_out_but_counts_in_the_baseline() -> None:
    silent = attempt_with(step("a").model_copy(update={"tokens": None}), index=0)
    others = [attempt_with(step("a"), index=i) for i in (1, 2)]
    rows, rejected = trajectories_of(silent, *others)
    assert reasons(rejected) == [RejectReason.NO_TOKENS]
    assert [row.group_graded for row in rows] == [3, 3]


def test_a_group_needs_two_graded_attempts() -> None:
    rows, rejected = trajectories_of(attempt_with(step("a")), attempt_with(step("b"), task=OTHER))
    assert rows == ()
    assert reasons(rejected) == [RejectReason.GROUP_TOO_SMALL] * 2


def test_a_group_without_variance_is_kept() -> None:
    rows, rejected = trajectories_of(*(attempt_with(step("a"), index=i) for i in range(3)))
    assert [row.reward for row in rows] == [1.0, 1.0, 1.0]
    assert rejected == ()


def test_more_attempts_than_were_dispatched_is_a_callers_mistake() -> None:
    with pytest.raises(ValueError, match=r"2 graded attempts at .* but 1 dispatched"):
        trajectories_of(*(attempt_with(step("a"), index=i) for i in range(2)), dispatched=1)
