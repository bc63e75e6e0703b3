"""Rows 8 and 9 of the loop: triage, then cluster."""

from collections import Counter

import numpy as np

from flows.attempts import collected
from flows.pool import load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flywheel.cluster import cluster_failures, draw_audit
from flywheel.store import read
from flywheel.triage import triage as triage_attempt
from schemas.base import seed_from
from schemas.config import Cycle
from schemas.failure import Failure

AUDITED_PER_STRATUM = 2


@step("triage")
def triage(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Collected attempts in; for every one that did not pass, whose failure it is."""
    pool = load_pool(room)
    made = collected(room, cycle, trajectories=True)
    triaged = (
        triage_attempt(attempt, cycle.cycle_id, pool.tasks[attempt.key.version_id].brief.tools)
        for attempt in made
    )
    failures = [failure for failure in triaged if failure is not None]
    layers = Counter(failure.layer.value for failure in failures)
    return [failures], f"{len(failures)} of {len(made)} attempts failed: {tally(layers)}"


@step("cluster")
def cluster(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Failures of the model's layers in; clusters with examples and an audit sample out."""
    failures = read(room.store, Failure, "cycle_id = ?", [cycle.cycle_id])
    rng = np.random.default_rng(seed_from(cycle.config.seed, cycle.number, "cluster"))
    with room.timed("statistics"):
        clusters = cluster_failures(failures, cycle.cycle_id, rng)
        audit = draw_audit(clusters, failures, AUDITED_PER_STRATUM, cycle.cycle_id, rng)
    noise = sum(c.size for c in clusters if c.is_noise)
    named = sum(not c.is_noise for c in clusters)
    return [clusters, audit], f"{named} clusters, {noise} failures in none, {len(audit)} to audit"
