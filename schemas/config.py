"""One cycle's configuration: the nightly flow's only parameter, with literal defaults."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from schemas.attempt import Sampling
from schemas.base import Count, Name, Probability, Record, content_id
from schemas.curriculum import Arm
from schemas.evaluation import PromotionRule
from schemas.task import Budget

Positive = Annotated[int, Field(ge=1)]
SandboxKind = Literal["auto", "bubblewrap", "docker"]


class ProposeConfig(Record):
    """How many tasks are proposed."""

    families: tuple[Name, ...] = ("orders", "logs", "config")
    axes: tuple[str, ...] = ()
    """Kinds of rules to use (`flywheel coverage` lists them); empty: all."""
    things: tuple[Annotated[str, Field(pattern=r"^[a-z]{2,20}$")], ...] = ()
    """Business objects, in the singular, that goals are worded for; empty: each family's own."""
    walks: Count = 0
    """Walks over the graph of tools each cycle; those that come to something become tasks."""
    folders: tuple[str, ...] = ()
    """Folders of task folders to import: native, Harbor or SWE-bench."""
    per_proposer: Count = 20
    """Most tasks that each proposer of your own may make in a cycle."""
    plugins: tuple[str, ...] = ()
    """Families, checks and tools of your own, as `file.py:NAME`; entry points need no mention."""
    seed_rules: tuple[Name, ...] = ()
    """Rules that the founding pool may use; empty: all of them."""
    seed_tasks: Positive = 60
    """The founding pool, made once."""
    new_tasks: Positive = 60
    """Proposed each cycle for training."""
    dev_tasks: Positive = 48
    holdout_tasks: Positive = 24
    holdout_generation: Positive = 1
    """Raise it to make a new holdout, with reads of its own, when the old one's are used up."""
    max_rules: Positive = 3
    """Most rules that are live in one task."""
    per_hypothesis: Positive = 15
    """Tasks proposed for one open hypothesis, out of `new_tasks`."""


class ProbeConfig(Record):
    """Difficulty probing by the parent policy."""

    tasks: Positive = 24
    attempts: Positive = 4
    """Per probed task."""
    canaries: Count = 4
    """Accepted training tasks whose reference is run again each cycle, to notice what went bad."""


class DrawConfig(Record):
    """What each arm may spend, and the curriculum's quotas."""

    arms: Annotated[tuple[Arm, ...], Field(min_length=2)] = (
        Arm.OLD_UNIFORM,
        Arm.NEW_UNIFORM,
        Arm.NEW_CURRICULUM,
    )
    attempts: Positive = 48
    """Attempts per arm: equal for all."""
    rehearsal: Probability = 0.15
    exploration: Probability = 0.15
    cap: Positive = 2
    """Most draws of one task in one arm."""
    domain_floor: Probability = 0.15
    """Least share of each family."""

    @model_validator(mode="after")
    def _feasible(self) -> "DrawConfig":
        if len(set(self.arms)) != len(self.arms):
            raise ValueError("draw.arms names an arm twice")
        if self.rehearsal + self.exploration > 1:
            raise ValueError("draw.rehearsal + draw.exploration exceeds 1")
        return self


class TrainConfig(Record):
    """The same for every arm."""

    rows: Positive = 48
    """Demonstrations per arm."""
    steps: Positive = 400
    batch: Positive = 8
    learning_rate: Annotated[float, Field(gt=0)] = 6e-3
    rehearsal: Probability = 0.5
    """Share of each batch from rows of earlier cycles."""


class EvaluateConfig(Record):
    """How arms are compared on dev."""

    attempts: Positive = 1
    """Per task and arm."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    level: Probability = 0.95


class CycleConfig(Record):
    """Everything that decides what a cycle does."""

    home: str = ".flywheel"
    """Folder of the store, shards, policies and reports, relative to the working directory."""
    sandbox: SandboxKind = "auto"
    seed: Count = 7
    workers: Positive = 4
    """Attempts in flight."""
    shard_size: Positive = 32
    """Attempts in one Prefect step."""
    retries: Count = 2
    """Further tries after a retryable infrastructure fault."""
    max_infra_share: Probability = 0.2
    """Above this share of infrastructure faults in a stage the cycle stops."""
    budget: Budget = Budget()
    sampling: Sampling = Sampling()
    propose: ProposeConfig = ProposeConfig()
    probe: ProbeConfig = ProbeConfig()
    draw: DrawConfig = DrawConfig()
    train: TrainConfig = TrainConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    promotion: PromotionRule = PromotionRule()

    @model_validator(mode="after")
    def _enough_rows(self) -> "CycleConfig":
        if self.train.rows > self.draw.attempts:
            raise ValueError("train.rows exceeds draw.attempts: an arm can't have more rows")
        return self


class Cycle(Record):
    """One turn of the loop."""

    number: Positive
    parent: str
    """The policy version that all arms start from."""
    config: CycleConfig
    sandbox: SandboxKind
    """The backend that the cycle began with."""
    environment: str
    """Digest of backend, tools, graders and harness: receipts and settings hang on it."""
    started_at: float

    @property
    def cycle_id(self) -> str:
        """`cycle-0001`: one store holds one sequence."""
        return f"cycle-{self.number:04d}"

    @property
    def config_digest(self) -> str:
        """Identity of the configuration."""
        return content_id("cfg", self.config)
