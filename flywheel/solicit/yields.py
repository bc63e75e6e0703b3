"""What each proposer's proposals came to, and what an accepted one cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from schemas.screening import Proposal, ScreenReport, ScreenVerdict


@dataclass(frozen=True, slots=True)
class Yield:
    """What came of one proposer's proposals."""

    proposer: str
    proposed: int
    read: int
    accepted: int
    """Different tasks that screening accepted."""
    reasons: Mapping[str, int]
    """Why each proposal ended where it did: `accepted`, `duplicate`, `not-screened` among them."""
    tokens: int
    cost: float
    cost_per_accepted: float | None
    """US dollars; None where nothing was accepted."""


def yields(proposals: Sequence[Proposal], reports: Iterable[ScreenReport]) -> tuple[Yield, ...]:
    """Return each proposer's yield, by name.

    Args:
        proposals: in order; a task that was proposed before counts as a duplicate.
        reports: of the tasks that were screened; the latest of a task counts.
    """
    latest = {report.version_id: report for report in reports}
    seen: set[str] = set()
    outcomes: dict[str, Counter[str]] = {}
    for proposal in proposals:
        outcome = _outcome(proposal, latest, seen)
        outcomes.setdefault(proposal.proposer, Counter())[outcome] += 1
        if proposal.version_id is not None:
            seen.add(proposal.version_id)
    return tuple(
        _yield(name, [p for p in proposals if p.proposer == name], outcomes[name])
        for name in sorted(outcomes)
    )


def _outcome(proposal: Proposal, latest: Mapping[str, ScreenReport], seen: set[str]) -> str:
    if proposal.version_id is None:
        return proposal.reason
    if proposal.version_id in seen:
        return "duplicate"
    report = latest.get(proposal.version_id)
    if report is None:
        return "not-screened"
    return "accepted" if report.verdict is ScreenVerdict.ACCEPTED else report.reason


def _yield(name: str, own: Sequence[Proposal], outcomes: Counter[str]) -> Yield:
    accepted, cost = outcomes["accepted"], sum(proposal.cost for proposal in own)
    return Yield(
        proposer=name,
        proposed=len(own),
        read=sum(proposal.version_id is not None for proposal in own),
        accepted=accepted,
        reasons={reason: count for reason, count in sorted(outcomes.items()) if count},
        tokens=sum(proposal.tokens for proposal in own),
        cost=cost,
        cost_per_accepted=cost / accepted if accepted else None,
    )
