"""Which tests a change makes pass, found by running them before and after in sandboxes."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from flywheel.formats.software import WORKDIR
from flywheel.graders import companion_source
from flywheel.graders.reports import Outcome, read
from flywheel.sandbox import ArtifactRefused, OpenSandbox, SandboxSpec
from schemas.file import File

RUNS = 2
"""Times that the tests run before, and after: what differs between runs decides nothing."""
BOOT_SECONDS = 60.0
_RUNNER, _REPORT = ".flywheel/runner.py", ".flywheel/report"
_SETTING = (
    f'export RUNNER="$PWD/{_RUNNER}" RESULTS="$PWD/{_REPORT}"; '
    f'export PYTEST_ADDOPTS="--junitxml=$RESULTS -o junit_family=xunit1 -p no:cacheprovider"; '
)
Outcomes = Mapping[str, list[Outcome]]
"""Test → what was reported of it, in one run."""


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """How a repository's tests are run."""

    prefix: str
    """For bash, before the test files; it may use RUNNER and RESULTS."""
    results: Literal["lines", "junit"]
    seconds: float
    """For all tests together."""

    @property
    def parser(self) -> str:
        """SWE-bench's name for how such tests report."""
        return "unittest_lines" if self.results == "lines" else "pytest"

    def line(self, paths: Iterable[str]) -> str:
        """Return the command line that runs the test files among `paths`."""
        files = [path for path in sorted(paths) if _holds_tests(path)]
        return f"{self.prefix} {shlex.join(files)}"


def unittest_command(seconds: float = 60.0) -> SuiteCommand:
    """Return how tests of the standard library's unittest are run."""
    return SuiteCommand('python3 -I "$RUNNER" "$RESULTS"', "lines", seconds)


def pytest_command(seconds: float = 60.0) -> SuiteCommand:
    """Return how tests are run where the image has pytest."""
    return SuiteCommand("python3 -m pytest -q", "junit", seconds)


def _holds_tests(path: str) -> bool:
    name = path.rpartition("/")[2]
    named = name.startswith("test") or name.endswith("_test.py")
    return named and name.endswith(".py")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the runs showed."""

    fail_to_pass: Mapping[str, Outcome]
    """Failed in every run before, passed in every run after → what it said before."""
    pass_to_pass: tuple[str, ...]
    """Passed in every run, before and after."""
    evidence: str


def measure(
    before: Mapping[str, File],
    after: Mapping[str, File],
    command: SuiteCommand,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> Measured:
    """Run the tests that are in both trees, each time in a sandbox of its own.

    Raises:
        SandboxError: a sandbox failed.
    """
    first = [run(before, command, open_sandbox, labels) for _ in range(RUNS)]
    then = [run(after, command, open_sandbox, labels) for _ in range(RUNS)]
    ended = [outcomes for outcomes in (*first, *then) if outcomes is not None]
    if len(ended) < 2 * RUNS:
        return Measured({}, (), "the tests did not end in time, or reported nothing")
    passed = [test for test in sorted(ended[-1]) if _passed(test, ended[RUNS:])]
    fixed = [test for test in passed if not any(_passed(test, [run]) for run in ended[:RUNS])]
    kept = tuple(test for test in passed if _passed(test, ended[:RUNS]))
    evidence = f"{len(fixed)} fixed, {len(kept)} kept, {len(ended[-1])} reported after the change"
    return Measured({test: _said_before(test, ended[0]) for test in fixed}, kept, evidence)


def run(
    tree: Mapping[str, File],
    command: SuiteCommand,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
) -> Outcomes | None:
    """Run the tests on a tree once; None where they did not end in time or reported nothing.

    Raises:
        SandboxError: the sandbox failed.
    """
    spec = SandboxSpec({}, BOOT_SECONDS + command.seconds, labels, workdir=WORKDIR)
    with open_sandbox(spec) as box:
        box.put(tree.values())
        box.put([File(path=_RUNNER, content=companion_source("unittest_lines"))])
        argv = ["/bin/bash", "-c", _SETTING + command.line(tree)]
        if box.call(argv, command.seconds).timed_out:
            return None
        try:
            told, _ = read(command.results, box.get(_REPORT).decode("utf-8", "replace"), "")
        except (ArtifactRefused, ValueError):
            return None
    outcomes: dict[str, list[Outcome]] = {}
    for outcome in told:
        outcomes.setdefault(outcome.test, []).append(outcome)
    return outcomes


def _passed(test: str, runs: Iterable[Outcomes]) -> bool:
    """Tell whether each run reported a test once, as passed."""
    return all([told.status for told in run.get(test, [])] == ["passed"] for run in runs)


def _said_before(test: str, outcomes: Outcomes) -> Outcome:
    """Return what a test said, or what importing its file said where that failed."""
    if test in outcomes:
        return outcomes[test][0]
    for name, (told, *_) in outcomes.items():
        module = name.strip(":")
        if test.startswith((f"{module}.", f"{module.replace('.', '/')}.py::")):
            return told
    return Outcome(test, "absent")
