"""A cycle's records in, one self-contained HTML page out: no network fetch, everything escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from schemas.config import Cycle
from schemas.difficulty import Posterior
from schemas.evaluation import Comparison, EvalReport, HoldoutRead, Promotion
from schemas.failure import FailureCluster
from schemas.hypothesis import Hypothesis, HypothesisVerdict
from schemas.training import ArmTraining, PolicyVersion

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the query that made them."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    query: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything that a page says."""

    cycle: Cycle
    stages: Sequence[tuple[str, str, float]]
    """Name, what it came to, seconds."""
    dev: EvalReport
    promotion: Promotion
    reads: Sequence[HoldoutRead]
    """Of every cycle: the holdout's ledger."""
    judged: Sequence[tuple[Hypothesis, HypothesisVerdict]]
    written: Sequence[Hypothesis]
    clusters: Sequence[FailureCluster]
    posteriors: Sequence[Posterior]
    trained: Sequence[tuple[ArmTraining, PolicyVersion]]
    tables: Sequence[Table]
    conditions: Mapping[str, str]
    limits: Sequence[str]
    """What the page does not show."""


def render(data: ReportData) -> str:
    """Return the page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {
        "signed": _signed,
        "interval": _interval,
        "percent": _percent,
        "chance": _chance,
    }
    environment.globals["forest"] = forest
    environment.globals["ranges"] = ranges
    text = (files(__package__) / "templates" / "report.html").read_text("utf-8")
    return environment.from_string(text).render(data=data)


def forest(comparisons: Sequence[Comparison]) -> Markup:
    """Return differences with their intervals as an SVG, on a scale from -1 to +1."""
    marks = [
        (f"{c.treatment} − {c.control}" + ("" if c.slice == "all" else f", {c.slice}"), c)
        for c in comparisons
        if c.estimate is not None
    ]
    rows = [
        (label, c.lower, c.estimate, c.upper, f"{_signed(c.estimate)} {_interval(c)} n={c.tasks}")
        for label, c in marks
    ]
    return _svg(rows, low=-1.0, high=1.0, middle=0.0)


def ranges(posteriors: Sequence[Posterior]) -> Markup:
    """Return posterior means with 90 % intervals as an SVG, on a scale from 0 to 1."""
    ordered = sorted(posteriors, key=lambda p: (p.family, p.mean))
    rows = [
        (
            f"{p.family} · {p.bucket.value}",
            p.lower,
            p.mean,
            p.upper,
            f"{p.passed}/{p.graded}" + (f" ({p.ungraded} ungraded)" if p.ungraded else ""),
        )
        for p in ordered
    ]
    return _svg(rows, low=0.0, high=1.0, middle=0.5)


_LABEL, _PLOT, _NOTE, _ROW = 270, 360, 220, 20


def _svg(
    rows: Sequence[tuple[str, float | None, float | None, float | None, str]],
    low: float,
    high: float,
    middle: float,
) -> Markup:
    def x(value: float) -> float:
        return _LABEL + (value - low) / (high - low) * _PLOT

    height = _ROW * (len(rows) + 1) + 6
    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" class="plot">').format(
            _LABEL + _PLOT + _NOTE, height
        ),
        Markup('<line class="axis" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(
            x(middle), height - _ROW
        ),
    ]
    for number, (label, lower, value, upper, note) in enumerate(rows):
        y = _ROW * number + _ROW / 2
        parts.append(Markup('<text x="0" y="{}">{}</text>').format(y + 4, label))
        if lower is not None and upper is not None:
            parts.append(
                Markup('<line class="range" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(
                    x(max(low, lower)), x(min(high, upper)), y=y
                )
            )
        if value is not None:
            parts.append(Markup('<circle cx="{}" cy="{}" r="4"/>').format(x(value), y))
        parts.append(
            Markup('<text x="{}" y="{}" class="note">{}</text>').format(
                _LABEL + _PLOT + 12, y + 4, note
            )
        )
    for tick in (low, middle, high):
        parts.append(
            Markup('<text class="tick" x="{}" y="{}">{:g}</text>').format(x(tick), height - 6, tick)
        )
    return Markup("").join([*parts, Markup("</svg>")])


def _signed(value: float | None) -> str:
    return "not measured" if value is None else f"{value:+.3f}"


def _interval(item: Comparison | HoldoutRead | HypothesisVerdict) -> str:
    if item.lower is None or item.upper is None:
        return "[no interval]"
    return f"[{item.lower:+.3f}, {item.upper:+.3f}]"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _chance(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"
