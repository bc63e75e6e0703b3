"""Runs tools and graders the way a sandbox does: one call after another, in a folder."""

from collections.abc import Iterable
from contextlib import chdir, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from flywheel.tools import command
from flywheel.tools.settings import SETTINGS_TOOLS
from flywheel.tools.table import TABLE_TOOLS
from schemas.file import File
from schemas.task import TaskManifest
from schemas.tool import Script, ToolCall, ToolSpec

TOOLS = (*TABLE_TOOLS, *SETTINGS_TOOLS)


def write(folder: Path, files: Iterable[File]) -> Path:
    """Write `files` with their modes below `folder`, made for it; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data())
        path.chmod(file.mode)
    return folder


def run_tool(call: ToolCall, folder: Path, tools: Iterable[ToolSpec] = TOOLS) -> tuple[int, str]:
    """Make a call in `folder`; return exit code and output."""
    (tool,) = (tool for tool in tools if tool.name == call.tool)
    program, *argv = command(tool, call)
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
        return [run_tool(call, workspace, task.brief.tools) for call in script]


def run_grader(artifacts: Path, expected: Path, checks: Iterable[str]) -> tuple[int, str]:
    """Grade the folder `artifacts` with the compare program; return exit code and output."""
    return _run("flywheel.graders.compare", [str(artifacts), str(expected), *checks], artifacts)


def attempt(task: TaskManifest, script: Script) -> dict[str, bool]:
    """Run `script` on a fresh copy of the task and grade what it leaves: check → passed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        workspace = write(folder / "workspace", task.brief.environment.files)
        for call in script:
            run_tool(call, workspace, task.brief.tools)
        left = [workspace / path for path in task.brief.artifacts]
        artifacts = [File.of(path.name, path.read_bytes()) for path in left if path.is_file()]
        write(folder / "artifacts", artifacts)
        grader, files = task.sealed.grader, task.brief.environment.files
        write(folder / "expected" / "inputs", [f for f in files if f.path in grader.protected])
        write(folder / "expected" / "output", grader.expected)
        checks = grader.checks
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
