"""Row 14 of the loop: judge the open hypotheses, then write new ones."""

from collections import Counter

from flows.pool import load_pool
from flows.runtime import Room
from flows.step import Records, step, tally
from flows.steps.tasks import open_hypotheses
from flywheel.hypothesize import hypothesize as write_hypotheses
from flywheel.hypothesize import judge as judge_hypotheses
from flywheel.hypothesize import slice_rates
from flywheel.store import read, read_attempts
from schemas.config import Cycle
from schemas.curriculum import Draw
from schemas.evaluation import EvalReport, Promotion
from schemas.failure import FailureCluster
from schemas.hypothesis import Hypothesis, HypothesisVerdict

MAX_HYPOTHESES = 4
"""Most that one cycle's new tasks are shared among."""


@step("judge")
def judge(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Earlier cycles' open hypotheses and the dev report in, verdicts out."""
    earlier = [h for h in open_hypotheses(room) if h.cycle_id != cycle.cycle_id]
    (report,) = read(room.store, EvalReport, "cycle_id = ?", [cycle.cycle_id])
    verdicts = judge_hypotheses(earlier, report, _tested(room, cycle, earlier))
    judgements = Counter(verdict.judgement.value for verdict in verdicts)
    return [verdicts], f"{len(verdicts)} hypotheses: {tally(judgements)}"


@step("hypothesise")
def hypothesise(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Clusters of train failures and dev numbers in, falsifiable hypotheses out."""
    clusters = read(room.store, FailureCluster, "cycle_id = ?", [cycle.cycle_id])
    made = read_attempts(
        room.store, "run_id = ? AND purpose = 'collect'", [cycle.cycle_id], trajectories=False
    )
    (promotion,) = read(room.store, Promotion, "cycle_id = ?", [cycle.cycle_id])
    dev = read_attempts(
        room.store,
        "run_id = ? AND purpose = 'evaluate' AND policy_version = ?",
        [cycle.cycle_id, promotion.next_parent],
        trajectories=False,
    )
    hypotheses = write_hypotheses(
        clusters,
        made,
        slice_rates(dev),
        read(room.store, Hypothesis),
        read(room.store, HypothesisVerdict),
        cycle.cycle_id,
        MAX_HYPOTHESES,
    )
    return [hypotheses], f"{len(hypotheses)} written for the next cycle"


def _tested(room: Room, cycle: Cycle, hypotheses: list[Hypothesis]) -> dict[str, bool | str]:
    """Tell for each hypothesis whether its tasks were in one arm of its prediction only."""
    tasks = load_pool(room).tasks
    arms: dict[str, set[str]] = {}
    for drawn in read(room.store, Draw, "cycle_id = ?", [cycle.cycle_id]):
        asked_by = tasks[drawn.version_id].source.hypothesis
        if asked_by is not None:
            arms.setdefault(asked_by, set()).add(drawn.arm.value)
    tested: dict[str, bool | str] = {}
    for hypothesis in hypotheses:
        drawn_in = arms.get(hypothesis.hypothesis_id, set())
        prediction = hypothesis.prediction
        if prediction.treatment not in drawn_in:
            tested[hypothesis.hypothesis_id] = f"no task of it was drawn in {prediction.treatment}"
        elif prediction.control in drawn_in:
            tested[hypothesis.hypothesis_id] = "its tasks were in both arms"
        else:
            tested[hypothesis.hypothesis_id] = True
    return tested
