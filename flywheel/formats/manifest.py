"""The flywheel's own task folder, and whole manifests in one YAML or JSON file.

    task.yaml            what an agent may see (files by name), features, source, …
    environment/         the files that the agent finds
    sealed/*.yaml        grader, reference, alternatives, mutants, requirements, user
    sealed/expected/     what the grader compares with

Writing and reading back gives the same manifest to the byte. A file that no folder can hold as it
is (two spellings of one path, base64 that is text) stays in the YAML.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

import yaml

from flywheel.formats.collection import BOUNDS, Files, FormatError, shown
from flywheel.formats.documents import Value, read_json, read_yaml, text_at, text_of
from flywheel.formats.reading import read_file, read_files, reported, write_files
from flywheel.graders import GRADERS, grader_version
from schemas.file import FILE_MODE, File, is_folder
from schemas.task import Sealed, TaskManifest

TASK, SEALED, ENVIRONMENT, EXPECTED = "task.yaml", "sealed", "environment", "sealed/expected"
IDENTITIES = ("task_id", "version_id", "prompt_hash")
Document = dict[str, Value]


def write_manifest(task: TaskManifest, folder: Path) -> None:
    """Write a task as a native folder, which must be new or empty.

    Raises:
        ManifestError: something is there already.
    """
    write_files(manifest_files(task), folder)


def read_manifest(path: Path) -> TaskManifest:
    """Read a native folder or archive, or one .yaml, .yml or .json file with a whole manifest.

    Raises:
        FormatError: it can't be read; the message names the file, the field and the fix.
    """
    if path.suffix in (".yaml", ".yml", ".json"):
        return _validated(_mapping(read_file(path)), path.name)
    return manifest_of(read_files(path))


def is_manifest(path: Path) -> bool:
    """Tell whether `path` looks like a native folder or a manifest in one file."""
    if path.is_dir():
        return (path / TASK).is_file() and (path / SEALED).is_dir()
    return path.suffix in (".yaml", ".yml", ".json")


def task_schema() -> str:
    """Return the JSON Schema of a manifest, as `schemas/task.schema.json` holds it."""
    return json.dumps(TaskManifest.model_json_schema(), indent=1, sort_keys=True) + "\n"


def manifest_files(task: TaskManifest) -> dict[str, File]:
    """Return the files of a task's native folder: path → file."""
    document = cast(Document, task.model_dump(mode="json", exclude=set(IDENTITIES)))
    sealed = _inner(document, SEALED)
    files: dict[str, File] = {}
    environment = task.brief.environment.files
    _inner(document, "brief", "environment")["files"] = _put(environment, ENVIRONMENT, files)
    _inner(sealed, "grader")["expected"] = _put(task.sealed.grader.expected, EXPECTED, files)
    del document[SEALED]
    parts = {TASK: document} | {f"{SEALED}/{name}.yaml": part for name, part in sealed.items()}
    written = {path: File(path=path, content=_yaml(part)) for path, part in parts.items() if part}
    return written | files


def manifest_of(files: Files) -> TaskManifest:
    """Return the task of a native folder's files.

    Raises:
        FormatError: a file is absent or not listed, or a field is wrong.
    """
    document = _mapping(files.get(TASK) or File(path=TASK, content=text_at(files, TASK)))
    parts = {name: f"{SEALED}/{name}.yaml" for name in Sealed.model_fields}
    sealed = {
        name: read_yaml(text_of(files[path]), path) for name, path in parts.items() if path in files
    }
    used = {TASK, *parts.values()}
    used |= _take(_inner(document, "brief", "environment"), "files", ENVIRONMENT, files)
    used |= _take(_inner(sealed, "grader"), "expected", EXPECTED, files)
    for path in sorted(files.keys() - used):
        raise FormatError(path, "", "not listed in the manifest: list it, or remove it")
    return _validated(document | {SEALED: sealed}, TASK)


def _put(files: Sequence[File], folder: str, into: dict[str, File]) -> list[Value]:
    """Add `files` to the folder's; return the list that names them, in their order."""
    listed: list[Value] = []
    for file in files:
        path = f"{folder}/{file.path}"
        if _fits(file, path, into):
            into[path] = File.of(path, file.data(), file.mode | 0o600)
            entry: Document = {"path": file.path}
            listed.append(entry | ({"mode": file.mode} if file.mode != FILE_MODE else {}))
        else:
            listed.append(cast(Value, file.model_dump(mode="json")))
    return listed


def _fits(file: File, path: str, taken: Mapping[str, File]) -> bool:
    """Tell whether a file of this name and content can stand in the folder and be found again."""
    pure = PurePosixPath(path)
    above = {str(parent) for parent in pure.parents}
    short = len(path) <= 255 and all(len(part.encode()) <= 255 for part in pure.parts)
    if str(pure) != path or not short or len(pure.parts) > BOUNDS.depth:
        return False
    if path in taken or above & taken.keys() or any(t.startswith(f"{path}/") for t in taken):
        return False
    try:
        return File.of(file.path, file.data(), file.mode) == file
    except ValueError:  # base64 that is none
        return False


def _take(part: Document, field: str, folder: str, files: Files) -> set[str]:
    """Put the content of the listed files back into `part`; return which were used."""
    entries = part.get(field, [])
    used: set[str] = set()
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and "content" not in entry:
            path = f"{folder}/{entry.get('path')}"
            file = files.get(path)
            if file is None:
                raise FormatError(path, "", "listed in the manifest but absent: add it")
            entry |= {"content": file.content, "encoding": file.encoding}
            used.add(path)
    return used


def _inner(document: Mapping[str, Value], *names: str) -> Document:
    """Return a part of a document; empty where the document is something else."""
    part: Value = cast(Value, document)
    for name in names:
        part = part.get(name) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}


def _mapping(file: File) -> Document:
    read = read_json if file.path.endswith(".json") else read_yaml
    value = read(text_of(file), file.path)
    if not isinstance(value, dict):
        raise FormatError(file.path, "", "not a mapping of fields: see schemas/task.schema.json")
    return value


def _validated(document: Document, path: str) -> TaskManifest:
    """Build the manifest; identities that the document states must be its own."""
    stated = {name: document.pop(name) for name in IDENTITIES if name in document}
    with reported(path):
        task = TaskManifest.model_validate_json(json.dumps(document))
    for name, value in stated.items():
        if value != getattr(task, name):
            text = f"is {getattr(task, name)}, not {shown(str(value))}: correct or remove it"
            raise FormatError(path, name, text)
    _check_grader(task, path)
    return task


def _check_grader(task: TaskManifest, path: str) -> None:
    """Refuse a grader that can't judge here, or that can't see what it is to protect."""
    grader, field = task.sealed.grader, "sealed.grader"
    if grader.program not in GRADERS:
        known = ", ".join(GRADERS)
        text = f"no grader program {shown(grader.program)!r}; there are {known}"
        raise FormatError(path, f"{field}.program", text)
    if grader.version != (today := grader_version(grader.program)):
        text = (
            f"is {shown(grader.version)}, made for another version of the grader (here {today}): "
            "screen it with that one or regenerate"
        )
        raise FormatError(path, f"{field}.version", text)
    there = {file.path for file in task.brief.environment.files}
    for protected in grader.protected:
        if protected not in there:
            text = f"{shown(protected)!r} is no file of the environment: correct or remove it"
            raise FormatError(path, f"{field}.protected", text)
        if not any(_holds(artifact, protected) for artifact in task.brief.artifacts):
            text = f"{shown(protected)!r} is not among brief.artifacts: add it, or it is not seen"
            raise FormatError(path, f"{field}.protected", text)


def _holds(artifact: str, path: str) -> bool:
    below = is_folder(artifact) and path.startswith(artifact)
    return below or artifact in ("./", path)


def _yaml(value: Value) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as blocks; nothing is abbreviated by an alias."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Choose a block for lines, and quotes where anything else could read back changed."""
        lines = data.split("\n")
        style = None if data.isprintable() else '"'
        if len(lines) > 1 and all(line.isprintable() and line == line.rstrip() for line in lines):
            style = "|"
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
