"""One attempt on a real sandbox: what is graded, what is not, and whose fault it was."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from flywheel.attempt import attempt
from flywheel.collect import collect
from flywheel.errors import PolicyError, SandboxError
from flywheel.policy import Action
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import Backend, ExecResult, OpenSandbox, Sandbox, SandboxSpec
from schemas.attempt import (
    Attempt,
    InfraStage,
    Sampling,
    Termination,
    Turn,
    TurnStatus,
    Verdict,
)
from schemas.task import Brief, Budget, TaskManifest
from schemas.tool import ToolCall
from tests.real_tasks import faulty, order_for, real_task

Meddle = Callable[[list[str], Callable[[], ExecResult]], ExecResult]
GRADER = "compare"


@pytest.fixture(params=["bubblewrap", pytest.param("docker_backend", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.getfixturevalue(request.param)


def try_it(task: TaskManifest, policy: object, open_sandbox: OpenSandbox) -> Attempt:
    order = order_for(task, policy.version)  # type: ignore[attr-defined]
    return attempt(
        task,
        policy,  # type: ignore[arg-type]
        open_sandbox,
        order.setting,
        order.key,
        time.time,
    )


def solve(task: TaskManifest) -> ScriptedPolicy:
    return ScriptedPolicy("reference", task.sealed.reference)


def test_the_reference_passes_every_check_and_every_mutant_fails_one(backend: Backend) -> None:
    task = real_task("keep-last", "largest-first")
    made = try_it(task, solve(task), backend.open)
    assert (made.verdict, made.reward, made.termination) == (
        Verdict.PASSED,
        1.0,
        Termination.SUBMITTED,
    )
    assert [check.name for check in made.grade.checks] == list(task.sealed.grader.checks)
    for mutant in task.sealed.mutants:
        wrong = try_it(task, ScriptedPolicy(mutant.name, mutant.script), backend.open)
        assert (wrong.verdict, wrong.reward) == (Verdict.FAILED, 0.0), mutant.name


def test_what_the_policy_saw_is_what_is_stored(bubblewrap: Backend) -> None:
    task = real_task()
    seen: list[tuple[Turn, ...]] = []

    @dataclass
    class Watching:
        inner: ScriptedPolicy
        version: str = "watching"

        def act(self, brief: Brief, turns: Sequence[Turn], sampling: Sampling, seed: int) -> Action:
            seen.append(tuple(turns))
            return self.inner.act(brief, turns, sampling, seed)

    made = try_it(task, Watching(solve(task)), bubblewrap.open)
    assert seen == [made.trajectory.turns[:n] for n in range(len(made.trajectory.turns))]
    assert "columns `" in made.trajectory.turns[0].observation


def test_a_limit_is_a_failure_graded_on_what_was_left(bubblewrap: Backend) -> None:
    few_steps = real_task(budget=Budget(steps=2))
    made = try_it(few_steps, solve(few_steps), bubblewrap.open)
    assert (made.termination, made.verdict) == (Termination.STEP_LIMIT, Verdict.FAILED)
    no_time = real_task(budget=Budget(seconds=1e-6))
    made = try_it(no_time, solve(no_time), bubblewrap.open)
    assert (made.termination, made.reward, made.infra) == (Termination.TIME_LIMIT, 0.0, None)


def test_calls_that_are_not_allowed_are_told_so_and_end_the_attempt_after_two_repairs(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    bad = (
        ToolCall(tool="rm", arguments={"file": "x"}),
        ToolCall(tool="sort", arguments={"order": "sideways"}),
        ToolCall(tool="sort", arguments={"direction": "descending"}),
    )
    made = try_it(task, ScriptedPolicy("bad", bad), bubblewrap.open)
    assert made.termination is Termination.PROTOCOL
    assert made.verdict is Verdict.FAILED
    assert [turn.status for turn in made.trajectory.turns] == [
        TurnStatus.FORBIDDEN,
        TurnStatus.MALFORMED,
        TurnStatus.MALFORMED,
    ]
    assert "one of: ascending, descending" in made.trajectory.turns[1].observation
    repaired = ScriptedPolicy("repaired", (*bad[:2], *task.sealed.reference))
    assert try_it(task, repaired, bubblewrap.open).verdict is Verdict.PASSED


def test_a_tool_that_refuses_is_an_observation_and_not_a_fault(bubblewrap: Backend) -> None:
    task = real_task()
    script = (ToolCall(tool="read-csv", arguments={"file": "nowhere.csv"}), *task.sealed.reference)
    made = try_it(task, ScriptedPolicy("clumsy", script), bubblewrap.open)
    first = made.trajectory.turns[0]
    assert (first.status, first.exit_code) == (TurnStatus.TOOL_ERROR, 2)
    assert "`nowhere.csv`" in first.observation
    assert made.verdict is Verdict.PASSED


@contextmanager
def never_boots(spec: SandboxSpec) -> Iterator[Sandbox]:
    raise SandboxError(InfraStage.BOOT, "no-start", "planted")
    yield


def test_a_sandbox_that_does_not_start_is_infrastructure_and_never_a_reward() -> None:
    task = real_task()
    made = try_it(task, solve(task), never_boots)
    assert (made.verdict, made.reward, made.termination) == (
        Verdict.UNGRADED,
        None,
        Termination.INFRASTRUCTURE,
    )
    assert made.infra is not None
    assert made.infra.stage is InfraStage.BOOT


def test_every_infrastructure_try_is_kept_and_only_faults_are_tried_again(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    opened: list[SandboxSpec] = []

    @contextmanager
    def flaky(spec: SandboxSpec) -> Iterator[Sandbox]:
        opened.append(spec)
        if len(opened) == 1:
            raise SandboxError(InfraStage.BOOT, "no-start", "planted")
        with bubblewrap.open(spec) as sandbox:
            yield sandbox

    made = collect(
        [order_for(task, solve(task).version), order_for(task, solve(task).version, index=1)],
        solve(task),
        flaky,
        time.time,
        workers=1,
        retries=2,
        on_attempt=lambda: None,
    )
    assert [(a.key.index, a.key.try_number, a.verdict) for a in made] == [
        (0, 0, Verdict.UNGRADED),
        (0, 1, Verdict.PASSED),
        (1, 0, Verdict.PASSED),
    ]
    assert len({a.attempt_id for a in made}) == 3


def test_a_policy_that_can_not_be_asked_is_infrastructure(bubblewrap: Backend) -> None:
    class Silent:
        version = "silent"

        def act(self, *_: object) -> Action:
            raise PolicyError("connection-refused", "planted")

    made = try_it(real_task(), Silent(), bubblewrap.open)
    assert made.infra is not None
    assert (made.infra.stage, made.infra.code) == (InfraStage.MODEL, "connection-refused")
    assert made.reward is None


def collected(
    task: TaskManifest, policy: ScriptedPolicy, open_sandbox: OpenSandbox
) -> list[Attempt]:
    order = order_for(task, policy.version)
    made = collect(
        [order], policy, open_sandbox, time.time, workers=1, retries=2, on_attempt=lambda: None
    )
    return list(made)


def dies_under(tool: str, times: int = 99) -> Meddle:
    """The sandbox is lost under each call of `tool`, `times` times."""
    left = [times]

    def meddle(argv: list[str], call: Callable[[], ExecResult]) -> ExecResult:
        if argv[1] == tool and left[0]:
            left[0] -= 1
            raise SandboxError(InfraStage.TOOL, "worker-lost", "planted")
        return call()

    return meddle


def test_a_sandbox_that_dies_under_an_attempt_again_is_its_failure_if_the_reference_survives(
    bubblewrap: Backend,
) -> None:
    """Else a policy could erase its failures by killing the sandbox."""
    task = real_task("keep-last")
    killer = (ToolCall(tool="sort", arguments={"order": "descending"}),)
    made = collected(
        task, ScriptedPolicy("killer", killer), faulty(bubblewrap.open, dies_under("sort"))
    )
    assert [a.infra is None for a in made] == [False, True]
    assert (made[-1].termination, made[-1].reward) == (Termination.SANDBOX_KILLED, 0.0)


def test_a_sandbox_that_dies_under_the_reference_too_is_infrastructure(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    made = collected(task, solve(task), faulty(bubblewrap.open, dies_under("write-csv")))
    assert [a.reward for a in made] == [None, None, None]
    assert {a.termination for a in made} == {Termination.INFRASTRUCTURE}


def test_a_sandbox_that_dies_once_is_tried_again_and_forgiven(bubblewrap: Backend) -> None:
    task = real_task()
    made = collected(task, solve(task), faulty(bubblewrap.open, dies_under("write-csv", 1)))
    assert [a.verdict for a in made] == [Verdict.UNGRADED, Verdict.PASSED]


@pytest.mark.parametrize("stage", [InfraStage.DEADLINE, InfraStage.MEMORY])
def test_what_ends_a_sandbox_is_the_policys_doing_only_while_its_call_runs(
    bubblewrap: Backend, stage: InfraStage
) -> None:
    @contextmanager
    def never(spec: SandboxSpec) -> Iterator[Sandbox]:
        raise SandboxError(stage, "planted", "planted")
        yield

    def meddle(argv: list[str], call: Callable[[], ExecResult]) -> ExecResult:
        if argv[1] == "write-csv":
            raise SandboxError(stage, "planted", "planted")
        return call()

    task = real_task()
    at_boot = try_it(task, solve(task), never)
    assert (at_boot.reward, at_boot.termination) == (None, Termination.INFRASTRUCTURE)
    under_a_call = try_it(task, solve(task), faulty(bubblewrap.open, meddle))
    assert (under_a_call.reward, under_a_call.infra) == (0.0, None)


def grader_fails_on(marked: bytes | None, times: int) -> Meddle:
    """The grader falls over `times` times: on sets that hold `marked`, or on every set."""
    left = [times]

    def meddle(argv: list[str], call: Callable[[], ExecResult]) -> ExecResult:
        result = call()
        if argv[0] == GRADER and left[0] and (marked is None or marked in result.output):
            left[0] -= 1
            return ExecResult(1, b"Traceback: planted", 0, result.seconds, timed_out=False)
        return result

    return meddle


def test_a_grader_that_falls_over_once_is_run_again_on_the_same_artifacts(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    made = try_it(task, solve(task), faulty(bubblewrap.open, grader_fails_on(None, 1)))
    assert (made.verdict, made.infra) == (Verdict.PASSED, None)


def test_artifacts_that_bring_the_grader_down_while_it_grades_the_right_answer_have_failed(
    bubblewrap: Backend,
) -> None:
    """A policy can't erase a failure by crashing its grader."""
    task = real_task()
    lazy = ScriptedPolicy("lazy", ())
    meddle = grader_fails_on(b"exists\tfail", 99)
    made = try_it(task, lazy, faulty(bubblewrap.open, meddle))
    assert (made.verdict, made.reward, made.infra) == (Verdict.FAILED, 0.0, None)
    assert [check.name for check in made.grade.checks] == ["gradable"]


def test_artifacts_that_kill_the_graders_sandbox_have_failed(bubblewrap: Backend) -> None:
    task = real_task()

    def meddle(argv: list[str], call: Callable[[], ExecResult]) -> ExecResult:
        result = call()
        if argv[0] == GRADER and b"exists\tfail" in result.output:
            raise SandboxError(InfraStage.TOOL, "worker-lost", "planted")
        return result

    made = try_it(task, ScriptedPolicy("lazy", ()), faulty(bubblewrap.open, meddle))
    assert (made.reward, made.infra) == (0.0, None)
    assert [check.name for check in made.grade.checks] == ["gradable"]


def test_a_grader_that_can_not_grade_the_right_answer_either_grades_nothing(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    made = try_it(task, solve(task), faulty(bubblewrap.open, grader_fails_on(None, 99)))
    assert (made.verdict, made.reward) == (Verdict.UNGRADED, None)
    assert made.infra is not None
    assert made.infra.stage is InfraStage.GRADER


def test_without_the_graders_own_last_word_nothing_is_graded(bubblewrap: Backend) -> None:
    """Every check printed as passed, and no `graded`: an unfinished grader."""

    def cut(argv: list[str], call: Callable[[], ExecResult]) -> ExecResult:
        result = call()
        if argv[0] != GRADER:
            return result
        output = result.output.removesuffix(b"graded\n")
        return ExecResult(0, output, 0, result.seconds, timed_out=False)

    task = real_task()
    made = try_it(task, solve(task), faulty(bubblewrap.open, cut))
    assert made.verdict is Verdict.UNGRADED


def test_the_agents_sandbox_never_holds_what_is_sealed(bubblewrap: Backend) -> None:
    task = real_task()
    held: list[SandboxSpec] = []

    @contextmanager
    def watched(spec: SandboxSpec) -> Iterator[Sandbox]:
        held.append(spec)
        with bubblewrap.open(spec) as sandbox:
            yield sandbox

    try_it(task, solve(task), watched)
    agent, grader = held
    answer = task.sealed.grader.expected[0].content
    assert set(agent.programs) == {"table"}
    assert set(grader.programs) == {GRADER}
    assert answer not in task.brief.model_dump_json()
