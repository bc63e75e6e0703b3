"""What a task says whose tests are all that is known: the words of the failing tests themselves."""

from collections.abc import Iterator

from flywheel.formats.collection import shown
from flywheel.formats.measure import Measured
from flywheel.graders.reports import Outcome
from schemas.task import Requirement

MAX_NAMED = 20
"""Failing tests that are told one by one."""
FIXED, KEPT = ("fail-to-pass",), ("pass-to-pass",)


def requirements(measured: Measured) -> tuple[Requirement, ...]:
    """Return the goal, sentence by sentence: from names, docstrings and messages of failing tests.

    They are what a test run printed, so they are made printable and cut to one line each.
    """
    return tuple(_sentences(measured))


def _sentences(measured: Measured) -> Iterator[Requirement]:
    count = len(measured.fail_to_pass)
    tests = "A test fails" if count == 1 else f"{count} tests fail"
    yield Requirement(
        sentence=f"{tests} on this repository: change its code so that none does.", checks=FIXED
    )
    if measured.pass_to_pass:
        yield Requirement(sentence="Tests that pass now must still pass.", checks=KEPT)
    yield Requirement(sentence="The tests that decide are not all in the workspace.")
    for test, told in list(measured.fail_to_pass.items())[:MAX_NAMED]:
        yield Requirement(sentence=_described(test, told), checks=FIXED)
    if count > MAX_NAMED:
        yield Requirement(sentence=f"So do {count - MAX_NAMED} more.", checks=FIXED)


def _described(test: str, told: Outcome) -> str:
    about = f" ({shown(told.doc)})" if told.doc else ""
    message = f": {shown(told.message)}" if told.message else ""
    return f"Test {shown(test)}{about} fails{message}."
