"""A claim about a cause that the next cycle can prove wrong."""

from enum import StrEnum

from pydantic import computed_field

from schemas.base import Name, Record, content_id


class DataChange(Record):
    """The tasks that the hypothesis asks for."""

    family: Name
    rules: tuple[Name, ...]
    """Each new task has at least these live."""


class Prediction(Record):
    """What must be seen, with a number, and where."""

    slice: str
    """Dev tasks it speaks of: `rule:NAME`, `family:NAME` or `all`."""
    treatment: Name
    control: Name
    at_least: float
    """Predicted rise of the success probability, treatment - control."""


class Hypothesis(Record):
    """Explains one cluster, proposes one data change, predicts one number."""

    cycle_id: str
    cluster_id: str
    claim: str
    change: DataChange
    prediction: Prediction
    refuted_if: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def hypothesis_id(self) -> str:
        """The same claim from the same cluster is the same hypothesis."""
        return content_id("hyp", self.cluster_id, self.change, self.prediction)


class Judgement(StrEnum):
    """What the evidence says."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not-tested"
    """Its tasks were in every arm or in none, or dev has none of the slice."""


class HypothesisVerdict(Record):
    """One cycle's judgement of one hypothesis."""

    hypothesis_id: str
    cycle_id: str
    judgement: Judgement
    estimate: float | None
    lower: float | None
    upper: float | None
    reason: str
