"""Running plug-ins: whatever one of them does, what comes out is a record under its own name."""

from collections.abc import Iterator
from itertools import islice

from flywheel.errors import ConfigError
from flywheel.plugins.find import BROKEN
from flywheel.plugins.kinds import Check, Proposer
from schemas.screening import Proposal, ScreenCheck
from schemas.task import Source, SourceKind, TaskManifest

MAX_EVIDENCE = 300


def run_check(name: str, check: Check, task: TaskManifest) -> ScreenCheck:
    """Run a check on a task; one that raises could not be run (`passed` is None).

    Raises:
        ConfigError: it returned something else than a ScreenCheck.
    """
    kind = f"plugin/{name}"
    try:
        result = check(task)
    except BROKEN as error:
        return ScreenCheck(kind=kind, passed=None, evidence=_raised(error))
    if not isinstance(result, ScreenCheck):
        raise ConfigError(f"check {name} returned {type(result).__name__}, not a ScreenCheck")
    return ScreenCheck.model_validate({**dict(result), "kind": kind})


def run_proposer(
    name: str, proposer: Proposer, count: int, seed: int, run_id: str
) -> Iterator[tuple[Proposal, TaskManifest | None]]:
    """Yield at most `count` proposals with their tasks, which count as proposed by a stranger.

    A proposer that raises ends with a proposal without a task (`proposer-failed`).
    """
    number = 0
    try:
        for task in islice(proposer(count, seed), count):
            own = _as_proposed(task)
            yield _proposal(name, run_id, number, own.version_id, "read", own.source.uri), own
            number += 1
    except BROKEN as error:
        yield _proposal(name, run_id, number, None, "proposer-failed", _raised(error)), None


def _as_proposed(task: TaskManifest) -> TaskManifest:
    source = Source.model_validate({**dict(task.source), "kind": SourceKind.PROPOSED})
    return task.with_source(source)


def _proposal(
    name: str, run_id: str, number: int, version_id: str | None, reason: str, evidence: str
) -> Proposal:
    return Proposal(
        proposer=f"plugin/{name}",
        run_id=run_id,
        number=number,
        version_id=version_id,
        reason=reason,
        evidence=evidence,
        tokens=0,
        cost=0.0,
    )


def _raised(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"[:MAX_EVIDENCE]
