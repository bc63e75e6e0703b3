"""Triage: structured evidence decides whose failure an attempt is; words decide nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.triage import RULES, mask_literals, triage
from schemas.attempt import (
    Attempt,
    CheckResult,
    Grade,
    InfraStage,
    Termination,
    Trajectory,
    Turn,
    TurnStatus,
    Verdict,
)
from schemas.failure import Failure
from schemas.tool import Parameter, ToolCall, ToolSpec
from tests.factories import make_attempt, make_infra, make_turn

DEDUPLICATE = ToolSpec(
    name="deduplicate",
    program="table",
    description="keep one row for each value of a column",
    parameters=(
        Parameter(name="column", description="a column"),
        Parameter(name="keep", description="which row stays", choices=("first", "last")),
    ),
)
TOOLS = (DEDUPLICATE, ToolSpec(name="sum", description="Add up a column.", program="sums"))
SUBMITTED = make_turn("submit", status=TurnStatus.SUBMITTED, exit_code=None)
WORDS = st.text(max_size=60)


def call(tool: str = "deduplicate", **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def failed_with(
    *turns: Turn,
    checks: dict[str, bool] | None = None,
    missing: tuple[str, ...] = (),
    termination: Termination = Termination.SUBMITTED,
    rules: tuple[str, ...] = ("keep-last",),
) -> Attempt:
    results = tuple(
        CheckResult(name=name, passed=passed, evidence=f"looked at {name}")
        for name, passed in (checks or {"exists": True, "rows": False, "order": False}).items()
    )
    return make_attempt(
        grade=Grade(verdict=Verdict.FAILED, checks=results, grader_version="1"),
        trajectory=Trajectory(turns=turns, artifacts=(), missing=missing),
        termination=termination,
        rules=rules,
    )


def judged(attempt: Attempt) -> Failure:
    failure = triage(attempt, "cycle-0001", TOOLS)
    assert failure is not None
    return failure


def layer_and_code(attempt: Attempt) -> tuple[str, str]:
    failure = judged(attempt)
    return failure.layer.value, failure.code


def test_an_attempt_is_no_failure_if_and_only_if_it_passed() -> None:
    assert triage(make_attempt(passed=True), "cycle-0001", TOOLS) is None
    assert triage(make_attempt(passed=False), "cycle-0001", TOOLS) is not None
    assert triage(make_attempt(passed=None), "cycle-0001", TOOLS) is not None


def test_a_failed_tool_transport_is_infrastructure_whatever_the_last_words_say() -> None:
    words = make_turn(
        "submit",
        status=TurnStatus.SUBMITTED,
        raw="The search found nothing, so there is nothing to report.",
        observation="search found nothing",
    )
    attempt = make_attempt(
        infra=make_infra(InfraStage.TOOL, "connection-reset"),
        trajectory=Trajectory(turns=(make_turn("sum"), words), artifacts=()),
    )
    assert layer_and_code(attempt) == ("infrastructure", "tool-connection-reset")


def test_no_verdict_without_a_fault_is_the_graders() -> None:
    assert layer_and_code(make_attempt(passed=None)) == ("grader", "no-verdict")


@pytest.mark.parametrize(
    ("status", "code"),
    [(TurnStatus.MALFORMED, "malformed-call"), (TurnStatus.FORBIDDEN, "forbidden-call")],
)
def test_a_refused_call_that_nothing_made_good_is_protocol(status: TurnStatus, code: str) -> None:
    refused = make_turn(status=status, exit_code=None)
    assert layer_and_code(failed_with(refused, SUBMITTED)) == ("protocol", code)
    ended = failed_with(refused, termination=Termination.PROTOCOL)
    assert layer_and_code(ended) == ("protocol", code)


def test_a_refused_call_that_was_repaired_is_not_what_failed() -> None:
    attempt = failed_with(make_turn(status=TurnStatus.MALFORMED), make_turn(), SUBMITTED)
    assert layer_and_code(attempt) == ("capability", "wrong-rows")


@pytest.mark.parametrize(
    "limit",
    ["step-limit", "token-limit", "time-limit", "cost-limit", "context-limit"],
)
def test_a_limit_is_context_and_keeps_its_name(limit: str) -> None:
    attempt = failed_with(make_turn(), termination=Termination(limit))
    assert layer_and_code(attempt) == ("context", limit)


def test_a_last_call_that_ran_out_of_time_is_context() -> None:
    late = make_turn(status=TurnStatus.TIMEOUT, exit_code=-9)
    assert layer_and_code(failed_with(late, SUBMITTED)) == ("context", "tool-timeout")
    assert layer_and_code(failed_with(late, make_turn(), SUBMITTED))[0] == "capability"


def test_a_clean_failure_is_capability_with_the_first_thing_that_was_wrong() -> None:
    error = make_turn(status=TurnStatus.TOOL_ERROR, exit_code=1)
    absent = ("total.csv: not found",)
    assert layer_and_code(failed_with(SUBMITTED, missing=absent)) == ("capability", "no-artifact")
    assert layer_and_code(failed_with(error, missing=absent)) == ("capability", "no-artifact")
    assert layer_and_code(failed_with(error, SUBMITTED)) == ("capability", "tool-error")
    assert layer_and_code(failed_with(make_turn(), SUBMITTED)) == ("capability", "wrong-rows")


def test_a_tool_killed_by_a_signal_is_never_called_a_lack_of_capability() -> None:
    killed = make_turn(status=TurnStatus.TOOL_ERROR, exit_code=-9)
    for missing in ((), ("total.csv: not found",)):
        attempt = failed_with(make_turn(), killed, SUBMITTED, missing=missing)
        assert layer_and_code(attempt) == ("undetermined", "unexplained")


STATUSES = st.sampled_from(
    [
        TurnStatus.OK,
        TurnStatus.TOOL_ERROR,
        TurnStatus.TIMEOUT,
        TurnStatus.MALFORMED,
        TurnStatus.FORBIDDEN,
    ]
)


@given(
    statuses=st.lists(STATUSES, max_size=4),
    words=st.tuples(WORDS, WORDS, WORDS, WORDS),
    graded=st.booleans(),
    ended=st.sampled_from([Termination.SUBMITTED, Termination.STEP_LIMIT, Termination.PROTOCOL]),
)
def test_words_never_overturn_a_code(
    statuses: list[TurnStatus], words: tuple[str, str, str, str], graded: bool, ended: Termination
) -> None:
    def attempt(raw: str, observation: str, check: str, overall: str) -> Attempt:
        result = CheckResult(name="rows", passed=False, evidence=check)
        verdict = Verdict.FAILED if graded else Verdict.UNGRADED
        grade = Grade(verdict=verdict, checks=(result,), evidence=overall, grader_version="1")
        turns = tuple(make_turn(status=s, raw=raw, observation=observation) for s in statuses)
        trajectory = Trajectory(turns=turns, artifacts=())
        return make_attempt(grade=grade, trajectory=trajectory, termination=ended)

    assert layer_and_code(attempt(*words)) == layer_and_code(attempt("", "", "", ""))


def test_a_failure_names_the_rule_that_decided_and_its_version() -> None:
    names = {f"{rule.name}@{rule.version}" for rule in RULES}
    assert judged(make_attempt(passed=False)).rule == "failing-check@1"
    assert len(names) == len(RULES)


def test_a_digest_keeps_choices_and_masks_every_other_literal() -> None:
    wrong = make_turn(
        call=call(column="amount_eur", keep="first"),
        status=TurnStatus.TOOL_ERROR,
        observation="no such column",
    )
    odd = make_turn(call=call(column="keep", keep="middle", secret="x"))
    unknown = make_turn(
        call=call("drop-table", name="amount_eur"),
        status=TurnStatus.FORBIDDEN,
        observation="no tool `drop-table`",
    )
    failure = judged(failed_with(wrong, odd, unknown, make_turn(), SUBMITTED))
    assert failure.digest == (
        "wrong-rows | failed=rows failed=order | "
        "deduplicate tool-error column=# keep=first > deduplicate column=# keep=# #=# > "
        "no-such-tool forbidden > sum | no tool #"
    )


def test_a_digest_ends_with_the_last_error_masked() -> None:
    turn = make_turn(
        call=call(column="a", keep="last"),
        status=TurnStatus.TOOL_ERROR,
        observation="can't find column `amount` in /tmp/orders.csv line 17\n",
    )
    assert judged(failed_with(turn, SUBMITTED)).digest.endswith("| can't find column # in # line #")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("no column 'plume' here", "no column # here"),
        ('no column "plume oak"', "no column #"),
        ("don't touch input", "don't touch input"),
        ("cannot open reef.csv", "cannot open #"),
        ("row 12 of /a/b has 3.5", "row # of # has #"),
        ("no table: load one first", "no table: load one first"),
    ],
)
def test_masking_hides_literals_and_keeps_words(text: str, masked: str) -> None:
    assert mask_literals(text) == masked


@given(rules=st.lists(st.from_regex(r"[a-z]{3,8}-[a-z]{3,8}", fullmatch=True), max_size=4))
def test_a_digest_does_not_depend_on_the_tasks_rules(rules: list[str]) -> None:
    turn = make_turn(call=call(column="a", keep="last"))
    plain = failed_with(turn, SUBMITTED, rules=())
    with_rules = failed_with(turn, SUBMITTED, rules=tuple(rules))
    assert judged(plain).digest == judged(with_rules).digest
