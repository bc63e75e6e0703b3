"""A small repository with a history, and grading of what is done to its tasks."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from flywheel.grade import grade_sets
from flywheel.sandbox import SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from schemas.attempt import Grade, Verdict
from schemas.file import File
from schemas.task import TaskManifest
from schemas.tool import Script

LABELS = {"run": f"formats-{os.getpid()}", "attempt": "a"}
GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
    "PATH": os.environ["PATH"],
}
CALC = "def add(a, b):\n    return a + b\n"
TEST = (
    "import unittest\n\nimport calc\n\n\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
)


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder`; return what it prints."""
    argv = ["git", *arguments]
    return subprocess.run(
        argv, cwd=folder, env=GIT, check=True, capture_output=True, text=True
    ).stdout


def commit(folder: Path, files: Mapping[str, str]) -> str:
    """Commit `files` on top of what is there; return the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "-q", "-b", "main")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "the answer is in this message")
    return git(folder, "rev-parse", "HEAD").strip()


def method(name: str, body: str, doc: str = "") -> str:
    """Return a test method."""
    lines = [f'"""{doc}"""'] * bool(doc) + [body]
    return f"    def {name}(self):\n" + "".join(f"        {line}\n" for line in lines)


def attempt(task: TaskManifest, script: Script) -> tuple[File, ...]:
    """Run a script on a fresh copy of the task; return the tree that it leaves."""
    environment = task.brief.environment
    spec = SandboxSpec({}, 60.0, LABELS, workdir=environment.workdir)
    with Bubblewrap().open(spec) as box:
        box.put(environment.files)
        for call in script:
            box.call(["/bin/bash", "-c", call.arguments["command"]], 20.0)
        return box.tree(".").files


def grade(task: TaskManifest, tree: Iterable[File]) -> dict[str, tuple[bool, str]]:
    """Grade a tree, which must lead to a verdict; return check → (passed, evidence)."""
    result = graded(task, tree)
    assert result.verdict is not Verdict.UNGRADED, result.evidence
    assert all(check.evidence.isascii() and check.evidence.isprintable() for check in result.checks)
    return {check.name: (check.passed, check.evidence) for check in result.checks}


def graded(task: TaskManifest, tree: Iterable[File]) -> Grade:
    """Grade a tree, whatever comes of it."""
    (result,) = grade_sets(task, [tuple(tree)], Bubblewrap().open, LABELS)
    return result


def passed(task: TaskManifest, tree: Iterable[File]) -> bool:
    """Tell whether a tree passes every check."""
    return all(word for word, _ in grade(task, tree).values())
