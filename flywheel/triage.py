"""Triage: an attempt that did not pass goes in, whose failure it is comes out.

An ordered table of rules decides, and only structured evidence is read: the infrastructure status,
the termination, exit codes, turn statuses, missing artifacts, named checks. What the policy or a
tool wrote never changes a layer or a code. What no rule explains is undetermined, never a
capability failure by default.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.attempt import LIMITS, Attempt, Termination, Turn, TurnStatus, Verdict
from schemas.failure import Failure, FailureLayer
from schemas.tool import ToolSpec

MASK = "#"
MAX_ERROR_CHARACTERS = 200
MAX_EVIDENCE_CHARACTERS = 500

_REFUSED = frozenset({TurnStatus.MALFORMED, TurnStatus.FORBIDDEN})
_LITERAL = re.compile(
    r"`[^`]*`"
    r"|(?<!\w)'[^']*'"
    r'|"[^"]*"'
    r"|\S*/\S*"  # a path
    r"|\b[\w-]+\.\w+"  # a file name
    r"|\S*\d\S*"  # a number, or a name with one in it
)


@dataclass(frozen=True, slots=True)
class TriageRule:
    """One line of the table. A rule whose meaning changes gets a new version."""

    name: str
    version: int
    layer: FailureLayer
    code: Callable[[Attempt], str | None]
    """The failure's code where the rule matches, else None."""


def triage(attempt: Attempt, cycle_id: str, tools: Sequence[ToolSpec]) -> Failure | None:
    """Return whose failure `attempt` is, by the first rule that matches; None if it passed.

    `tools` are those of the task's brief: they say which argument values are choices and may
    stand in the digest; every other value is masked.
    """
    if attempt.verdict is Verdict.PASSED:
        return None
    rule, code = next((rule, code) for rule in RULES if (code := rule.code(attempt)) is not None)
    return Failure(
        attempt_id=attempt.attempt_id,
        cycle_id=cycle_id,
        task_id=attempt.key.task_id,
        family=attempt.family,
        rules=attempt.rules,
        layer=rule.layer,
        code=code,
        rule=f"{rule.name}@{rule.version}",
        evidence=_evidence(attempt)[:MAX_EVIDENCE_CHARACTERS],
        digest=_digest(attempt, code, tools),
    )


def mask_literals(text: str) -> str:
    """Return `text` with quoted strings, paths, file names and numbers replaced by `#`."""
    return _LITERAL.sub(MASK, text)


def _calls(attempt: Attempt) -> list[Turn]:
    return [turn for turn in attempt.trajectory.turns if turn.status is not TurnStatus.SUBMITTED]


def _last_status(attempt: Attempt) -> TurnStatus | None:
    """Return what became of the last call before the submission."""
    calls = _calls(attempt)
    return calls[-1].status if calls else None


def _failing(attempt: Attempt) -> list[str]:
    return [check.name for check in attempt.grade.checks if not check.passed]


def _infrastructure(attempt: Attempt) -> str | None:
    return f"{attempt.infra.stage.value}-{attempt.infra.code}" if attempt.infra else None


def _no_verdict(attempt: Attempt) -> str | None:
    return "no-verdict" if attempt.verdict is Verdict.UNGRADED else None


def _refused_call(attempt: Attempt) -> str | None:
    """Match a malformed or forbidden call that no later call made good."""
    status = _last_status(attempt)
    if status in _REFUSED:
        return f"{status.value}-call"
    return "protocol" if attempt.termination is Termination.PROTOCOL else None


def _limit(attempt: Attempt) -> str | None:
    return attempt.termination.value if attempt.termination in LIMITS else None


def _tool_timeout(attempt: Attempt) -> str | None:
    return "tool-timeout" if _last_status(attempt) is TurnStatus.TIMEOUT else None


def _clean(attempt: Attempt) -> bool:
    """Say whether no tool was ended by a signal (out of memory, a crash).

    That may be the sandbox's fault or the call's: without a second execution nobody knows.
    """
    return all(
        turn.exit_code is None or turn.exit_code >= 0 or turn.status is TurnStatus.TIMEOUT
        for turn in attempt.trajectory.turns
    )


def _no_artifact(attempt: Attempt) -> str | None:
    return "no-artifact" if attempt.trajectory.missing and _clean(attempt) else None


def _last_call_failed(attempt: Attempt) -> str | None:
    failed = _last_status(attempt) is TurnStatus.TOOL_ERROR
    return "tool-error" if failed and _clean(attempt) else None


def _failing_check(attempt: Attempt) -> str | None:
    failing = _failing(attempt)
    return f"wrong-{failing[0]}" if failing and _clean(attempt) else None


RULES: tuple[TriageRule, ...] = (
    TriageRule("infra-status", 1, FailureLayer.INFRASTRUCTURE, _infrastructure),
    TriageRule("no-verdict", 1, FailureLayer.GRADER, _no_verdict),
    TriageRule("refused-call", 1, FailureLayer.PROTOCOL, _refused_call),
    TriageRule("limit", 1, FailureLayer.CONTEXT, _limit),
    TriageRule("tool-timeout", 1, FailureLayer.CONTEXT, _tool_timeout),
    TriageRule("no-artifact", 1, FailureLayer.CAPABILITY, _no_artifact),
    TriageRule("last-call-failed", 1, FailureLayer.CAPABILITY, _last_call_failed),
    TriageRule("failing-check", 1, FailureLayer.CAPABILITY, _failing_check),
    TriageRule("unexplained", 1, FailureLayer.UNDETERMINED, lambda attempt: "unexplained"),
)
"""In order: the first that matches decides."""


def _evidence(attempt: Attempt) -> str:
    """Return what a person reads first: the fault, or how it ended and what failed."""
    if attempt.infra is not None:
        return f"{attempt.infra.stage.value}/{attempt.infra.code}: {attempt.infra.evidence}"
    failed = "; ".join(
        f"{check.name}: {check.evidence}" for check in attempt.grade.checks if not check.passed
    )
    ended = f"{attempt.termination.value} after {len(attempt.trajectory.turns)} turns"
    parts = (ended, *attempt.trajectory.missing, failed, attempt.grade.evidence)
    return "; ".join(part for part in parts if part)


def _digest(attempt: Attempt, code: str, tools: Sequence[ToolSpec]) -> str:
    """Return code, failing checks, calls and last error, with literals masked.

    The task's rules stand nowhere in it: clustering must not be told the answer.
    """
    choices = {
        (tool.name, parameter.name): frozenset(parameter.choices)
        for tool in tools
        for parameter in tool.parameters
    }
    known = {tool.name for tool in tools}
    checks = " ".join(f"failed={name}" for name in _failing(attempt))
    calls = " > ".join(_call_digest(turn, known, choices) for turn in _calls(attempt))
    parts = (code, checks, calls, _last_error(attempt))
    return " | ".join(part for part in parts if part)


def _call_digest(
    turn: Turn, known: set[str], choices: dict[tuple[str, str], frozenset[str]]
) -> str:
    """Return `tool parameter=choice parameter=#`, with the status where it is not OK."""
    status = [] if turn.status is TurnStatus.OK else [turn.status.value]
    if turn.call is None or turn.call.tool not in known:
        return " ".join(("no-such-tool", *status))
    arguments = []
    for name, value in turn.call.arguments.items():
        allowed = choices.get((turn.call.tool, name))
        shown = MASK if allowed is None else name
        arguments.append(f"{shown}={value if allowed and value in allowed else MASK}")
    return " ".join((turn.call.tool, *status, *arguments))


def _last_error(attempt: Attempt) -> str:
    """Return the last line of the last call that failed, masked."""
    failed = [turn for turn in _calls(attempt) if turn.status is not TurnStatus.OK]
    lines = failed[-1].observation.strip().splitlines() if failed else []
    return mask_literals(lines[-1].strip())[:MAX_ERROR_CHARACTERS] if lines else ""
