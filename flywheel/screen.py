"""Screening by execution: a task enters a pool only with evidence that it can be trusted.

Three sandboxes a task: the reference in a fresh one; the reference again in another one, followed
by doing nothing and by every mutant, each in a clean folder; and one for the grader, which judges
all that they left behind, each from its own copy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from flywheel.attempt import (
    HARNESS_VERSION,
    Rollout,
    act,
    labels_of,
    make_setting,
    record,
)
from flywheel.errors import SandboxError
from flywheel.grade import BOOT_SECONDS, grade_sets
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import OpenSandbox, Sandbox, SandboxSpec
from flywheel.tools import programs_for
from schemas.attempt import (
    Attempt,
    AttemptKey,
    Grade,
    InfraStatus,
    Purpose,
    Sampling,
    Setting,
    Verdict,
)
from schemas.task import (
    CheckKind,
    Mutant,
    ScreenCheck,
    ScreenReport,
    ScreenVerdict,
    SourceKind,
    TaskManifest,
)

GREEDY = Sampling(temperature=0.0)
REFERENCES = 2


@dataclass(frozen=True, slots=True)
class Screening:
    """A receipt, and the reference's attempts: demonstrations by a named teacher."""

    report: ScreenReport
    references: tuple[Attempt, ...]
    fault: InfraStatus | None = None
    """What kept a check from finishing."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """One scripted policy's part of a screening."""

    policy: ScriptedPolicy
    key: AttemptKey
    setting: Setting
    rollout: Rollout


def screen(
    task: TaskManifest,
    open_sandbox: OpenSandbox,
    environment_digest: str,
    run_id: str,
    clock: Callable[[], float],
) -> Screening:
    """Execute the reference twice, nothing, and every mutant; let the grader judge them all.

    Args:
        task: the task, with its sealed part.
        open_sandbox: starts a fresh sandbox.
        environment_digest: what the sandboxes are made of; part of the receipt.
        run_id: the cycle, for the attempts' identity.
        clock: seconds since the epoch.

    Returns:
        The receipt and the reference attempts. A sandbox that failed makes the verdict
        UNSCREENED: nothing is known about the task then.
    """
    began, started_at = perf_counter(), clock()
    trials = [
        _trial(task, policy, environment_digest, run_id, index)
        for index, policy in enumerate(_policies(task))
    ]
    try:
        with open_sandbox(_spec(task, trials[0].key)) as sandbox:
            _run(task, sandbox, trials[:1])
        with open_sandbox(_spec(task, trials[1].key)) as sandbox:
            _run(task, sandbox, trials[1:])
        sets = [trial.rollout.artifacts for trial in trials]
        grades = grade_sets(task, sets, open_sandbox, labels_of(trials[0].key))
    except SandboxError as error:
        check = ScreenCheck(kind=CheckKind.BOOTS, passed=None, evidence=str(error))
        report = _report(task, environment_digest, [check], (), perf_counter() - began)
        return Screening(report=report, references=(), fault=error.status)
    checks, survivors = _checks(task, trials, grades)
    seconds = perf_counter() - began
    return Screening(
        report=_report(task, environment_digest, checks, survivors, seconds),
        references=tuple(
            record(task, trial.policy.version, trial.key, trial.rollout, grade, None, started_at)
            for trial, grade in zip(trials[:REFERENCES], grades, strict=False)
        ),
    )


def _policies(task: TaskManifest) -> list[ScriptedPolicy]:
    """The reference twice, doing nothing, the mutants: in this order."""
    reference = ScriptedPolicy("reference", task.sealed.reference)
    mutants = (ScriptedPolicy(mutant.name, mutant.script) for mutant in task.sealed.mutants)
    return [*[reference] * REFERENCES, ScriptedPolicy("no-op", ()), *mutants]


def _trial(
    task: TaskManifest, policy: ScriptedPolicy, digest: str, run_id: str, index: int
) -> _Trial:
    setting = make_setting(task, policy.version, digest, GREEDY)
    key = AttemptKey(
        run_id=run_id,
        purpose=Purpose.SCREEN,
        arm="none",
        task_id=task.task_id,
        version_id=task.version_id,
        setting_id=setting.setting_id,
        index=index,
    )
    return _Trial(policy=policy, key=key, setting=setting, rollout=Rollout())


def _spec(task: TaskManifest, key: AttemptKey) -> SandboxSpec:
    runs = REFERENCES + 1 + len(task.sealed.mutants)
    return SandboxSpec(
        programs=programs_for(task.brief.tools),
        deadline=BOOT_SECONDS + task.brief.budget.seconds * runs,
        labels=labels_of(key),
        image=task.brief.environment.image,
    )


def _run(task: TaskManifest, sandbox: Sandbox, trials: Sequence[_Trial]) -> None:
    for number, trial in enumerate(trials):
        act(
            task.brief,
            trial.policy,
            sandbox,
            trial.setting,
            trial.key,
            trial.rollout,
            folder=f"run-{number}",
        )


def _checks(
    task: TaskManifest, trials: Sequence[_Trial], grades: Sequence[Grade]
) -> tuple[list[ScreenCheck], tuple[str, ...]]:
    """Return the checks, cheap to dear, and the mutants that were not failed."""
    first, second, noop, *wrong = grades
    mutants = task.sealed.mutants
    survivors = tuple(
        mutant.name
        for mutant, grade in zip(mutants, wrong, strict=True)
        if grade.verdict is not Verdict.FAILED
    )
    same = trials[0].rollout.artifacts == trials[1].rollout.artifacts
    return [
        ScreenCheck(kind=CheckKind.BOOTS, passed=True, evidence="three sandboxes started"),
        _check(CheckKind.INITIAL_STATE_FAILS, noop.verdict is Verdict.FAILED, _said(noop)),
        _check(CheckKind.REFERENCE_PASSES, first.verdict is Verdict.PASSED, _said(first)),
        _check(
            CheckKind.REFERENCE_REPEATS,
            second.verdict is Verdict.PASSED and same,
            f"{_said(second)}; {'same' if same else 'other'} artifacts",
        ),
        _check(
            CheckKind.MUTANTS_FAIL,
            not survivors and _covers_rules(task.rules, mutants),
            f"{len(mutants) - len(survivors)} of {len(mutants)} failed",
        ),
    ], survivors


def _covers_rules(rules: Sequence[str], mutants: Sequence[Mutant]) -> bool:
    return set(rules) <= {mutant.rule for mutant in mutants}


def _check(kind: CheckKind, passed: bool, evidence: str) -> ScreenCheck:
    return ScreenCheck(kind=kind, passed=passed, evidence=evidence)


def _said(grade: Grade) -> str:
    failed = [f"{check.name}: {check.evidence}" for check in grade.checks if not check.passed]
    return "; ".join([grade.verdict.value, *failed, grade.evidence]).strip("; ")


def _report(
    task: TaskManifest,
    digest: str,
    checks: Sequence[ScreenCheck],
    survivors: tuple[str, ...],
    seconds: float,
) -> ScreenReport:
    bad = next((check for check in checks if not check.passed), None)
    verdict = ScreenVerdict.ACCEPTED if bad is None else ScreenVerdict.REJECTED
    if bad is not None and bad.passed is None:
        verdict = ScreenVerdict.UNSCREENED
    mutants = 0 if verdict is ScreenVerdict.UNSCREENED else len(task.sealed.mutants)
    return ScreenReport(
        version_id=task.version_id,
        task_id=task.task_id,
        environment_digest=digest,
        harness_version=HARNESS_VERSION,
        grader_version=task.sealed.grader.version,
        checks=tuple(checks),
        mutants=mutants,
        mutants_killed=mutants - len(survivors),
        survivors=survivors,
        verdict=verdict,
        reason="accepted" if bad is None else f"not-{bad.kind.value}",
        trust="imported" if task.source.kind is SourceKind.IMPORTED else "generated",
        seconds=seconds,
    )
