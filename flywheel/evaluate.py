"""Attempts of every arm on one frozen task list in, an answer to each question of the night out.

The headline is intention-to-treat: every arm must have attempted every task of the list, since
leaving the hardest tasks out raises a rate without any learning.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flywheel.compare import compare
from flywheel.difficulty import final_tries
from flywheel.errors import ConfigError, HoldoutViolation
from schemas.attempt import LIMITS, Attempt, Purpose, Verdict
from schemas.base import content_id
from schemas.curriculum import Arm
from schemas.evaluation import ArmResult, EvalReport
from schemas.lineage import Split

PARENT = "parent"
"""The arm of the policy that all other arms were trained from."""


@dataclass(frozen=True, slots=True)
class EvalTask:
    """One task of the frozen list."""

    task_id: str
    component: str
    """Its lineage component: the unit of the interval."""
    family: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What the difference between two arms answers."""

    text: str
    treatment: str
    control: str
    sliced: bool = False
    """Also answered per rule and per family: exploratory, what hypotheses are judged on."""


QUESTIONS = (
    Question("better tasks?", Arm.NEW_UNIFORM.value, Arm.OLD_UNIFORM.value, sliced=True),
    Question("better sampling?", Arm.NEW_CURRICULUM.value, Arm.NEW_UNIFORM.value),
    Question("both?", Arm.NEW_CURRICULUM.value, Arm.OLD_UNIFORM.value, sliced=True),
)


def arm_result(arm: str, policy_version: str, attempts: Sequence[Attempt]) -> ArmResult:
    """Return one arm's counts over the last tries, and its spending over all of them."""
    last = final_tries(attempts)
    verdicts = [attempt.verdict for attempt in last]
    passed, failed = verdicts.count(Verdict.PASSED), verdicts.count(Verdict.FAILED)
    graded = passed + failed
    return ArmResult(
        arm=arm,
        policy_version=policy_version,
        tasks=len({attempt.key.task_id for attempt in last}),
        attempts=len(last),
        passed=passed,
        failed=failed,
        ungraded=len(last) - graded,
        limits=sum(a.verdict is Verdict.FAILED and a.termination in LIMITS for a in last),
        rate=passed / graded if graded else None,
        seconds=sum(sum(attempt.seconds.values()) for attempt in attempts),
        tokens=sum(attempt.completion_tokens for attempt in attempts),
    )


def compare_arms(
    cycle_id: str,
    split: Split,
    tasks: Sequence[EvalTask],
    attempts_by_arm: Mapping[str, Sequence[Attempt]],
    policy_of: Mapping[str, str],
    level: float = 0.95,
) -> EvalReport:
    """Return every arm's result and the answer to every question that the arms allow.

    Args:
        cycle_id: The cycle that made the arms.
        split: Train or dev; the holdout is read by `promote.holdout_read` alone.
        tasks: The frozen list, whole.
        attempts_by_arm: Arm (or `parent`) → its attempts at the list.
        policy_of: Arm → policy version.
        level: Coverage of each interval; slices are exploratory and not adjusted.

    Raises ConfigError where an arm attempted another list, HoldoutViolation for a holdout attempt.
    """
    for arm, attempts in attempts_by_arm.items():
        _require_whole_list(arm, tasks, attempts)
    if split is Split.HOLDOUT or any(
        a.key.purpose is Purpose.HOLDOUT for attempts in attempts_by_arm.values() for a in attempts
    ):
        raise HoldoutViolation("holdout attempts are compared by promote.holdout_read alone")
    comparisons = [
        compare(
            question.treatment,
            question.control,
            attempts_by_arm[question.treatment],
            attempts_by_arm[question.control],
            component_of,
            question=question.text,
            slice=slice,
            level=level,
        )
        for question in _questions(attempts_by_arm)
        if {question.treatment, question.control} <= attempts_by_arm.keys()
        for slice, component_of in _slices(tasks, question.sliced).items()
    ]
    return EvalReport(
        cycle_id=cycle_id,
        split=split,
        tasks_digest=content_id("tasks", sorted(task.task_id for task in tasks)),
        arms=tuple(arm_result(arm, policy_of[arm], a) for arm, a in attempts_by_arm.items()),
        comparisons=tuple(comparisons),
        unanswered=_unanswered(attempts_by_arm),
    )


def _require_whole_list(arm: str, tasks: Sequence[EvalTask], attempts: Sequence[Attempt]) -> None:
    frozen = {task.task_id for task in tasks}
    attempted = {attempt.key.task_id for attempt in attempts}
    for what, found in (("never attempted", frozen - attempted), ("added", attempted - frozen)):
        if found:
            raise ConfigError(
                f"arm {arm} {what} {len(found)} tasks of a frozen list of {len(frozen)}, such as "
                f"{min(found)}: evaluate every arm on the whole list and nothing else"
            )


def _questions(arms: Iterable[str]) -> tuple[Question, ...]:
    against_parent = (
        Question("better than the parent?", arm, PARENT) for arm in arms if arm != PARENT
    )
    return (*QUESTIONS, *against_parent)


def _slices(tasks: Sequence[EvalTask], sliced: bool) -> dict[str, dict[str, str]]:
    """Return slice → (task_id → component)."""
    slices: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for task in tasks:
        names = [f"family:{task.family}", *(f"rule:{rule}" for rule in task.rules)]
        for name in ["all", *(names if sliced else ())]:
            slices[name][task.task_id] = task.component
    return dict(sorted(slices.items()))


def _unanswered(arms: Iterable[str]) -> tuple[str, ...]:
    ran = set(arms)
    missing = {q.text: sorted({q.treatment, q.control} - ran) for q in _questions(arms)}
    return tuple(
        f"{text} ({' and '.join(names)} did not run)" for text, names in missing.items() if names
    )
