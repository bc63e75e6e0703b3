"""Screening on real sandboxes: good tasks get a receipt, sabotaged ones a reason."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flywheel.errors import SandboxError
from flywheel.sandbox import Backend, Sandbox, SandboxSpec
from flywheel.screen import Screening, screen
from schemas.attempt import InfraStage, Verdict
from schemas.task import File, Mutant, MutantKind, ScreenVerdict, TaskManifest
from tests.real_tasks import real_task


@pytest.fixture(params=["bubblewrap", pytest.param("docker_backend", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.getfixturevalue(request.param)


def screened(task: TaskManifest, backend: Backend) -> Screening:
    return screen(task, backend.open, "env-test", "run-test", time.time)


def sabotaged(task: TaskManifest, **sealed: object) -> TaskManifest:
    """The task with parts of its sealed half replaced, rebuilt so that its ids are its own."""
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    half = {name: getattr(task.sealed, name) for name in type(task.sealed).model_fields}
    return TaskManifest(**{**fields, "sealed": type(task.sealed)(**{**half, **sealed})})


@pytest.mark.parametrize(
    ("family", "rules"),
    [
        ("orders", ("keep-last", "half-even")),
        ("logs", ("repeats-first", "busiest-first")),
        ("config", ("override-wins", "as-env")),
    ],
)
def test_a_good_task_is_accepted_with_every_mutant_failed(
    backend: Backend, family: str, rules: tuple[str, ...]
) -> None:
    task = real_task(*rules, family=family)
    screening = screened(task, backend)
    report = screening.report
    assert (report.verdict, report.reason) == (ScreenVerdict.ACCEPTED, "accepted")
    assert report.mutants == report.mutants_killed == len(task.sealed.mutants) >= len(rules) + 1
    first, second = screening.references
    assert first.verdict is second.verdict is Verdict.PASSED
    assert first.attempt_id != second.attempt_id
    assert first.trajectory.artifacts == second.trajectory.artifacts


def test_a_reference_that_does_not_solve_the_task_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task()
    report = screened(sabotaged(task, reference=task.sealed.reference[:-1]), bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.REJECTED, "not-reference-passes")


def test_a_task_that_is_solved_by_doing_nothing_is_a_reason(bubblewrap: Backend) -> None:
    """Its grader checks the inputs alone."""
    task = real_task()
    grader = task.sealed.grader.model_copy(update={"checks": ("input-unchanged",)})
    report = screened(sabotaged(task, grader=grader), bubblewrap).report
    assert report.reason == "not-initial-state-fails"


def test_a_grader_that_lets_a_mutant_pass_is_a_reason_and_the_survivor_is_named(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    grader = task.sealed.grader.model_copy(update={"checks": ("exists", "columns")})
    report = screened(sabotaged(task, grader=grader), bubblewrap).report
    assert report.reason == "not-mutants-fail"
    assert "without-keep-last" in report.survivors
    assert report.mutants_killed < report.mutants


def test_a_rule_without_a_mutant_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task("keep-last", "at-least")
    of_one_rule = Mutant(name="nothing", kind=MutantKind.RULE_LEFT_OUT, rule="keep-last", script=())
    report = screened(sabotaged(task, mutants=(of_one_rule,)), bubblewrap).report
    assert (report.reason, report.survivors) == ("not-mutants-fail", ())


def test_a_wrong_expected_answer_is_found_by_the_reference(bubblewrap: Backend) -> None:
    task = real_task()
    (right,) = task.sealed.grader.expected
    wrong = File(path=right.path, content=right.content.replace(",", ",1", 3))
    grader = task.sealed.grader.model_copy(update={"expected": (wrong,)})
    report = screened(sabotaged(task, grader=grader), bubblewrap).report
    assert report.reason == "not-reference-passes"


def test_a_sandbox_that_fails_says_nothing_about_the_task() -> None:
    @contextmanager
    def never(spec: SandboxSpec) -> Iterator[Sandbox]:
        raise SandboxError(InfraStage.ENGINE, "engine-unreachable", "planted")
        yield

    screening = screen(real_task(), never, "env-test", "run-test", time.time)
    assert screening.report.verdict is ScreenVerdict.UNSCREENED
    assert screening.references == ()
    assert screening.report.mutants == 0
