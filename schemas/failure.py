"""Failures: whose they are, what they have in common, and what a person should look at."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import computed_field

from schemas.base import Count, Name, Probability, Record, content_id


class FailureLayer(StrEnum):
    """Whose failure it is. Protocol, context and capability are the model's."""

    INFRASTRUCTURE = "infrastructure"
    GRADER = "grader"
    ENVIRONMENT = "environment"
    PROTOCOL = "protocol"
    CONTEXT = "context"
    CAPABILITY = "capability"
    UNDETERMINED = "undetermined"


MODEL_LAYERS = frozenset({FailureLayer.PROTOCOL, FailureLayer.CONTEXT, FailureLayer.CAPABILITY})
"""Only these are clustered and may lead to training tasks."""


class Failure(Record):
    """One attempt that did not pass."""

    attempt_id: str
    cycle_id: str
    task_id: str
    family: Name
    rules: tuple[Name, ...]
    layer: FailureLayer
    code: Name
    rule: Name
    """The triage rule that decided, by name and version: `step-limit@1`."""
    evidence: str
    digest: str
    """What clustering reads: last error, tools used, failing checks, literals masked."""


class FailureCluster(Record):
    """Failures of the model's layers that look alike."""

    cycle_id: str
    label: str
    layer: FailureLayer
    size: Count
    total: Count
    """All failures of the cycle, every layer: the share's denominator."""
    share: Probability
    lower: Probability
    upper: Probability
    """Wilson 95 % interval of the share."""
    families: Mapping[str, Count]
    rules: Mapping[str, Count]
    """How many members have this rule live."""
    members: tuple[str, ...]
    """Attempt ids."""
    nearest: tuple[str, ...]
    farthest: tuple[str, ...]
    random: tuple[str, ...]
    method: str
    is_noise: bool = False
    """The rest: what belongs to no cluster. Never explained by a hypothesis."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cluster_id(self) -> str:
        """Identity by members."""
        return content_id("clu", self.cycle_id, sorted(self.members))


class AuditItem(Record):
    """A failure for a person to label: the nightly flow never waits for it."""

    cycle_id: str
    attempt_id: str
    cluster_id: str
    layer: FailureLayer
    code: Name
    probability: Probability
    """Of being drawn, within its stratum (cluster and code)."""
