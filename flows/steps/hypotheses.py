"""Row 14 of the loop: judge the open hypotheses, then write new ones."""

from collections import Counter
from collections.abc import Sequence

from flows.attempts import collected
from flows.runtime import Room
from flows.step import Records, step, tally
from flows.steps.tasks import open_hypotheses
from flywheel.hypothesize import contrast, slice_rates, weakest_rules
from flywheel.hypothesize import hypothesize as write_hypotheses
from flywheel.hypothesize import judge as judge_hypotheses
from flywheel.store import read, read_attempts
from schemas.config import Cycle
from schemas.curriculum import Arm
from schemas.evaluation import EvalReport, Promotion
from schemas.failure import FailureCluster
from schemas.hypothesis import Hypothesis, HypothesisVerdict, Judgement
from schemas.training import ArmTraining, SftExample

MAX_HYPOTHESES = 4
"""Most that one cycle's new tasks are shared among."""


@step("judge")
def judge(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Earlier cycles' open hypotheses and the dev report in, verdicts out."""
    earlier = [h for h in open_hypotheses(room) if h.cycle_id != cycle.cycle_id]
    (report,) = read(room.store, EvalReport, "cycle_id = ?", [cycle.cycle_id])
    contrasts = _contrasts(room, cycle, earlier)
    tested = {key: enough or said for key, (enough, said) in contrasts.items()}
    verdicts = [
        verdict
        if verdict.judgement is Judgement.NOT_TESTED
        else _with_contrast(verdict, contrasts[verdict.hypothesis_id][1])
        for verdict in judge_hypotheses(earlier, report, tested)
    ]
    judgements = Counter(verdict.judgement.value for verdict in verdicts)
    return [verdicts], f"{len(verdicts)} hypotheses: {tally(judgements)}"


@step("hypothesise")
def hypothesise(room: Room, cycle: Cycle) -> tuple[Records, str]:
    """Clusters of train failures and dev numbers in, falsifiable hypotheses out."""
    clusters = read(room.store, FailureCluster, "cycle_id = ?", [cycle.cycle_id])
    made = collected(room, cycle, trajectories=False)
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
        weakest_rules(dev),
        _arms(cycle),
    )
    return [hypotheses], f"{len(hypotheses)} written for the next cycle"


def _arms(cycle: Cycle) -> tuple[str, str]:
    """Return the arms that predictions are about: one with the new tasks, and the control."""
    arms = cycle.config.draw.arms
    treatment = Arm.NEW_UNIFORM if Arm.NEW_UNIFORM in arms else Arm.NEW_CURRICULUM
    return treatment.value, Arm.OLD_UNIFORM.value


def _contrasts(
    room: Room, cycle: Cycle, hypotheses: Sequence[Hypothesis]
) -> dict[str, tuple[bool, str]]:
    """Tell for each hypothesis whether its prediction's arms were trained on a contrast."""
    rows = {row.row_id: row.provenance for row in read(room.store, SftExample)}
    trained = {
        training.arm: [rows[row_id] for row_id in training.row_ids]
        for training in read(room.store, ArmTraining, "cycle_id = ?", [cycle.cycle_id])
    }
    found: dict[str, tuple[bool, str]] = {}
    for hypothesis in hypotheses:
        prediction = hypothesis.prediction
        if not {prediction.treatment, prediction.control} <= trained.keys():
            found[hypothesis.hypothesis_id] = (False, "its arms were not both run")
            continue
        found[hypothesis.hypothesis_id] = contrast(
            hypothesis.change, trained[prediction.treatment], trained[prediction.control]
        )
    return found


def _with_contrast(verdict: HypothesisVerdict, said: str) -> HypothesisVerdict:
    return verdict.model_copy(update={"reason": f"{verdict.reason}; {said}"})
