"""From checks to a receipt: verdict, kill rate, what went unmeasured and how far to trust it."""

from collections.abc import Iterable, Iterator, Sequence

from flywheel.attempt import HARNESS_VERSION
from flywheel.intervals import clopper_pearson
from flywheel.screen.observed import MUTANTS, Graded, has_passed, of_role
from flywheel.screen.plans import Role
from schemas.attempt import Verdict
from schemas.screening import (
    CheckKind,
    ControlReport,
    ScreenCheck,
    ScreenReport,
    ScreenVerdict,
    Trust,
)
from schemas.task import UNTRUSTED, TaskManifest

AUTHORS_WORD = frozenset({CheckKind.DESCRIBED, CheckKind.ALTERNATIVE_PASSES})
"""Checks of a task against tags and solutions that came with it."""


def unvouched(task: TaskManifest, checks: Iterable[ScreenCheck]) -> Iterator[ScreenCheck]:
    """Yield the checks; what speaks for an outsider's task by its author's word is unmeasured."""
    for check in checks:
        if task.source.kind in UNTRUSTED and check.kind in AUTHORS_WORD and check.passed:
            evidence = f"only its author says so: {check.evidence}"
            yield ScreenCheck(
                kind=check.kind, passed=None, evidence=evidence[:2000], seconds=check.seconds
            )
        else:
            yield check


def exploits_fail(controls: ControlReport) -> ScreenCheck:
    """Cite the controls: False where an exploit lived, None where one could not be tried."""
    killed = [control.killed for control in controls.controls]
    passed = False if False in killed else None if None in killed else bool(killed)
    others = [f"{c.name}: {c.evidence}" for c in controls.controls if not c.killed]
    told = f"{killed.count(True)} of {len(killed)} failed ({controls.control_id})"
    evidence = "; ".join([told, *others])[:2000]
    return ScreenCheck(kind=CheckKind.EXPLOITS_FAIL, passed=passed, evidence=evidence)


def receipt(
    task: TaskManifest,
    environment_digest: str,
    checks: Sequence[ScreenCheck],
    graded: Sequence[Graded],
    boots: int,
    seconds: float,
) -> ScreenReport:
    """Return the receipt: one failed check rejects, unless all that failed are for a person.

    The reason is the first check that rejects, else the first that failed.
    """
    mutants = [g for g in graded if g[0].role in MUTANTS]
    survivors = tuple(s.name for s, grade in mutants if grade.verdict is not Verdict.FAILED)
    lower, upper = clopper_pearson(len(mutants) - len(survivors), len(mutants))
    references = of_role(graded, Role.REFERENCE)
    verdict, reason = _verdict(task, checks)
    unmeasured = tuple(check.kind for check in checks if check.passed is None)
    return ScreenReport(
        version_id=task.version_id,
        task_id=task.task_id,
        environment_digest=environment_digest,
        harness_version=HARNESS_VERSION,
        grader_version=task.sealed.grader.version,
        checks=tuple(checks),
        mutants=len(mutants),
        mutants_killed=len(mutants) - len(survivors),
        kill_lower=lower,
        kill_upper=upper,
        survivors=survivors,
        unmeasured=unmeasured,
        references=len(references),
        references_passed=sum(has_passed(grade) for _, grade in references),
        boots=boots,
        verdict=verdict,
        reason=reason,
        trust=_trust(task, unmeasured),
        seconds=seconds,
    )


def _verdict(task: TaskManifest, checks: Sequence[ScreenCheck]) -> tuple[ScreenVerdict, str]:
    failed = [check for check in checks if check.passed is False]
    if failed:
        sure = [check for check in failed if not _doubtful(task, check)]
        verdict = ScreenVerdict.REJECTED if sure else ScreenVerdict.QUARANTINED
        return verdict, f"not-{(sure or failed)[0].kind}"
    if any(check.kind == CheckKind.BOOTS and check.passed is None for check in checks):
        return ScreenVerdict.UNSCREENED, "not-boots"
    return ScreenVerdict.ACCEPTED, "accepted"


def _trust(task: TaskManifest, unmeasured: Sequence[str]) -> Trust:
    """Return how much of the list stands behind a task; an outsider's word is no part of it."""
    partial = task.source.kind in UNTRUSTED or set(unmeasured) - {CheckKind.CLOCK_SHIFTED}
    return Trust.PARTIAL if partial else Trust.VERIFIED


def _doubtful(task: TaskManifest, bad: ScreenCheck) -> bool:
    """Tell whether a person should look: the fault may be of the instrument, or pass."""
    if bad.kind in (CheckKind.REFERENCE_REPEATS, CheckKind.CLOCK_SHIFTED):
        return True
    if bad.kind == CheckKind.PINNED:
        return bool(task.brief.environment.egress)
    return task.source.kind in UNTRUSTED and bad.kind in (
        CheckKind.MUTANTS_FAIL,
        CheckKind.CHECKS_CAN_FAIL,
        CheckKind.OUTPUTS_NAMED,
        CheckKind.STEPS_NEEDED,
        CheckKind.PREFIXES_FAIL,
    )
