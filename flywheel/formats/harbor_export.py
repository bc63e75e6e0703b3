"""Harbor task folders out: any task, and imported ones to the byte.

A task of ours becomes a folder that Harbor builds and runs: the tools are programs in the image,
the verifier is our grader in a separate container without the agent's files, without network. The
folder carries the manifest, so that reading it back gives the same task.
"""

import inspect
import json
import re
import shlex
from pathlib import Path
from typing import cast

from flywheel.errors import ManifestError
from flywheel.formats import harbor_verify
from flywheel.formats.collection import FormatError
from flywheel.formats.documents import read_json
from flywheel.formats.harbor import INSTRUCTION, NATIVE, ORIGINAL, SUMS, TESTS, sums
from flywheel.formats.manifest import manifest_files
from flywheel.formats.reading import write_files
from flywheel.graders import ABSOLUTE, grader_source
from flywheel.tools import command, program_source
from schemas.file import File, is_folder
from schemas.task import TaskManifest
from schemas.tool import ToolHome, ToolSpec

PROGRAMS, TOOLS = "/opt/flywheel/programs", "/opt/flywheel/bin"
COMPOSE = """\
services:
  main:
    network_mode: none
    init: true
    stop_grace_period: 1s
"""
"""Takes the network away without the images that Harbor's own `no-network` needs."""
START_TOOL = """\
#!/bin/sh
exec python3 -I -c 'import runpy, sys
sys.exit(runpy.run_path(sys.argv[1])["main"](sys.argv[2:]))' {program} {name} "$@"
"""
TEST = """\
#!/bin/bash
# Writes /logs/verifier/reward.json, and only if the grader finished and said so.
exec python3 -I /tests/verify.py
"""


def write_harbor(task: TaskManifest, folder: Path, image: str) -> None:
    """Write a task as a Harbor folder, which must be new or empty.

    Args:
        task: any task; one that was imported from Harbor becomes the folder that it was.
        folder: where to.
        image: the base of the agent's and the verifier's image; it has to hold python3.

    Raises:
        ManifestError: the task asks for what Harbor can't hold, or something is there already.
    """
    write_files(harbor_files(task, image), folder)


def harbor_files(task: TaskManifest, image: str) -> dict[str, File]:
    """Return the files of a task's Harbor folder: path → file; arguments as `write_harbor`."""
    if any(key.startswith(ORIGINAL) for key in task.outside):
        return _restored(task)
    _refuse_homeless(task)
    workdir = task.brief.environment.workdir
    texts = {
        "task.toml": _config(task),
        INSTRUCTION: _instruction(task),
        "environment/Dockerfile": _dockerfile(task, image),
        "environment/docker-compose.yaml": COMPOSE,
        "tests/Dockerfile": f"FROM {image}\nCOPY . /tests/\nWORKDIR {workdir}\n",
        "tests/docker-compose.yaml": COMPOSE,
        "tests/verify.py": inspect.getsource(harbor_verify),
        "tests/grader.py": grader_source(task.sealed.grader.program),
        "tests/task.json": _grading(task),
    }
    scripts = {"solution/solve.sh": _solve(task), "tests/test.sh": TEST} | _tools(task)
    files = [File(path=path, content=text) for path, text in texts.items()]
    files += [File(path=path, content=text, mode=0o755) for path, text in scripts.items()]
    files += _hidden(task)
    files += [_at("environment/files", file) for file in task.brief.environment.files]
    files += [_at(NATIVE, file) for file in manifest_files(task).values()]
    exported = {file.path: file for file in files}
    return exported | {SUMS: File(path=SUMS, content=sums(exported))}


def _restored(task: TaskManifest) -> dict[str, File]:
    """Return the folder that a task was imported from, with what was changed since."""
    places = {
        "environment": {file.path: file for file in task.brief.environment.files},
        "expected": {file.path: file for file in task.sealed.grader.expected},
    }
    files = {_at(TESTS, file).path: _at(TESTS, file) for file in task.sealed.grader.expected}
    for key, text in task.outside.items():
        path = key.removeprefix(ORIGINAL)
        entry = cast(dict[str, str], read_json(text, key)) if path != key else {}
        if entry.get("in") == "goal":
            source = File(path=path, content=entry["before"] + task.brief.goal)
        elif "in" in entry:
            found = places[entry["in"]].get(entry["path"])
            if found is None:
                raise FormatError(path, "", f"{entry['path']} is no longer part of the task")
            source = found
        elif entry:
            source = File.model_validate({"path": path, **entry})
        else:
            continue
        files[path] = source.model_copy(update={"path": path, "mode": int(entry["mode"])})
    return files


def _refuse_homeless(task: TaskManifest) -> None:
    host = [tool.name for tool in task.brief.tools if tool.home is ToolHome.HOST]
    if host:
        raise ManifestError(f"{task.version_id}: brief.tools: Harbor has no place for {host}")
    if task.sealed.grader.instrument:
        raise ManifestError(f"{task.version_id}: sealed.grader.instrument: needs a model")
    if "modes" in task.sealed.grader.checks:
        reason = "Harbor changes the modes of artifacts on their way to a separate verifier"
        raise ManifestError(f"{task.version_id}: sealed.grader.checks: modes: {reason}")
    if not re.fullmatch(r"[\w./-]+", task.brief.environment.workdir):
        raise ManifestError(f"{task.version_id}: environment.workdir: no plain path")
    if task.brief.environment.egress:
        raise ManifestError(f"{task.version_id}: environment.egress: exported without network")


def _at(folder: str, file: File) -> File:
    return file.model_copy(update={"path": f"{folder.rstrip('/')}/{file.path}"})


def _programs(task: TaskManifest) -> list[ToolSpec]:
    return [tool for tool in task.brief.tools if tool.home is ToolHome.SANDBOX]


def _tools(task: TaskManifest) -> dict[str, str]:
    """Return the tool programs and a starter for each tool."""
    files = {}
    for tool in _programs(task):
        files[f"environment/programs/{tool.program}.py"] = program_source(tool.program)
        program = f"{PROGRAMS}/{tool.program}.py"
        files[f"environment/bin/{tool.name}"] = START_TOOL.format(program=program, name=tool.name)
    return files


def _dockerfile(task: TaskManifest, image: str) -> str:
    environment = task.brief.environment
    lines = [f"FROM {image}", f"WORKDIR {environment.workdir}"]
    # Last in the path: some tools have names that the system's programs have too.
    lines += [f"COPY programs/ {PROGRAMS}/", f"COPY bin/ {TOOLS}/", f"ENV PATH=$PATH:{TOOLS}"]
    lines = lines if _programs(task) else lines[:2]
    lines += [f"COPY files/ {environment.workdir}/"] if environment.files else []
    lines += [f"RUN mkdir -p -m 1777 {shlex.quote(folder)}" for folder in environment.folders]
    variables = environment.variables.items()
    lines += [f"ENV {name}={_quoted(text).replace('$', chr(92) + '$')}" for name, text in variables]
    return "\n".join(lines) + "\n"


def _instruction(task: TaskManifest) -> str:
    brief = task.brief
    left = [artifact for artifact in brief.artifacts if artifact != "./"]
    kept = set(task.sealed.grader.protected)
    parts = [brief.goal, f"Work in `{brief.environment.workdir}`."]
    if made := [f"`{artifact}`" for artifact in left if artifact not in kept]:
        parts.append(f"Leave your result there as {', '.join(made)}.")
    if tools := _programs(task):
        parts.append("Tools, which keep their state in that folder:")
        parts.append("\n".join(_usage(tool) for tool in tools))
    return "\n\n".join(parts) + "\n"


def _usage(tool: ToolSpec) -> str:
    options = (
        f"--{item.name}={'|'.join(item.choices) or item.name.upper()}" for item in tool.parameters
    )
    return f"- `{' '.join([f'{TOOLS}/{tool.name}', *options])}`: {tool.description}"


def _solve(task: TaskManifest) -> str:
    specs = {tool.name: tool for tool in task.brief.tools}
    lines = ["#!/bin/bash", f"cd {shlex.quote(task.brief.environment.workdir)}"]
    for call in task.sealed.reference:
        program, *words = command(specs[call.tool], call)
        in_sandbox = specs[call.tool].home is ToolHome.SANDBOX
        lines.append(
            shlex.join([f"{TOOLS}/{words[0]}", *words[1:]] if in_sandbox else [program, *words])
        )
    return "\n".join(lines) + "\n"


def _hidden(task: TaskManifest) -> list[File]:
    """Return what the grader compares with, and what the exercises bring."""
    grader, inputs = task.sealed.grader, task.brief.environment.files
    protected = [file for file in inputs if file.path in grader.protected]
    hidden = [_at("tests/expected/output", file) for file in grader.expected]
    hidden += [_at("tests/expected/inputs", file) for file in protected]
    for exercise in grader.exercises:
        hidden += [_at(f"tests/exercises/{exercise.name}", file) for file in exercise.files]
    return hidden


def _grading(task: TaskManifest) -> str:
    grader = task.sealed.grader
    return json.dumps(
        {
            "workdir": task.brief.environment.workdir,
            "artifacts": task.brief.artifacts,
            "checks": grader.checks,
            "seconds": grader.seconds,
            "absolute": grader.program in ABSOLUTE,
            "exercises": [{"name": each.name, "argv": each.argv} for each in grader.exercises],
        },
        indent=1,
    )


def _config(task: TaskManifest) -> str:
    """Return `task.toml`, schema 1.4."""
    workdir, grader = task.brief.environment.workdir, task.sealed.grader
    artifacts = [
        str(Path(workdir, artifact)) + ("/" if is_folder(artifact) and artifact != "./" else "")
        for artifact in task.brief.artifacts
    ]
    exercised = 1 + len(grader.exercises)
    return "\n".join(
        [
            'schema_version = "1.4"',
            f"artifacts = [{', '.join(map(_quoted, artifacts))}]",
            f"\n[task]\nname = {_quoted(f'flywheel/{task.version_id}')}",
            f"\n[metadata]\nlicense = {_quoted(task.source.licence)}",
            f"family = {_quoted(task.family)}\nrules = [{', '.join(map(_quoted, task.rules))}]",
            f"\n[agent]\ntimeout_sec = {task.brief.budget.seconds}",
            f"\n[verifier]\ntimeout_sec = {grader.seconds * exercised + 30}",
            'environment_mode = "separate"',
            "\n[environment]\n# docker-compose.yaml takes the network away.",
            'network_mode = "public"\n',
        ]
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
