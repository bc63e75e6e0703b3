"""What is run on a task, and under which conditions: which runs share a sandbox.

Tasks on tools that keep to their folder share sandboxes: one as the agent would find it, for the
reference and the other right solutions; and one under shifted conditions, for the reference in a
clean folder and in a dirtied one, and for all that is wrong, each in a clean folder. A task with a
shell gets a sandbox for each run, and its clock is shifted apart from the rest, with a control:
libfaketime breaks some programs by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from schemas.task import Brief, TaskManifest
from schemas.tool import Script, ToolHome

CLOCK_SHIFT = 400 * 86_400
"""Seconds."""
SHIFTED = {
    "TZ": "Pacific/Kiritimati",
    "LC_ALL": "C",
    "LANG": "tr_TR.UTF-8",
    "PYTHONHASHSEED": "4242",
}
"""Another zone, locale and hash seed."""
OTHER_CLOCK = {
    "LD_PRELOAD": "/usr/$LIB/faketime/libfaketime.so.1",
    "FAKETIME": f"+{CLOCK_SHIFT}s",
    "DONT_FAKE_MONOTONIC": "1",
}
"""What shifts the clock where libfaketime is installed."""
SAME_CLOCK = OTHER_CLOCK | {"FAKETIME": "+0s"}
"""libfaketime without a shift: what fails under it can say nothing about another clock."""
SAME = "reference-same-clock"


class Role(StrEnum):
    """What a run is for."""

    REFERENCE = "reference"
    CLOCK = "clock"
    """The reference under libfaketime alone."""
    REGRADED = "regraded"
    """What the reference left, graded under another clock and zone."""
    ALTERNATIVE = "alternative"
    NO_OP = "no-op"
    MUTANT = "mutant"
    STEP_DROPPED = "step-dropped"
    PREFIX = "prefix"
    PERTURBED = "perturbed"


INITIAL = "initial-state"
RIGHT = frozenset({Role.REFERENCE, Role.CLOCK, Role.ALTERNATIVE, Role.REGRADED})
REGRADED = "grader-shifted"
REGRADED_SAME = "grader-same-clock"
"""Its control: under libfaketime without a shift."""


@dataclass(frozen=True, slots=True)
class Run:
    """One script to be run."""

    name: str
    role: Role
    script: Script
    rule: str | None = None
    dirtied: bool = False


Plan = tuple[dict[str, str], list[Run]]
"""The variables of one sandbox, and what runs in it."""


def shares_a_sandbox(task: TaskManifest) -> bool:
    """Tell whether runs keep to their own folder of one sandbox."""
    return all(tool.home is not ToolHome.SHELL for tool in task.brief.tools)


def plans_of(task: TaskManifest) -> list[Plan]:
    """Return the sandboxes that a task's runs need, the first one as the agent finds it."""
    sealed = task.sealed
    reference = Run("reference", Role.REFERENCE, sealed.reference)
    others = [
        Run(f"alternative-{number}", Role.ALTERNATIVE, script)
        for number, script in enumerate(sealed.alternatives)
    ]
    shifted = Run("reference-shifted", Role.REFERENCE, sealed.reference)
    dirtied = Run("reference-dirtied", Role.REFERENCE, sealed.reference, dirtied=True)
    wrong = [
        Run("no-op", Role.NO_OP, ()),
        *(Run(m.name, Role.MUTANT, m.script, m.rule) for m in sealed.mutants),
        *_shortened(task),
    ]
    if shares_a_sandbox(task):
        return [({}, [reference, *others]), (SHIFTED | OTHER_CLOCK, [shifted, dirtied, *wrong])]
    plain: list[Plan] = [({}, [run]) for run in (reference, *others, *wrong, dirtied)]
    clocks = [
        (OTHER_CLOCK, [Run("reference-other-clock", Role.CLOCK, sealed.reference)]),
        (SAME_CLOCK, [Run(SAME, Role.CLOCK, sealed.reference)]),
    ]
    return [*plain, (SHIFTED, [shifted]), *clocks]


def _shortened(task: TaskManifest) -> Iterator[Run]:
    """Yield the reference without each of the steps that are not for looking only.

    Without its only step, or with the last one dropped, a reference is a prefix of itself.
    """
    script = task.sealed.reference
    looks = looking(task.brief)
    for at, call in enumerate(script[:-1]):
        if call.tool not in looks:
            shorter = script[:at] + script[at + 1 :]
            yield Run(f"without-step-{at + 1}-{call.tool}", Role.STEP_DROPPED, shorter)


def looking(brief: Brief) -> frozenset[str]:
    """Return the tools whose calls leave nothing behind: a script could do without them."""
    return frozenset(
        tool.name for tool in brief.tools if tool.observes or tool.home is ToolHome.HOST
    )
