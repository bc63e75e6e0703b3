"""Runs tools and graders the way a sandbox does: one call after another, in a folder."""

from collections.abc import Iterable
from contextlib import chdir, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from flywheel.tools import command
from schemas.task import File, Script, TaskManifest, ToolCall


def write(folder: Path, files: Iterable[File]) -> Path:
    """Write `files` below `folder`, made for it; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.path).write_bytes(file.data())
    return folder


def run_tool(call: ToolCall, folder: Path) -> tuple[int, str]:
    """Make a call in `folder`; return exit code and output."""
    program, *argv = command(call)
    return _run(f"flywheel.tools.programs.{program}", argv, folder)


def call(folder: Path, tool: str, **arguments: str) -> str:
    """Make a call that must succeed; return what it prints."""
    code, output = run_tool(ToolCall(tool=tool, arguments=arguments), folder)
    assert code == 0, output
    return output


def refusal(folder: Path, tool: str, **arguments: str) -> str:
    """Make a call that must be refused; return the message."""
    code, output = run_tool(ToolCall(tool=tool, arguments=arguments), folder)
    assert code == 2, output
    return output.removesuffix("\n")


def observe(task: TaskManifest, script: Script) -> list[tuple[int, str]]:
    """Run `script` on a fresh copy of the task; return exit code and output of each call."""
    with TemporaryDirectory() as name:
        workspace = write(Path(name), task.brief.environment.files)
        return [run_tool(call, workspace) for call in script]


def run_grader(artifacts: Path, expected: Path, checks: Iterable[str]) -> tuple[int, str]:
    """Grade the folder `artifacts` with the compare program; return exit code and output."""
    return _run("flywheel.graders.compare", [str(artifacts), str(expected), *checks], artifacts)


def attempt(task: TaskManifest, script: Script) -> dict[str, bool]:
    """Run `script` on a fresh copy of the task and grade what it leaves: check → passed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        workspace = write(folder / "workspace", task.brief.environment.files)
        for call in script:
            run_tool(call, workspace)
        left = [workspace / path for path in task.brief.artifacts]
        artifacts = [File.of(path.name, path.read_bytes()) for path in left if path.is_file()]
        write(folder / "artifacts", artifacts)
        write(folder / "expected" / "inputs", task.brief.environment.files)
        write(folder / "expected" / "output", task.sealed.grader.expected)
        checks = task.sealed.grader.checks
        code, output = run_grader(folder / "artifacts", folder / "expected", checks)
    *lines, last = output.splitlines()
    assert (code, last) == (0, "graded")
    results = {line.split("\t")[0]: line.split("\t")[1] == "pass" for line in lines}
    assert tuple(results) == checks
    return results


def _run(module: str, argv: list[str], folder: Path) -> tuple[int, str]:
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = import_module(module).main(argv)
    return code, printed.getvalue()
