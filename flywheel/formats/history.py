"""Software tasks made from a local repository's history, each measured by execution.

A commit that changes code and tests becomes a task: the tree before it, its tests hidden, the code
part of its diff the reference. Which tests it makes pass is found by running them in a sandbox,
before and after; a commit that makes none pass, or whose tests don't come out the same every
time, is skipped with the reason. The statement is written from what the failing tests say, never
from the diff. After R2E-Gym (arXiv 2504.07164).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flywheel.errors import SandboxError
from flywheel.formats.clone import git, tree_at
from flywheel.formats.collection import FormatError
from flywheel.formats.measure import Measured, SuiteCommand, measure
from flywheel.formats.patch import applying
from flywheel.formats.software import (
    BUDGET,
    REPLACED,
    WORKDIR,
    HiddenTests,
    is_test,
    make_brief,
    make_grader,
    outside_of,
)
from flywheel.formats.statement import requirements
from flywheel.sandbox import OpenSandbox
from schemas.file import File
from schemas.task import Budget, Environment, Repository, Sealed, Source, SourceKind, TaskManifest

FAMILY, FAMILY_VERSION = "history", "history@1"
DOCUMENTS = (".md", ".rst", ".txt")
"""Endings of files that no test depends on, as far as a diff is concerned."""
_DIFF = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a history comes from."""

    clone: Path
    """A local clone; nothing in it is run outside a sandbox, and nothing is fetched."""
    url: str
    """What people call it, without credentials."""
    licence: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A commit that did not become a task."""

    commit: str
    reason: str
    """`no-code-and-tests`, `unreadable`, `sandbox`, `nothing-fixed`."""
    evidence: str


def tasks_from_history(
    origin: Origin,
    command: SuiteCommand,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
    limit: int,
    budget: Budget = BUDGET,
) -> Iterator[TaskManifest | Skipped]:
    """Yield a task or the reason why not for each commit, newest first, along first parents.

    Args:
        origin: the repository.
        command: how its tests are run and report.
        open_sandbox: where they are run: twice before and twice after each commit.
        labels: of those sandboxes.
        limit: most commits to look at.
        budget: of an attempt.

    Raises:
        FormatError: the repository can't be read at all.
    """
    wanted = ("--first-parent", "--no-merges", "--min-parents=1", f"--max-count={limit}")
    for line in git(origin.clone, "rev-list", "--parents", *wanted, "HEAD").decode().splitlines():
        commit, parent = line.split()[:2]
        try:
            yield _candidate(origin, commit, parent, command, open_sandbox, labels, budget)
        except FormatError as problem:
            yield Skipped(commit, "unreadable", str(problem))
        except SandboxError as problem:
            yield Skipped(commit, "sandbox", str(problem))


def _candidate(
    origin: Origin,
    commit: str,
    parent: str,
    command: SuiteCommand,
    open_sandbox: OpenSandbox,
    labels: Mapping[str, str],
    budget: Budget,
) -> TaskManifest | Skipped:
    changed = _changed(origin.clone, parent, commit)
    code = [path for path in changed if not is_test(path) and not path.endswith(DOCUMENTS)]
    if not code or not any(is_test(path) for path in changed):
        return Skipped(commit, "no-code-and-tests", f"changes {', '.join(changed[:5])}")
    before, after = tree_at(origin.clone, parent), tree_at(origin.clone, commit)
    hidden = {path: file for path, file in after.items() if is_test(path)}
    started = {path: file for path, file in before.items() if not is_test(path)} | hidden
    solved = {path: file for path, file in started.items() if path not in code}
    solved |= {path: after[path] for path in code if path in after}
    measured = measure(started, solved, command, open_sandbox, labels)
    if not measured.fail_to_pass:
        return Skipped(commit, "nothing-fixed", measured.evidence)
    return _task(origin, commit, parent, command, budget, before, hidden, code, measured)


def _changed(clone: Path, parent: str, commit: str) -> list[str]:
    names = git(clone, "diff-tree", "-r", "-z", "--name-only", "--no-renames", parent, commit)
    return [name.decode("utf-8", errors="backslashreplace") for name in names.split(b"\0") if name]


def _diff(clone: Path, parent: str, commit: str, paths: list[str]) -> str:
    literal = [f":(literal,top){path}" for path in paths]
    diff = git(clone, "diff-tree", "-p", "-r", *_DIFF, parent, commit, "--", *literal)
    try:
        return diff.decode()
    except UnicodeDecodeError:
        raise FormatError(clone.name, f"commit {commit}", "its diff is no UTF-8 text") from None


def _task(
    origin: Origin,
    commit: str,
    parent: str,
    command: SuiteCommand,
    budget: Budget,
    before: Mapping[str, File],
    hidden: Mapping[str, File],
    code: list[str],
    measured: Measured,
) -> TaskManifest:
    name = f"{origin.clone.name}-{commit[:12]}"
    said = requirements(measured)
    tests = HiddenTests(
        fail_to_pass=tuple(measured.fail_to_pass),
        pass_to_pass=measured.pass_to_pass,
        command=command.line(hidden),
        results=command.results,
        seconds=command.seconds,
        replaced=REPLACED,
    )
    environment = Environment(
        files=tuple(before[path] for path in sorted(before)),
        workdir=WORKDIR,
        repository=Repository(url=origin.url, commit=parent),
    )
    tested = [path for path in _changed(origin.clone, parent, commit) if is_test(path)]
    return TaskManifest(
        family=FAMILY,
        family_version=FAMILY_VERSION,
        rules=(),
        seed=0,
        operands=tuple(sorted(code)),
        brief=make_brief(" ".join(item.sentence for item in said), environment, budget),
        sealed=Sealed(
            grader=make_grader(tests, hidden, "", name),
            reference=applying(_diff(origin.clone, parent, commit, code), name, "code"),
            requirements=said,
        ),
        features=None,
        source=Source(
            kind=SourceKind.IMPORTED, uri=f"{origin.url}@{commit}:{name}", licence=origin.licence
        ),
        outside=outside_of(
            {
                "instance_id": name,
                "version": "",
                "log_parser": f"parse_log_{command.parser}",
                "eval_type": "pass_and_fail",
                "test_patch": _diff(origin.clone, parent, commit, tested),
                "flywheel_component": origin.url,
            }
        ),
    )
