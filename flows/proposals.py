"""Tasks that a model proposes: asked for under caps, read, screened, and what they cost."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, time

from prefect import flow

from flows.folders import page_of
from flows.progress import Progress, terminal
from flows.runtime import Room, open_room
from flywheel.endpoint import Endpoint
from flywheel.formats import Imported, Refused
from flywheel.formats.harbor import read_harbor
from flywheel.solicit import Allowance, settle, solicit
from flywheel.solicit.ideas import Idea
from flywheel.solicit.yields import yields
from flywheel.store import append, read, transaction
from schemas.base import content_id
from schemas.config import CycleConfig
from schemas.screening import Proposal, ScreenReport
from schemas.task import TaskManifest


@flow(name="solicit", validate_parameters=False)
def solicit_tasks(
    endpoint: Endpoint,
    ideas: Sequence[Idea],
    allowance: Allowance,
    folder: Path,
    config: CycleConfig,
) -> str:
    """Ask for a task an idea, screen what can be read, print the yield; return the page's path."""
    with open_room(config, Progress(terminal())) as room:
        room.backend.reap()
        began = perf_counter()
        run_id = f"solicit-{int(time())}"
        proposals, tasks = _asked(room, endpoint, ideas, allowance, folder, run_id)
        refused = [
            Refused(str(p.number), "", f"{p.reason}: {p.evidence}")
            for p in proposals
            if p.version_id is None
        ]
        room.progress.line("solicit", f"{len(proposals)} proposed, {len(tasks)} read", began)
        imported = Imported(tasks=tuple(tasks), refused=tuple(refused))
        page = page_of(room, folder, imported, run_id)
        mine = [p for p in read(room.store, Proposal) if p.run_id == run_id]
        for found in yields(mine, read(room.store, ScreenReport)):
            each = "none" if found.cost_per_accepted is None else f"${found.cost_per_accepted:.4f}"
            room.progress.say(
                f"{found.proposer}: {found.proposed} proposed, {found.read} read, "
                f"{found.accepted} accepted; {found.tokens} tokens, ${found.cost:.4f}; "
                f"an accepted one cost {each}"
            )
        return str(page)


def _asked(
    room: Room,
    endpoint: Endpoint,
    ideas: Sequence[Idea],
    allowance: Allowance,
    folder: Path,
    run_id: str,
) -> tuple[list[Proposal], list[TaskManifest]]:
    """Ask, read and record, one proposal at a time: what was paid for is never lost."""
    proposals: list[Proposal] = []
    tasks: dict[str, TaskManifest] = {}
    with room.progress.bar("solicit", min(len(ideas), allowance.proposals)) as advance:
        for proposed in solicit(endpoint, ideas, allowance, folder, run_id):
            proposal, task = settle(proposed, read_harbor)
            same = content_id("same", task.brief, task.sealed) if task else ""
            if same in tasks:
                first = tasks[same].version_id
                proposal, task = proposal.model_copy(update={"version_id": first}), None
            with transaction(room.store):
                append(room.store, [proposal])
                append(room.store, [task] if task else [])
            proposals.append(proposal)
            if task is not None:
                tasks[same] = task
            advance()
    return proposals, list(tasks.values())
