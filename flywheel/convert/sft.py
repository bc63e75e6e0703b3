"""Demonstrations: verified successes in, supervised rows out; the same number for every arm."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from flywheel.convert import GOOD_TURNS, Basis, simulated_tools
from flywheel.errors import TrainingError
from schemas.attempt import Attempt, Verdict
from schemas.curriculum import Draw
from schemas.screening import Trust
from schemas.training import Rejected, RejectReason, SftExample

FILTER = "sft@2"


def to_sft(
    attempts: Iterable[Attempt], basis: Basis
) -> tuple[tuple[SftExample, ...], tuple[Rejected, ...]]:
    """Return a row for each success without a failing call, a refusal for each other attempt.

    Turns are kept as recorded. A reference's attempt is a row like any other, with its policy
    version named as the teacher. Raises SplitViolation for a task outside the train split.
    """
    rows: list[SftExample] = []
    rejected: list[Rejected] = []
    for attempt in attempts:
        reason = basis.unusable(attempt) or _refusal(attempt, basis)
        if reason is None:
            rows.append(_row(attempt, basis))
        else:
            rejected.append(basis.reject(attempt, "sft", reason))
    return tuple(rows), tuple(rejected)


def demonstrations(draws: Iterable[Draw], references: Mapping[str, Attempt]) -> tuple[Attempt, ...]:
    """Return the reference's attempt for each task version drawn, in the order of the slots.

    `references` maps version_ids to the attempt recorded in screening. Raises TrainingError where
    it lacks a version that is needed.
    """
    needed = dict.fromkeys(d.version_id for d in sorted(draws, key=lambda draw: draw.slot))
    for version_id in needed:
        if version_id not in references:
            raise TrainingError(
                f"{version_id} was drawn and its reference has no recorded attempt: screen it, or "
                "don't draw it"
            )
    return tuple(references[version_id] for version_id in needed)


def own_successes(draws: Iterable[Draw], own: Iterable[SftExample], count: int) -> int:
    """Return how many of an arm's first `count` slots have a success of its own."""
    shown = {row.provenance.version_id for row in own}
    return sum(draw.version_id in shown for draw in _slots(draws, count))


def select_rows(
    draws: Iterable[Draw],
    own: Iterable[SftExample],
    references: Iterable[SftExample],
    count: int,
    own_rows: int,
) -> tuple[SftExample, ...]:
    """Return one row for each of an arm's first `count` slots.

    `own_rows` of its own successes, in slot order, and the reference's demonstration for every
    other slot.
    With the same two numbers for every arm, arms differ in which tasks they drew and never in how
    many rows, or which kind of rows, they train on. A task version that fills several slots gives
    its successes in turn. Raises TrainingError where a slot lacks the row it needs, or where there
    are fewer slots than `count`.
    """
    successes, shown = _by_version(own), _by_version(references)
    used: Counter[str] = Counter()
    rows: list[SftExample] = []
    left = own_rows
    for draw in _slots(draws, count):
        mine = left > 0 and draw.version_id in successes
        choices = (successes if mine else shown).get(draw.version_id)
        if not choices:
            raise TrainingError(f"slot {draw.slot} ({draw.version_id}) has no row to train on")
        rows.append(choices[used[draw.version_id] % len(choices)])
        used[draw.version_id] += 1
        left -= mine
    if left:
        raise TrainingError(f"{own_rows} own successes asked for, {left} more than there are")
    return tuple(rows)


def _slots(draws: Iterable[Draw], count: int) -> list[Draw]:
    slots = sorted(draws, key=lambda draw: draw.slot)[:count]
    if len(slots) < count:
        raise TrainingError(f"{len(slots)} draws can't give {count} rows: lower train.rows")
    return slots


def _refusal(attempt: Attempt, basis: Basis) -> RejectReason | None:
    if attempt.verdict is not Verdict.PASSED:
        return RejectReason.NOT_PASSED
    if any(turn.status not in GOOD_TURNS for turn in attempt.trajectory.turns):
        return RejectReason.HAS_TOOL_ERROR
    if basis.trust[attempt.key.version_id] == Trust.VERIFIED:
        return None  # its simulated tools, if it has any, were found faithful
    simulated = simulated_tools(basis.manifest(attempt))
    called = {turn.call.tool for turn in attempt.trajectory.turns if turn.call is not None}
    return RejectReason.SIMULATED_TOOL if called & set(simulated) else None


def _row(attempt: Attempt, basis: Basis) -> SftExample:
    brief = basis.manifest(attempt).brief
    return SftExample(
        cycle_id=basis.cycle_id,
        arm=basis.arm,
        goal=brief.goal,
        tools=brief.tools,
        turns=attempt.trajectory.turns,
        provenance=basis.provenance(attempt, FILTER),
    )


def _by_version(rows: Iterable[SftExample]) -> dict[str, Sequence[SftExample]]:
    found: defaultdict[str, list[SftExample]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.provenance.attempt_id):
        found[row.provenance.version_id].append(row)
    return dict(found)
