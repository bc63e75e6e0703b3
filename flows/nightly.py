"""The loop, once: from last night's failures to tonight's verdict.

Each line is a stage. A stage reads what the stages before it recorded in the store, calls its
verb in `flywheel/`, and records what came of it, once: a cycle that was interrupted goes on where
it was when the same command is run again.
"""

from prefect import flow

from flows.cycle import begin, finish
from flows.progress import Progress, terminal
from flows.report import publish
from flows.runtime import open_room
from flows.steps.failures import cluster, triage
from flows.steps.hypotheses import hypothesise, judge
from flows.steps.learning import convert, train
from flows.steps.practice import accept, collect, draw, probe
from flows.steps.tasks import propose, screen, split
from flows.steps.verdict import evaluate, promote
from schemas.config import CycleConfig


@flow(name="nightly", validate_parameters=True)
def nightly(config: CycleConfig = CycleConfig()) -> str:  # noqa: B008 (shown in the Prefect form)
    """Run one cycle, or finish the one that was interrupted; return the path of its report."""
    with open_room(config, Progress(terminal())) as room:
        cycle = begin(room)
        propose(room, cycle)  #      families, hypotheses   → task manifests
        split(room, cycle)  #        manifests              → fingerprints, lineage, splits
        screen(room, cycle)  #       manifests              → receipts, by execution
        probe(room, cycle)  #        parent policy          → posteriors, buckets
        draw(room, cycle)  #         candidates             → draws, before any outcome
        collect(room, cycle)  #      draws                  → attempts
        accept(room, cycle)  #       attempts               → acceptances: counts add up
        triage(room, cycle)  #       failed attempts        → layer and code
        cluster(room, cycle)  #      failures               → clusters, audit sample
        convert(room, cycle)  #      accepted attempts      → rows, or refusals
        train(room, cycle)  #        rows, parent           → a version an arm
        evaluate(room, cycle)  #     versions, dev tasks    → differences with intervals
        promote(room, cycle)  #      report, rule           → the next parent
        judge(room, cycle)  #        open hypotheses        → verdicts
        hypothesise(room, cycle)  #  clusters, dev numbers  → new hypotheses
        page = publish(room, cycle)
        finish(room, cycle)
        return str(page)
