"""Screening by execution: a task enters a pool only with evidence that it can be trusted.

Cheap to dear: what can be read off the task, then two sandboxes for everything that is run (see
`trials`), then one in which the grader judges all that was left behind, each set from its own
copy. Exploit controls are shared by a family, image and grader version.

Wrong solutions that left the same are graded once. Every right one is graded by itself: a grader
that is not sure shows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

from flywheel.attempt import labels_of, open_host_tools, record
from flywheel.errors import ConfigError, ManifestError, SandboxError
from flywheel.grade import grade_sets
from flywheel.graders import ABSOLUTE, grader_source
from flywheel.sandbox import OpenSandbox
from flywheel.screen.lint import SearchImage, leaks, lint
from flywheel.screen.observed import Graded, observed
from flywheel.screen.perturb import perturb
from flywheel.screen.plans import (
    CLOCK_SHIFT,
    OTHER_CLOCK,
    REGRADED,
    REGRADED_SAME,
    RIGHT,
    SAME_CLOCK,
    SHIFTED,
    Role,
)
from flywheel.screen.receipt import exploits_fail, receipt, unvouched
from flywheel.screen.trials import Specimen, Trials, run_trials
from flywheel.simulation import check_simulation
from flywheel.tools import programs_for
from schemas.attempt import Attempt, Grade, InfraStatus
from schemas.file import File
from schemas.screening import CheckKind, ControlReport, ScreenCheck, ScreenReport
from schemas.task import TaskManifest
from schemas.tool import ToolKind

Check = Callable[[TaskManifest], ScreenCheck]
"""A check of the user's own."""


@dataclass(frozen=True, slots=True)
class Screening:
    """A receipt, and the reference's attempt: a demonstration by a named teacher."""

    report: ScreenReport
    reference: Attempt | None
    fault: InfraStatus | None = None
    """What kept a check from finishing."""


def screen(
    task: TaskManifest,
    open_sandbox: OpenSandbox,
    environment_digest: str,
    run_id: str,
    clock: Callable[[], float],
    controls: Callable[[], ControlReport],
    search_image: SearchImage,
    own_checks: Sequence[Check] = (),
) -> Screening:
    """Screen one task.

    Args:
        task: the task, with its sealed part.
        open_sandbox: starts a fresh sandbox.
        environment_digest: what the sandboxes are made of; part of the receipt.
        run_id: the cycle, for the attempts' identity.
        clock: seconds since the epoch.
        controls: returns what exploits came to for this family, image and grader version; asked
            only where all else is well.
        search_image: searches the layers of a task's own image.
        own_checks: further checks, run with the static ones.

    Returns:
        The receipt and the reference's attempt. A sandbox that failed makes the verdict
        UNSCREENED: nothing is known about the task then.
    """
    began, started_at = perf_counter(), clock()
    checks: list[ScreenCheck] = []
    try:
        checks += _unknown(task) or [
            *unvouched(task, lint(task, search_image)),
            *(check(task) for check in own_checks),
        ]
        if any(check.passed is False for check in checks):
            seconds = perf_counter() - began
            return Screening(receipt(task, environment_digest, checks, (), 0, seconds), None)
        trials = run_trials(task, open_sandbox, environment_digest, run_id, clock)
        found = leaks(task, _answer(trials), search_image)
        checks = [found if found and c.kind == found.kind else c for c in checks]
        graded, boots = _graded(task, trials, open_sandbox)
        checks += unvouched(task, observed(task, trials, graded))
        if any(tool.kind is ToolKind.SIMULATED for tool in task.brief.tools):
            checks.append(check_simulation(task, open_sandbox))
        if all(check.passed is not False for check in checks):
            checks.append(exploits_fail(controls()))
    except SandboxError as error:
        checks.append(ScreenCheck(kind=CheckKind.BOOTS, passed=None, evidence=str(error)))
        report = receipt(task, environment_digest, checks, (), 0, perf_counter() - began)
        return Screening(report, None, error.status)
    seconds = perf_counter() - began
    report = receipt(task, environment_digest, checks, graded, trials.boots + boots, seconds)
    return Screening(report, _demonstration(task, trials, graded, started_at))


def _unknown(task: TaskManifest) -> list[ScreenCheck]:
    """Return a failed check where the task names a program that nobody has made known."""
    try:
        grader_source(task.sealed.grader.program)
        programs_for(task.brief.tools)
        with ExitStack() as opened:
            open_host_tools(task.brief, task.sealed.user, opened)
    except (ConfigError, ManifestError) as error:
        return [ScreenCheck(kind=CheckKind.PINNED, passed=False, evidence=str(error)[:2000])]
    return []


def _answer(trials: Trials) -> tuple[File, ...]:
    """Return what the reference left behind."""
    return next(s.artifacts for s in trials.specimens if s.role is Role.REFERENCE)


def _graded(
    task: TaskManifest, trials: Trials, open_sandbox: OpenSandbox
) -> tuple[list[Graded], int]:
    """Grade every right specimen, and every set of artifacts that a wrong one left.

    The reference's perturbations are among the wrong ones.

    Returns them, and how many sandboxes were started for it.
    """
    right = [specimen for specimen in trials.specimens if specimen.role in RIGHT]
    wrong = [specimen for specimen in trials.specimens if specimen.role not in RIGHT]
    wrong += [Specimen(name, Role.PERTURBED, left) for name, left in perturb(task, _answer(trials))]
    distinct: dict[tuple[File, ...], None] = dict.fromkeys(s.artifacts for s in wrong)
    sets = [*(specimen.artifacts for specimen in right), *distinct]
    labels = labels_of(trials.reference[0]) if trials.reference else {}
    grades = grade_sets(task, sets, open_sandbox, labels)
    of_wrong = dict(zip(distinct, grades[len(right) :], strict=True))
    graded = list(zip(right, grades[: len(right)], strict=True))
    graded += [(specimen, of_wrong[specimen.artifacts]) for specimen in wrong]
    grader = task.sealed.grader
    if grader.program not in ABSOLUTE:
        return graded, 1 + bool(grader.exercises)
    again = _regraded(task, trials, _answer(trials), graded[0][1], open_sandbox)
    return [*graded, *again], len(sets) + len(again)


def _regraded(
    task: TaskManifest,
    trials: Trials,
    reference: tuple[File, ...],
    first: Grade,
    open_sandbox: OpenSandbox,
) -> list[Graded]:
    """Grade the reference's artifacts under another clock and zone; with a control on difference.

    Only for graders that run code of the task's own: ours read no clock.
    """
    labels = labels_of(trials.reference[0]) if trials.reference else {}

    def under(name: str, variables: Mapping[str, str]) -> Graded:
        (grade,) = grade_sets(task, [reference], open_sandbox, labels, variables)
        return Specimen(name, Role.REGRADED, reference), grade

    other_clock = trials.clock_shift >= CLOCK_SHIFT / 2
    shifted = under(REGRADED, SHIFTED | (OTHER_CLOCK if other_clock else {}))
    if shifted[1].verdict is first.verdict or not other_clock:
        return [shifted]
    return [shifted, under(REGRADED_SAME, SAME_CLOCK)]


def _demonstration(
    task: TaskManifest, trials: Trials, graded: Sequence[Graded], started_at: float
) -> Attempt | None:
    if trials.reference is None:
        return None
    key, version, rollout = trials.reference
    grade = next(grade for specimen, grade in graded if specimen.role is Role.REFERENCE)
    return record(task, version, key, rollout, grade, None, started_at)
