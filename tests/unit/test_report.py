"""The page: self-contained, everything escaped, every answer with its interval."""

import re
from dataclasses import replace

from flywheel.report import ReportData, Table, forest, ranges, render
from schemas.base import Record
from schemas.config import Cycle, CycleConfig
from schemas.evaluation import ArmResult, Comparison, Decision, Effect, EvalReport, Promotion
from schemas.failure import FailureCluster, FailureLayer
from schemas.lineage import Split
from tests.factories import make_posterior

HOSTILE = '<script>alert("x")</script><img src=http://example.org/x>'


def comparison(**changes: object) -> Comparison:
    fields: dict[str, object] = {
        "question": "better tasks?",
        "treatment": "new-uniform",
        "control": "old-uniform",
        "tasks": 48,
        "clusters": 37,
        "estimate": 0.125,
        "lower": -0.02,
        "upper": 0.27,
        "level": 0.95,
        "detectable": 0.21,
        "sign_flip_p": 0.09,
        "dropped": 0,
        "effect": Effect.INCONCLUSIVE,
    }
    return Comparison(**{**fields, **changes})  # type: ignore[arg-type]


def data() -> ReportData:
    cycle = Cycle(
        number=1,
        parent="embedded-0",
        config=CycleConfig(),
        sandbox="bubblewrap",
        environment="env-0",
        started_at=0.0,
    )
    arm = ArmResult(
        arm="parent",
        policy_version="embedded-0",
        tasks=48,
        attempts=48,
        passed=3,
        failed=44,
        ungraded=1,
        limits=40,
        rate=3 / 47,
        seconds=12.0,
        tokens=100,
    )
    cluster = FailureCluster(
        cycle_id="cycle-0001",
        label=HOSTILE,
        layer=FailureLayer.CAPABILITY,
        size=3,
        total=10,
        share=0.3,
        lower=0.1,
        upper=0.6,
        families={"orders": 3},
        rules={"keep-last": 3},
        members=("att-1",),
        nearest=("att-1",),
        farthest=(),
        random=(),
        method="test",
    )
    return ReportData(
        cycle=cycle,
        stages=[("screen", HOSTILE, 1.0)],
        dev=EvalReport(
            cycle_id="cycle-0001",
            split=Split.DEV,
            tasks_digest="tasks-1",
            arms=(arm,),
            comparisons=(comparison(),),
            unanswered=("better sampling?",),
        ),
        promotion=Promotion(
            cycle_id="cycle-0001",
            decision=Decision.HOLD,
            candidate=None,
            next_parent="embedded-0",
            reason=HOSTILE,
            rule=CycleConfig().promotion,
            read_id=None,
        ),
        reads=[],
        judged=[],
        written=[],
        clusters=[cluster],
        posteriors=[make_posterior()],
        trained=[],
        tables=[Table("Title", HOSTILE, ("a",), ((HOSTILE,), (None,)), HOSTILE)],
        conditions={"Sandbox": HOSTILE},
        limits=[HOSTILE],
    )


def test_nothing_that_an_agent_wrote_is_markup() -> None:
    page = render(data())
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") >= 7


def test_the_page_fetches_nothing() -> None:
    page = render(data())
    assert not re.search(r"<(link|script|iframe|img)\b|@import|url\(", page)
    assert not re.search(r"<[^>]+\b(src|href)\s*=", page)


def test_every_difference_stands_with_interval_denominator_and_detectable_effect() -> None:
    page = re.sub(r"\s+", " ", render(data()))
    row = page[page.index("better tasks?") :]
    for part in ("inconclusive", "+0.125 [-0.020, +0.270]", "48 (37)", "0.21"):
        assert part in row[:900], part
    assert "Unanswered: better sampling?" in page


def test_what_was_not_measured_is_said_and_not_zero() -> None:
    empty = comparison(estimate=None, lower=None, upper=None, detectable=None, tasks=0)
    shown = data()
    page = render(replace(shown, dev=_with(shown.dev, comparisons=(empty,))))
    assert "not measured" in page
    assert "[no interval]" in page


def test_an_interval_is_drawn_where_it_lies() -> None:
    drawing = str(forest([comparison(estimate=0.0, lower=-1.0, upper=1.0)]))
    line = re.search(r'class="range" x1="([\d.]+)" x2="([\d.]+)"', drawing)
    circle = re.search(r'<circle cx="([\d.]+)"', drawing)
    assert line is not None
    assert circle is not None
    left, right, middle = float(line[1]), float(line[2]), float(circle[1])
    assert left < middle < right
    assert middle == (left + right) / 2
    assert "1/4" in str(ranges([make_posterior(passed=1, graded=4)]))


def _with(record: EvalReport, **changes: object) -> EvalReport:
    assert isinstance(record, Record)
    return record.model_copy(update=changes)
