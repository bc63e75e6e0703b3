"""The checks that were executed on a task itself: from what was observed to passed or failed."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from flywheel.screen.lint import artifacts_written
from flywheel.screen.plans import (
    CLOCK_SHIFT,
    INITIAL,
    REGRADED,
    REGRADED_SAME,
    RIGHT,
    SAME,
    Role,
    looking,
)
from flywheel.screen.trials import Specimen, Trials
from schemas.attempt import Grade, Verdict
from schemas.file import File, is_folder
from schemas.screening import (
    CheckKind,
    ScreenCheck,
)
from schemas.task import UNTRUSTED, TaskManifest

WRONG = frozenset(Role) - RIGHT
MUTANTS = frozenset({Role.MUTANT, Role.STEP_DROPPED, Role.PERTURBED})
Graded = tuple[Specimen, Grade]


def observed(task: TaskManifest, trials: Trials, graded: Sequence[Graded]) -> Iterator[ScreenCheck]:
    """Yield the checks that were executed on the task itself, cheap to dear."""
    said_boots = f"{trials.boots} sandboxes started; where one does not, nothing is concluded"
    yield _check(CheckKind.BOOTS, True, said_boots)
    yield _check(
        CheckKind.TOOLS_REACHABLE,
        not trials.unreachable,
        "; ".join(trials.unreachable) or f"{len(task.brief.tools)} tools",
    )
    yield _fails(CheckKind.INITIAL_STATE_FAILS, [g for g in graded if g[0].name == INITIAL])
    yield _fails(CheckKind.NO_OP_FAILS, of_role(graded, Role.NO_OP))
    references = of_role(graded, Role.REFERENCE)
    unsure = _unsure(graded)
    others = [f"{s.name} passed" for s, grade in references[1:] if has_passed(grade)]
    yield _undecided(_passes(CheckKind.REFERENCE_PASSES, references[:1]), unsure or others)
    yield _outputs_named(task, references)
    yield _repeats(references, unsure)
    yield _clock(trials, graded)
    yield _fails(CheckKind.PREFIXES_FAIL, of_role(graded, Role.PREFIX))
    yield from _mutants(task, graded)
    yield _steps_needed(task, of_role(graded, Role.STEP_DROPPED))
    yield _checks_can_fail(task, graded)
    yield _undecided(_alternatives(task, of_role(graded, Role.ALTERNATIVE)), unsure)


def of_role(graded: Sequence[Graded], role: Role) -> list[Graded]:
    """Return the runs of one role, with their grades."""
    return [(specimen, grade) for specimen, grade in graded if specimen.role is role]


def _check(
    kind: CheckKind, passed: bool | None, evidence: str, graded: Sequence[Graded] = ()
) -> ScreenCheck:
    seconds = sum(specimen.seconds for specimen, _ in graded)
    return ScreenCheck(kind=kind, passed=passed, evidence=evidence[:2000], seconds=seconds)


def _fails(kind: CheckKind, graded: Sequence[Graded]) -> ScreenCheck:
    """Check that there are some of these, and that all fail."""
    passed = [s.name for s, grade in graded if grade.verdict is not Verdict.FAILED]
    said = f"{len(graded) - len(passed)} of {len(graded)} failed"
    return _check(
        kind,
        not passed and bool(graded),
        f"{said}; not failed: {', '.join(passed)}" if passed else said,
        graded,
    )


def _passes(kind: CheckKind, graded: Sequence[Graded]) -> ScreenCheck:
    faults = [f"{s.name}: {said(grade)}" for s, grade in graded if not has_passed(grade)]
    evidence = "; ".join(faults) or f"{len(graded)} of {len(graded)} passed"
    return _check(kind, not faults and bool(graded), evidence, graded)


def _outputs_named(task: TaskManifest, references: Sequence[Graded]) -> ScreenCheck:
    """Look in the goal for what the reference makes: who is not told where can't be right."""
    if task.sealed.grader.program == "tests":
        return _check(CheckKind.OUTPUTS_NAMED, True, "tests find what they need by themselves")
    names = _names_made(task, references[0][0].artifacts)
    named = sorted(name for name in names if _is_word(name, task.brief.goal))
    evidence = f"named: {', '.join(named)}" if named else f"made and not named: {sorted(names)}"
    return _check(CheckKind.OUTPUTS_NAMED, bool(named), evidence)


def _names_made(task: TaskManifest, artifacts: Iterable[File]) -> set[str]:
    """Return the names of the files that were made, and of the folders that are graded for them."""
    made = [file.path for file in artifacts_written(task, artifacts)]
    folders = [path.removesuffix("/") for path in task.brief.artifacts if is_folder(path)]
    graded = [folder for folder in folders if any(path.startswith(f"{folder}/") for path in made)]
    return {path.rpartition("/")[2] for path in (*made, *graded)}


def _is_word(name: str, text: str) -> bool:
    """Tell whether a file's name stands in a text, and not only as a part of another one."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def _unsure(graded: Sequence[Graded]) -> list[str]:
    """Return runs of right solutions that left the same and were graded differently."""
    seen: dict[tuple[File, ...], dict[str, str]] = {}
    for specimen, grade in graded:
        if specimen.role in RIGHT - {Role.REGRADED}:
            seen.setdefault(specimen.artifacts, {})[specimen.name] = grade.verdict.value
    return [
        f"{name} {verdict}"
        for verdicts in seen.values()
        if len(set(verdicts.values())) > 1
        for name, verdict in verdicts.items()
    ]


def _undecided(check: ScreenCheck, unsure: Sequence[str]) -> ScreenCheck:
    """Return the check; unmeasured where it failed and runs that should agree with it did not."""
    if check.passed is False and unsure:
        kind = CheckKind(check.kind)
        return _check(kind, None, f"{check.evidence}; but {', '.join(unsure)}")
    return check


def _repeats(references: Sequence[Graded], unsure: Sequence[str]) -> ScreenCheck:
    """Compare the reference's runs: fresh, shifted and dirtied have to agree."""
    verdicts = {grade.verdict for _, grade in references}
    same = len({specimen.artifacts for specimen, _ in references}) == 1
    told = ", ".join(f"{s.name} {grade.verdict.value}" for s, grade in references)
    told += f"; {'the same' if same else 'other'} artifacts"
    if unsure:
        told = f"the grader is not sure of the same artifacts: {', '.join(unsure)}"
    passed = len(verdicts) == 1 and not unsure
    return _check(CheckKind.REFERENCE_REPEATS, passed, told, references[1:])


def _clock(trials: Trials, graded: Sequence[Graded]) -> ScreenCheck:
    """Compare reference and grader under another clock with what they came to before."""
    verdicts = {specimen.name: grade.verdict for specimen, grade in graded}
    expected = verdicts["reference"]
    regraded = verdicts.get(REGRADED, expected)
    if regraded is not expected:
        broken = verdicts.get(REGRADED_SAME, expected) is not expected
        evidence = f"the grader under another clock and zone: {regraded.value}"
        evidence += "; libfaketime breaks it without any shift" if broken else ""
        return _check(CheckKind.CLOCK_SHIFTED, None if broken else False, evidence)
    if trials.clock_shift < CLOCK_SHIFT / 2:
        return _check(CheckKind.CLOCK_SHIFTED, None, "no libfaketime in the sandbox")
    if verdicts.get(SAME, expected) is not expected:
        return _check(CheckKind.CLOCK_SHIFTED, None, "libfaketime breaks it without any shift")
    shifted = verdicts.get("reference-other-clock", verdicts["reference-shifted"])
    evidence = f"clock {trials.clock_shift / 86_400:.0f} days ahead: {shifted.value}"
    return _check(CheckKind.CLOCK_SHIFTED, shifted is expected, evidence)


def _mutants(task: TaskManifest, graded: Sequence[Graded]) -> Iterator[ScreenCheck]:
    """Yield the check of all that is wrong by design, and what it says nothing about."""
    found = [g for g in graded if g[0].role in MUTANTS - {Role.STEP_DROPPED}]
    check = _fails(CheckKind.MUTANTS_FAIL, found)
    uncovered = set(task.rules) - {specimen.rule for specimen, _ in found}
    if uncovered and check.passed:
        missing = f"no mutant for {', '.join(sorted(uncovered))}"
        yield _check(CheckKind.MUTANTS_FAIL, False, missing, found)
    elif task.sealed.grader.program == "tests":
        told = f"{check.evidence}; no value was changed: artifacts are code"
        yield _check(CheckKind.MUTANTS_FAIL, check.passed, told, found)
        yield _check(CheckKind.VALUES_CHANGED, None, "artifacts are code")
    else:
        yield check


def _steps_needed(task: TaskManifest, shortened: Sequence[Graded]) -> ScreenCheck:
    """Check that the reference fails without any of its steps; its last one is a prefix's."""
    if shortened:
        return _fails(CheckKind.STEPS_NEEDED, shortened)
    looks = looking(task.brief)
    steps = [call for call in task.sealed.reference if call.tool not in looks]
    evidence = f"{'one step' if steps else 'no step'} that changes something: none to leave out"
    passed = None if task.source.kind in UNTRUSTED else bool(steps)
    return _check(CheckKind.STEPS_NEEDED, passed, evidence)


def _alternatives(task: TaskManifest, alternatives: Sequence[Graded]) -> ScreenCheck:
    if task.sealed.reference in task.sealed.alternatives:
        passed = None if task.source.kind in UNTRUSTED else False
        return _check(CheckKind.ALTERNATIVE_PASSES, passed, "the same as the reference")
    if not alternatives:
        return _check(CheckKind.ALTERNATIVE_PASSES, None, "no other right solution is known")
    return _passes(CheckKind.ALTERNATIVE_PASSES, alternatives)


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


def has_passed(grade: Grade) -> bool:
    """Tell whether a grade is a pass; what was not graded is none."""
    return grade.verdict is Verdict.PASSED


def said(grade: Grade) -> str:
    """Return a grade as one line: the verdict and the checks that failed, with their evidence."""
    failed = [f"{check.name}: {check.evidence}" for check in grade.checks if not check.passed]
    return "; ".join([grade.verdict.value, *failed, grade.evidence]).strip("; ")
