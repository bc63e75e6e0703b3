"""What screening found, as one self-contained page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath

from jinja2 import Environment, StrictUndefined

from flywheel.formats import Refused
from flywheel.intervals import clopper_pearson
from flywheel.screen.flake import flake_interval
from schemas.screening import CheckKind, ControlReport, ScreenReport, ScreenVerdict
from schemas.task import TaskManifest


@dataclass(frozen=True, slots=True)
class Screened:
    """A task with its receipt."""

    name: str
    task: TaskManifest
    report: ScreenReport


@dataclass(frozen=True, slots=True)
class Stage:
    """One check over all tasks."""

    kind: str
    passed: int
    failed: int
    unmeasured: int
    seconds: float


def funnel(screened: Sequence[Screened]) -> list[Stage]:
    """Return the checks in the order of the list, cheap to dear; own ones stand last."""
    known = [kind.value for kind in CheckKind]
    found = {check.kind for item in screened for check in item.report.checks}
    counts: dict[str, Counter[bool | None]] = {kind: Counter() for kind in found}
    seconds: dict[str, float] = dict.fromkeys(found, 0.0)
    for item in screened:
        for check in item.report.checks:
            counts[check.kind][check.passed] += 1
            seconds[check.kind] += check.seconds
    ordered = sorted(found, key=lambda k: (known.index(k) if k in known else len(known), k))
    return [
        Stage(k, counts[k][True], counts[k][False], counts[k][None], seconds[k]) for k in ordered
    ]


def render_screening(
    folder: PurePath,
    screened: Sequence[Screened],
    refused: Sequence[Refused],
    controls: Sequence[ControlReport],
    conditions: Mapping[str, str],
) -> str:
    """Return the page as HTML; everything that a task wrote is escaped."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = (files("flywheel") / "templates" / "screening.html").read_text("utf-8")
    killed = sum(item.report.mutants_killed for item in screened)
    mutants = sum(item.report.mutants for item in screened)
    accepted = [item.report for item in screened if item.report.verdict is ScreenVerdict.ACCEPTED]
    runs = sum(report.references for report in accepted)
    passed = sum(report.references_passed for report in accepted)
    return environment.from_string(template).render(
        folder=folder,
        screened=screened,
        refused=refused,
        controls=controls,
        conditions=conditions,
        funnel=funnel(screened),
        verdicts=Counter(item.report.verdict.value for item in screened),
        killed=killed,
        mutants=mutants,
        kill=clopper_pearson(killed, mutants),
        runs=runs,
        runs_passed=passed,
        flake=flake_interval(runs, passed),
        total=max(1, len(screened)),
    )
