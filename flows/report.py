"""Publishing: the cycle's page, a snapshot for notebooks, and the short table at the end."""

from pathlib import Path
from time import time

from rich.table import Table as Grid
from rich.text import Text

from flows.runtime import Room
from flywheel.attempt import HARNESS_VERSION
from flywheel.errors import ConfigError
from flywheel.report import ReportData, Table, render
from flywheel.store import Store, close, completed_stages, open_store, publish_snapshot, read
from schemas.config import Cycle, CycleConfig
from schemas.difficulty import Posterior
from schemas.evaluation import Comparison, EvalReport, HoldoutRead, Promotion
from schemas.failure import FailureCluster
from schemas.hypothesis import Hypothesis, HypothesisVerdict
from schemas.training import ArmTraining, PolicyVersion

QUERIES = {
    "Dispatched and accepted": (
        "For each arm: drawn = pending + not returned + returned.",
        "SELECT * EXCLUDE (cycle_id) FROM dispatch_funnel WHERE cycle_id = ? ORDER BY arm",
    ),
    "Failures by layer and code": (
        "Shares are over all layers; only the model's layers lead to training tasks.",
        "SELECT layer, code, failures, total, share FROM failure_shares WHERE cycle_id = ? "
        "ORDER BY failures DESC, layer, code",
    ),
    "Screening": (
        "All tasks ever proposed: by verdict, with the wrong solutions that the graders failed.",
        "SELECT * FROM screen_outcomes ORDER BY tasks DESC",
    ),
    "Refused rows": (
        "Why attempts are no row of a kind.",
        "SELECT arm, use, reason, count FROM refusals WHERE cycle_id = ? ORDER BY use, reason, arm",
    ),
}
LIMITS = (
    "The policy is a small decoder over tool calls in which literals are aliases, and which "
    "assumes that a goal names operands roughly in the order of use: that it generalises over "
    "operands is given by construction, and is not a large language model generalising over "
    "domains. Its settings were tuned on dev tasks.",
    "Each arm was trained once: a difference is a statement about these checkpoints, not about "
    "the recipe that made them.",
    "Dev tasks share families, tools and the grader program with training, though no operands, "
    "rule combination or lineage: a gain on families never generated is not measured.",
    "Dev steers promotion, and which hypotheses are written, every night: it is never trained on, "
    "but it is not independent for long. The holdout is: it is read only at a promotion, and the "
    "reads are counted.",
    "Dev and holdout share no operand, rule combination, parent or duplicate with training; no "
    "other kind of contamination was looked for.",
    "A greedy policy still draws its aliases by chance: the same weights can pass and fail a task. "
    "Arms share the aliases of a task, so that they differ by their weights.",
)


def publish(room: Room, cycle: Cycle) -> Path:
    """Write the page and the snapshot, show the table, and return the page's path."""
    data = gather(room.store, cycle)
    page = write_page(room.home, cycle, data)
    room.progress.say(room.account())
    publish_snapshot(room.store, room.home / "snapshot.duckdb")
    room.progress.console.print(_grid(data))
    return page


def republish(config: CycleConfig) -> Path:
    """Write the latest complete cycle's page again.

    Raises:
        ConfigError: there is no complete cycle.
    """
    home = Path(config.home)
    if not (home / "flywheel.duckdb").exists():
        raise ConfigError(f"{home} holds no store: run a cycle first")
    store = open_store(home / "flywheel.duckdb", clock=time)
    try:
        promoted = {record.cycle_id for record in read(store, Promotion)}
        cycles = [cycle for cycle in read(store, Cycle) if cycle.cycle_id in promoted]
        if not cycles:
            raise ConfigError(f"{home} holds no complete cycle: run one first")
        return write_page(home, cycles[-1], gather(store, cycles[-1]))
    finally:
        close(store)


def write_page(home: Path, cycle: Cycle, data: ReportData) -> Path:
    """Put the page in place at once."""
    page = (home / "reports" / f"{cycle.cycle_id}.html").absolute()
    page.parent.mkdir(parents=True, exist_ok=True)
    temporary = page.with_suffix(".tmp")
    temporary.write_text(render(data), "utf-8")
    temporary.replace(page)
    return page


def gather(store: Store, cycle: Cycle) -> ReportData:
    """Read what a cycle's page says."""
    mine = ("cycle_id = ?", [cycle.cycle_id])
    hypotheses = {h.hypothesis_id: h for h in read(store, Hypothesis)}
    versions = {v.version: v for v in read(store, PolicyVersion)}
    clusters = sorted(read(store, FailureCluster, *mine), key=lambda c: (c.is_noise, -c.size))
    (dev,), (promotion,) = read(store, EvalReport, *mine), read(store, Promotion, *mine)
    return ReportData(
        cycle=cycle,
        stages=completed_stages(store, cycle.cycle_id),
        dev=dev,
        promotion=promotion,
        reads=read(store, HoldoutRead),
        judged=[(hypotheses[v.hypothesis_id], v) for v in read(store, HypothesisVerdict, *mine)],
        written=[h for h in hypotheses.values() if h.cycle_id == cycle.cycle_id],
        clusters=clusters,
        posteriors=read(store, Posterior, "policy_version = ?", [cycle.parent]),
        trained=[(t, versions[t.version]) for t in read(store, ArmTraining, *mine)],
        tables=[_table(store, cycle, title, *query) for title, query in QUERIES.items()],
        conditions=_conditions(cycle),
        limits=LIMITS,
    )


def _table(store: Store, cycle: Cycle, title: str, note: str, query: str) -> Table:
    parameters = [cycle.cycle_id] if "?" in query else []
    frame = store.connection.execute(query, parameters).df()
    rows = tuple(tuple(row) for row in frame.astype(object).itertuples(index=False))
    return Table(title, note, tuple(frame.columns), rows, query.replace("?", f"'{cycle.cycle_id}'"))


def _conditions(cycle: Cycle) -> dict[str, str]:
    rule = cycle.config.promotion
    return {
        "Sandbox": cycle.sandbox,
        "Environment (sandbox, tools, graders, harness)": cycle.environment,
        "Harness": HARNESS_VERSION,
        "Rule of promotion, registered beforehand": (
            f"best arm on dev above the parent at level {rule.dev_level:g} (not corrected for the "
            f"number of arms) and not below the control by more than {rule.margin:g}; on the "
            f"holdout not worse than the parent, estimate at least {rule.holdout_least:g}"
        ),
    }


def _grid(data: ReportData) -> Grid:
    grid = Grid(title=data.cycle.cycle_id, show_header=False, box=None, pad_edge=False)
    for name, said, _ in data.stages:
        grid.add_row(name, Text(said))
    for comparison in data.dev.comparisons:
        if comparison.slice == "all":
            grid.add_row(comparison.question, Text(_answer(comparison)))
    for hypothesis, verdict in data.judged:
        grid.add_row("hypothesis", Text(f"{verdict.judgement.value}: {hypothesis.claim}"))
    return grid


def _answer(comparison: Comparison) -> str:
    arms = f"{comparison.effect.value}: {comparison.treatment} − {comparison.control}"
    if comparison.estimate is None or comparison.lower is None or comparison.upper is None:
        return f"{arms} on {comparison.tasks} tasks, no interval"
    return (
        f"{arms} {comparison.estimate:+.3f} [{comparison.lower:+.3f}, {comparison.upper:+.3f}] "
        f"on {comparison.tasks} tasks; could have shown {comparison.detectable or 1:.2f}"
    )
