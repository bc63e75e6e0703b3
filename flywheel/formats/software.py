"""Software tasks: a repository at a commit, hidden tests, and a patch that makes them pass."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from flywheel.formats.collection import Files, FormatError
from flywheel.graders import companion_source, grader_version
from flywheel.tools import BASH_TOOL, SUBMIT_TOOL
from schemas.base import Record
from schemas.file import File
from schemas.task import Brief, Budget, Environment, Grader

WORKDIR = "/testbed"
BUDGET = Budget(steps=50, seconds=1800.0, tokens=65_536)
GRACE = 30.0
"""Seconds that a grader gets beyond those of the tests."""
MAX_TESTS = 50_000
MAX_NAME = 2_000
CHECKS = ("fail-to-pass", "pass-to-pass")
STARTUP = r"(^|/)(sitecustomize|usercustomize)[./]|\.pth$|(^|/)__pycache__/|\.pyc$"
"""What Python runs or believes unasked, and no repository ships."""
TESTS = (
    r"(^|/)tests?/|(^|/)(test_[^/]*|[^/]*_test|tests|conftest)\.py$|(^|/)\.?pytest\.ini$"
    r"|^(unittest|pytest|_pytest|pluggy|iniconfig)[./]"
)
"""Tests and their configuration, and what would stand in for the runner."""
REPLACED = f"{TESTS}|{STARTUP}"
Results = Literal["lines", "junit", "log"]
"""How tests report: see flywheel/graders/reports.py."""


class HiddenTests(Record):
    """`tests.json`: what flywheel/graders/tests.py runs, and which tests decide."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    command: str
    results: Results
    seconds: float
    replaced: str
    patched: Mapping[str, str] = {}


def is_test(path: str) -> bool:
    """Tell whether a file of a repository belongs to its tests or could tamper with them."""
    return re.search(REPLACED, path) is not None


def make_grader(tests: HiddenTests, hidden: Files, patch: str, source: str) -> Grader:
    """Return the grader of a software task.

    Args:
        tests: what to run.
        hidden: files to put over the tree, by their paths in it.
        patch: to apply to the tree besides; may be empty.
        source: the task, for messages.

    Raises:
        FormatError: no test decides, or a name that can't be a test's.
    """
    lists = dict(zip(CHECKS, (tests.fail_to_pass, tests.pass_to_pass), strict=True))
    checks = tuple(check for check, names in lists.items() if names)
    if not checks:
        raise FormatError(source, "FAIL_TO_PASS", "no test decides: name one")
    _check_names([*tests.fail_to_pass, *tests.pass_to_pass], source)
    files = [
        File(path="tests.json", content=tests.model_dump_json(indent=1)),
        File(path="reports.py", content=companion_source("reports")),
        *(File(path=f"hidden/{f.path}", **f.model_dump(exclude={"path"})) for f in hidden.values()),
    ]
    if tests.results == "lines":
        files.append(File(path="runner.py", content=companion_source("unittest_lines")))
    if patch:
        files.append(File(path="test.patch", content=patch))
    return Grader(
        program="tests",
        version=grader_version("tests"),
        checks=checks,
        expected=tuple(files),
        seconds=tests.seconds + GRACE,
    )


def _check_names(names: Sequence[str], source: str) -> None:
    for name in names:
        if not name or not name.isprintable() or len(name) > MAX_NAME or len(names) > MAX_TESTS:
            reason = f"{name[:80]!r}: at most {MAX_TESTS} names of {MAX_NAME} printable characters"
            raise FormatError(source, "FAIL_TO_PASS or PASS_TO_PASS", reason)


def make_brief(goal: str, environment: Environment, budget: Budget) -> Brief:
    """Return the brief: a shell, and the whole tree is what is graded."""
    return Brief(
        goal=goal,
        environment=environment,
        tools=(BASH_TOOL, SUBMIT_TOOL),
        artifacts=("./",),
        budget=budget,
    )


def tests_of(grader: Grader, source: str) -> HiddenTests:
    """Return the `tests.json` of a grader that `make_grader` made.

    Raises:
        FormatError: it is another kind of grader.
    """
    for file in grader.expected:
        if file.path == "tests.json" and grader.program == "tests":
            return HiddenTests.model_validate_json(file.content)
    raise FormatError(source, "sealed.grader", "does not run hidden tests")


def outside_of(fields: Mapping[str, object]) -> dict[str, str]:
    """Return fields without a home as name → JSON text."""
    return {name: json.dumps(value, sort_keys=True) for name, value in fields.items()}
