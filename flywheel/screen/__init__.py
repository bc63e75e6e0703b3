"""Screening by execution: a task enters a pool only with evidence that it can be trusted.

Cheap to dear: what can be read off the task, then two sandboxes for everything that is run (see
`trials`), then one in which the grader judges all that was left behind, each set from its own
copy. Exploit controls are shared by a family, image and grader version.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from flywheel.attempt import labels_of, record
from flywheel.errors import SandboxError
from flywheel.grade import grade_sets
from flywheel.graders import ABSOLUTE
from flywheel.sandbox import OpenSandbox
from flywheel.screen.lint import SearchImage, lint
from flywheel.screen.perturb import perturb
from flywheel.screen.plans import Role
from flywheel.screen.receipt import Graded, exploits_fail, observed, receipt
from flywheel.screen.trials import Specimen, Trials, run_trials
from flywheel.simulation import check_simulation
from schemas.attempt import Attempt, InfraStatus
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
        checks += [*lint(task, search_image), *(check(task) for check in own_checks)]
        if any(check.passed is False for check in checks):
            seconds = perf_counter() - began
            return Screening(receipt(task, environment_digest, checks, (), 0, seconds), None)
        trials = run_trials(task, open_sandbox, environment_digest, run_id, clock)
        graded, boots = _graded(task, trials, open_sandbox)
        checks += observed(task, trials, graded)
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


def _graded(
    task: TaskManifest, trials: Trials, open_sandbox: OpenSandbox
) -> tuple[list[Graded], int]:
    """Grade every specimen and every perturbation of the reference's; equal sets only once.

    Returns them, and how many sandboxes were started for it.
    """
    right = next(s.artifacts for s in trials.specimens if s.role is Role.REFERENCE)
    specimens = [
        *trials.specimens,
        *(Specimen(name, Role.PERTURBED, artifacts) for name, artifacts in perturb(task, right)),
    ]
    sets: dict[tuple[File, ...], None] = dict.fromkeys(s.artifacts for s in specimens)
    labels = labels_of(trials.reference[0]) if trials.reference else {}
    grades = dict(zip(sets, grade_sets(task, list(sets), open_sandbox, labels), strict=True))
    grader = task.sealed.grader
    boots = len(sets) if grader.program in ABSOLUTE else 1 + bool(grader.exercises)
    return [(specimen, grades[specimen.artifacts]) for specimen in specimens], boots


def _demonstration(
    task: TaskManifest, trials: Trials, graded: Sequence[Graded], started_at: float
) -> Attempt | None:
    if trials.reference is None:
        return None
    key, version, rollout = trials.reference
    grade = next(grade for specimen, grade in graded if specimen.role is Role.REFERENCE)
    return record(task, version, key, rollout, grade, None, started_at)
