"""The product's side: tasks, their screening against the clock, and a verdict for each solution."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from flywheel.errors import ManifestError
from flywheel.families import Rules
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.grade import grade_sets
from flywheel.propose import LICENCE, family_called
from flywheel.sandbox import Backend
from flywheel.screen import screen
from flywheel.screen.exploits import control, control_id
from flywheel.screen.perturb import perturb
from flywheel.screen.plans import Role, looking
from flywheel.screen.trials import run_trials
from flywheel.tools import programs_for
from schemas.attempt import Verdict
from schemas.base import content_id
from schemas.lineage import Split
from schemas.screening import ControlReport, ScreenReport
from schemas.task import Budget, Source, SourceKind, TaskManifest
from schemas.tool import Script

RUN = "benchmark"
SOURCE = Source(kind=SourceKind.COVERAGE, uri=RUN, licence=LICENCE)


@dataclass(frozen=True, slots=True)
class Screened:
    """Receipts, the exploit controls that they cite, and what both took."""

    reports: tuple[ScreenReport, ...]
    controls: tuple[ControlReport, ...]
    controls_seconds: float
    """Wall seconds; part of `seconds`."""
    seconds: float
    """Wall seconds from the first control to the last receipt."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the product says of each solution of one task, and how much else it judged."""

    verdicts: dict[str, Verdict]
    """By solution, named as `solutions` names them."""
    prefixes: int
    perturbed: int


def task_of(family: str, rules: Rules, seed: int) -> TaskManifest:
    """Return a task; raise ManifestError where these rules are not live on this seed."""
    return make_task(FAMILIES[family], rules, seed, Lexicon(Split.TRAIN), Budget(), SOURCE)


def tasks_of(family: str, rules: Rules, first: int, count: int) -> list[TaskManifest]:
    """Return one task for each of `count` seeds from `first` on."""
    return [task_of(family, rules, seed) for seed in range(first, first + count)]


def first_task(family: str) -> TaskManifest:
    """Return a family's first task that has as many of its rules live as go together, up to 3.

    Raises:
        ConfigError: there is no such family.
        ManifestError: these rules are live on none of 100 seeds.
    """
    rules: Rules = frozenset()
    known = family_called(FAMILIES, family)
    for rule in known.rules:
        if len(rules) < 3 and known.allows(rules | {rule}):
            rules |= {rule}
    for seed in range(100):
        try:
            return task_of(family, rules, seed)
        except ManifestError:
            continue
    raise ManifestError(f"family {family}: {sorted(rules)} live on none of 100 seeds")


def screen_tasks(tasks: Sequence[TaskManifest], backend: Backend, workers: int) -> Screened:
    """Screen tasks with the whole list of checks, as a cycle does.

    Exploit controls are tried first, once for each family, image and grader version among them.
    """

    def digest(task: TaskManifest) -> str:
        return content_id("env", backend.digest, programs_for(task.brief.tools))

    def controlled(task: TaskManifest) -> ControlReport:
        return control(task, digest(task), backend.open)

    def screened(task: TaskManifest) -> ScreenReport:
        cited = controls[control_id(task, digest(task))]
        search = backend.search_image
        here, clock = digest(task), time.time
        return screen(task, backend.open, here, RUN, clock, lambda: cited, search).report

    began = time.perf_counter()
    wanted = {control_id(task, digest(task)): task for task in reversed(tasks)}
    with ThreadPoolExecutor(workers) as pool:
        controls = dict(zip(wanted, pool.map(controlled, wanted.values()), strict=True))
        controls_seconds = time.perf_counter() - began
        reports = tuple(pool.map(screened, tasks))
    return Screened(
        reports, tuple(controls.values()), controls_seconds, time.perf_counter() - began
    )


def solutions(task: TaskManifest) -> dict[str, Script]:
    """Return every script that screening runs on a task, by the name that screening gives it."""
    sealed, looks = task.sealed, looking(task.brief)
    reference = sealed.reference
    repeated = ("reference", "reference-shifted", "reference-dirtied")
    scripts = dict.fromkeys(repeated, reference)
    scripts |= {f"alternative-{n}": script for n, script in enumerate(sealed.alternatives)}
    scripts |= {"no-op": ()}
    scripts |= {mutant.name: mutant.script for mutant in sealed.mutants}
    for at, call in enumerate(reference[:-1]):
        if call.tool not in looks:
            shorter = reference[:at] + reference[at + 1 :]
            scripts[f"without-step-{at + 1}-{call.tool}"] = shorter
    return scripts


def judge(task: TaskManifest, backend: Backend) -> Judged:
    """Run and grade every solution of one task as screening does, and say what came of each.

    Raises:
        RuntimeError: screening runs other solutions than `solutions` lists.
        SandboxError: a sandbox failed.
    """
    digest = content_id("env", backend.digest, programs_for(task.brief.tools))
    specimens = run_trials(task, backend.open, digest, RUN, time.time).specimens
    runs = [specimen for specimen in specimens if specimen.role is not Role.PREFIX]
    names = [specimen.name for specimen in runs]
    if sorted(names) != sorted(solutions(task)):
        raise RuntimeError(f"screening runs {names}, the benchmark {list(solutions(task))}")
    sets = [specimen.artifacts for specimen in runs]
    grades = grade_sets(task, sets, backend.open, {"run": RUN, "attempt": "judge"})
    verdicts = {name: grade.verdict for name, grade in zip(names, grades, strict=True)}
    perturbed = len(list(perturb(task, sets[names.index("reference")])))
    return Judged(verdicts, len(specimens) - len(runs), perturbed)
