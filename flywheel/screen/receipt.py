"""From what was observed to a receipt: checks, verdict, kill rate, and what went unmeasured."""

from collections.abc import Iterator, Mapping, Sequence

from flywheel.attempt import HARNESS_VERSION
from flywheel.intervals import clopper_pearson
from flywheel.screen.exploits import UNTRUSTED
from flywheel.screen.lint import artifacts_written
from flywheel.screen.plans import CLOCK_SHIFT, INITIAL, RIGHT, SAME, Role
from flywheel.screen.trials import Specimen, Trials
from schemas.attempt import Grade, Verdict
from schemas.screening import (
    CheckKind,
    ControlReport,
    ScreenCheck,
    ScreenReport,
    ScreenVerdict,
    Trust,
)
from schemas.task import TaskManifest

WRONG = frozenset(Role) - RIGHT
MUTANTS = frozenset({Role.MUTANT, Role.STEP_DROPPED, Role.PERTURBED})
Graded = tuple[Specimen, Grade]


def observed(task: TaskManifest, trials: Trials, graded: Sequence[Graded]) -> Iterator[ScreenCheck]:
    """Yield the checks that were executed on the task itself, cheap to dear."""
    yield _check(CheckKind.BOOTS, True, f"{trials.boots} sandboxes started")
    yield _check(
        CheckKind.TOOLS_REACHABLE,
        not trials.unreachable,
        "; ".join(trials.unreachable) or f"{len(task.brief.tools)} tools",
    )
    yield _fails(CheckKind.INITIAL_STATE_FAILS, [g for g in graded if g[0].name == INITIAL])
    yield _fails(CheckKind.NO_OP_FAILS, _of(graded, Role.NO_OP))
    references = _of(graded, Role.REFERENCE)
    yield _passes(CheckKind.REFERENCE_PASSES, references[:1])
    yield _outputs_named(task, references)
    yield _repeats(references)
    yield _clock(trials, graded)
    yield _fails(CheckKind.PREFIXES_FAIL, _of(graded, Role.PREFIX))
    yield _mutants(task, graded)
    yield _fails(CheckKind.STEPS_NEEDED, _of(graded, Role.STEP_DROPPED), none=True)
    yield _checks_can_fail(task, graded)
    alternatives = _of(graded, Role.ALTERNATIVE)
    if alternatives:
        yield _passes(CheckKind.ALTERNATIVE_PASSES, alternatives)
    else:
        yield _check(CheckKind.ALTERNATIVE_PASSES, None, "no other right solution is known")


def _of(graded: Sequence[Graded], role: Role) -> list[Graded]:
    return [(specimen, grade) for specimen, grade in graded if specimen.role is role]


def _check(
    kind: CheckKind, passed: bool | None, evidence: str, graded: Sequence[Graded] = ()
) -> ScreenCheck:
    seconds = sum(specimen.seconds for specimen, _ in graded)
    return ScreenCheck(kind=kind, passed=passed, evidence=evidence[:2000], seconds=seconds)


def _fails(kind: CheckKind, graded: Sequence[Graded], none: bool = False) -> ScreenCheck:
    """Check that all of these fail; `none`: there may be none of them."""
    passed = [s.name for s, grade in graded if grade.verdict is not Verdict.FAILED]
    said = f"{len(graded) - len(passed)} of {len(graded)} failed"
    return _check(
        kind,
        not passed and (none or bool(graded)),
        f"{said}; not failed: {', '.join(passed)}" if passed else said,
        graded,
    )


def _passes(kind: CheckKind, graded: Sequence[Graded]) -> ScreenCheck:
    faults = [f"{s.name}: {said(grade)}" for s, grade in graded if not _passed(grade)]
    evidence = "; ".join(faults) or f"{len(graded)} of {len(graded)} passed"
    return _check(kind, not faults and bool(graded), evidence, graded)


def _outputs_named(task: TaskManifest, references: Sequence[Graded]) -> ScreenCheck:
    """Look in the goal for what the reference makes: who is not told where can't be right."""
    if task.sealed.grader.program == "tests":
        return _check(CheckKind.OUTPUTS_NAMED, True, "tests find what they need by themselves")
    made = artifacts_written(task, references[0][0].artifacts)
    names = {part for file in made for part in file.path.split("/")}
    named = sorted(name for name in names if name in task.brief.goal)
    evidence = f"named: {', '.join(named)}" if named else f"made and not named: {sorted(names)}"
    return _check(CheckKind.OUTPUTS_NAMED, bool(named), evidence)


def _repeats(references: Sequence[Graded]) -> ScreenCheck:
    """Compare the reference's runs: fresh, shifted and dirtied have to agree."""
    verdicts = {grade.verdict for _, grade in references}
    same = len({specimen.artifacts for specimen, _ in references}) == 1
    told = ", ".join(f"{s.name} {grade.verdict.value}" for s, grade in references)
    return _check(
        CheckKind.REFERENCE_REPEATS,
        len(verdicts) == 1,
        f"{told}; {'the same' if same else 'other'} artifacts",
        references[1:],
    )


def _clock(trials: Trials, graded: Sequence[Graded]) -> ScreenCheck:
    """Compare the reference under another clock with what it came to before."""
    if trials.clock_shift < CLOCK_SHIFT / 2:
        return _check(CheckKind.CLOCK_SHIFTED, None, "no libfaketime in the sandbox")
    verdicts = {specimen.name: grade.verdict for specimen, grade in graded}
    expected = verdicts["reference"]
    if verdicts.get(SAME, expected) is not expected:
        return _check(CheckKind.CLOCK_SHIFTED, None, "libfaketime breaks it without any shift")
    shifted = verdicts.get("reference-other-clock", verdicts["reference-shifted"])
    evidence = f"clock {trials.clock_shift / 86_400:.0f} days ahead: {shifted.value}"
    return _check(CheckKind.CLOCK_SHIFTED, shifted is expected, evidence)


def _mutants(task: TaskManifest, graded: Sequence[Graded]) -> ScreenCheck:
    found = [g for g in graded if g[0].role in MUTANTS - {Role.STEP_DROPPED}]
    check = _fails(CheckKind.MUTANTS_FAIL, found)
    uncovered = set(task.rules) - {specimen.rule for specimen, _ in found}
    if uncovered and check.passed:
        return _check(
            CheckKind.MUTANTS_FAIL, False, f"no mutant for {', '.join(sorted(uncovered))}", found
        )
    return check


def _checks_can_fail(task: TaskManifest, graded: Sequence[Graded]) -> ScreenCheck:
    """Check that each check failed something, and a rule's mutant one that its sentence names."""
    failed = {
        check.name
        for specimen, grade in graded
        if specimen.role in WRONG
        for check in grade.checks
        if not check.passed
    }
    idle = [name for name in task.sealed.grader.checks if name not in failed]
    named: Mapping[str | None, set[str]] = {
        item.rule: set(item.checks) for item in task.sealed.requirements if item.rule
    }
    missed = [
        specimen.name
        for specimen, grade in graded
        if specimen.rule in named
        and not named[specimen.rule] & {c.name for c in grade.checks if not c.passed}
    ]
    faults = [f"check {name} failed nothing" for name in idle]
    faults += [f"{name} was not failed by a check of its rule's sentence" for name in missed]
    said_all = f"all of {len(task.sealed.grader.checks)} failed something"
    return _check(CheckKind.CHECKS_CAN_FAIL, not faults, "; ".join(faults) or said_all)


def exploits_fail(controls: ControlReport) -> ScreenCheck:
    """Cite the controls: False where an exploit lived, None where one could not be tried."""
    killed = [control.killed for control in controls.controls]
    passed = False if False in killed else None if None in killed else bool(killed)
    others = [f"{c.name}: {c.evidence}" for c in controls.controls if not c.killed]
    told = f"{killed.count(True)} of {len(killed)} failed ({controls.control_id})"
    return _check(CheckKind.EXPLOITS_FAIL, passed, "; ".join([told, *others]))


def _passed(grade: Grade) -> bool:
    return grade.verdict is Verdict.PASSED


def said(grade: Grade) -> str:
    """Return a grade as one line: the verdict and the checks that failed, with their evidence."""
    failed = [f"{check.name}: {check.evidence}" for check in grade.checks if not check.passed]
    return "; ".join([grade.verdict.value, *failed, grade.evidence]).strip("; ")


def receipt(
    task: TaskManifest,
    environment_digest: str,
    checks: Sequence[ScreenCheck],
    graded: Sequence[Graded],
    boots: int,
    seconds: float,
) -> ScreenReport:
    """Return the receipt: the first check that failed decides, and is the reason."""
    mutants = [g for g in graded if g[0].role in MUTANTS]
    survivors = tuple(s.name for s, grade in mutants if grade.verdict is not Verdict.FAILED)
    lower, upper = clopper_pearson(len(mutants) - len(survivors), len(mutants))
    references = _of(graded, Role.REFERENCE)
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
        references_passed=sum(_passed(grade) for _, grade in references),
        boots=boots,
        verdict=verdict,
        reason=reason,
        trust=Trust.PARTIAL if set(unmeasured) - {CheckKind.CLOCK_SHIFTED} else Trust.VERIFIED,
        seconds=seconds,
    )


def _verdict(task: TaskManifest, checks: Sequence[ScreenCheck]) -> tuple[ScreenVerdict, str]:
    bad = next((check for check in checks if check.passed is False), None)
    if bad is None:
        lost = next((c for c in checks if c.kind == CheckKind.BOOTS and c.passed is None), None)
        verdict = ScreenVerdict.UNSCREENED if lost else ScreenVerdict.ACCEPTED
        return verdict, "not-boots" if lost else "accepted"
    return (
        ScreenVerdict.QUARANTINED if _doubtful(task, bad) else ScreenVerdict.REJECTED,
        f"not-{bad.kind}",
    )


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
    )
