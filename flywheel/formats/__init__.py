"""The outside world's formats. Here: reading a folder of tasks, each in whatever format it has.

Whatever can't be read is listed with its reason; one broken task never hides the others.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flywheel.errors import ManifestError
from flywheel.formats.archives import is_archive
from flywheel.formats.collection import FormatError, shown
from flywheel.formats.harbor import KNOWN_BASES, harbor_of, is_harbor
from flywheel.formats.harbor_config import CONFIG
from flywheel.formats.manifest import is_manifest, manifest_of, read_manifest
from flywheel.formats.reading import read_files
from flywheel.formats.swebench import read_task_repo, recognise_swebench
from schemas.task import TaskManifest

MAX_TASKS = 100_000
Bases = Mapping[str, str | None]
Read = Callable[[Path, Bases], Iterator[TaskManifest | ManifestError]]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that could not be read as a task."""

    path: str
    """Below the folder that was read, printable."""
    field: str
    """Empty where no single field is to blame."""
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What a folder held: every entry of it is in one of the two."""

    tasks: tuple[TaskManifest, ...]
    refused: tuple[Refused, ...]
    places: tuple[str, ...] = ()
    """Where each of the tasks stood below the folder, printable; empty: nowhere."""


def _native(path: Path, bases: Bases) -> Iterator[TaskManifest | ManifestError]:
    yield read_manifest(path)


def _harbor(path: Path, bases: Bases) -> Iterator[TaskManifest | ManifestError]:
    yield harbor_of(read_files(path), shown(path.name, 128), bases)


def _swebench(path: Path, bases: Bases) -> Iterator[TaskManifest | ManifestError]:
    yield from read_task_repo(path)


def _archive(path: Path, bases: Bases) -> Iterator[TaskManifest | ManifestError]:
    files = read_files(path)
    yield harbor_of(files, shown(path.name, 128), bases) if CONFIG in files else manifest_of(files)


FORMATS: tuple[tuple[Callable[[Path], bool], Read], ...] = (
    (is_harbor, _harbor),
    (recognise_swebench, _swebench),
    (is_manifest, _native),
    (lambda path: path.is_file() and is_archive(path.name), _archive),
)
"""Ways to recognise a format and to read it, tried in this order."""


def read_folder(folder: Path, bases: Bases = KNOWN_BASES) -> Imported:
    """Read a task, or a folder of tasks of any known formats.

    Args:
        folder: one task, or a folder whose entries are tasks, archives or manifest files.
        bases: for Harbor tasks, base image → the image that stands in for it.

    Returns:
        The tasks, and what could not be read. The same task twice, or two tasks of one name, is
        refused the second time.
    """
    tasks: list[TaskManifest] = []
    places: list[str] = []
    refused: list[Refused] = []
    seen: dict[str, str] = {}
    try:
        entries = [folder] if _reader(folder) else sorted(folder.iterdir())[: MAX_TASKS + 1]
    except OSError as problem:
        return Imported((), (Refused(shown(folder.name), "", str(problem.strerror)),))
    if len(entries) > MAX_TASKS:
        return Imported((), (Refused(shown(folder.name), "", f"more than {MAX_TASKS} entries"),))
    for entry in entries:
        for found in _read(entry, bases):
            kept = found if isinstance(found, ManifestError) else _once(found, entry, seen)
            if isinstance(kept, TaskManifest):
                tasks.append(kept)
                places.append(shown(entry.name))
            else:
                refused.append(_refusal(entry, kept))
    return Imported(tuple(tasks), tuple(refused), tuple(places))


def _read(path: Path, bases: Bases) -> Iterator[TaskManifest | ManifestError]:
    """Yield what one entry holds; an entry that holds no task yields the reason."""
    try:
        reader = None if path.is_symlink() else _reader(path)
        if reader is None:
            yield FormatError("", "", "no task of a known format: remove it, or see the formats")
            return
        yield from reader(path, bases)
    except ManifestError as problem:
        yield problem
    except OSError as problem:
        yield FormatError("", "", f"can't be read: {problem.strerror}")


def _reader(path: Path) -> Read | None:
    return next((read for recognised, read in FORMATS if recognised(path)), None)


def _once(task: TaskManifest, path: Path, seen: dict[str, str]) -> TaskManifest | FormatError:
    """Return a task and remember it, or why it can't be taken: it was there before."""
    keys = {"version_id": task.version_id}
    if task.family == "harbor":
        keys["task.name"] = task.source.uri
    for field, key in keys.items():
        if key in seen:
            return FormatError("", field, f"the same as that of {seen[key]}: rename or remove one")
    seen |= dict.fromkeys(keys.values(), shown(path.name))
    return task


def _refusal(entry: Path, problem: ManifestError) -> Refused:
    if isinstance(problem, FormatError):
        inside = "" if problem.path in ("", shown(entry.name)) else f"/{problem.path}"
        return Refused(f"{shown(entry.name)}{inside}", problem.field, problem.reason)
    return Refused(shown(entry.name), "", shown(str(problem)))
