"""Reads what somebody else wrote: a task folder or an archive, as a bounded set of files.

Nothing is unpacked to disk and nothing is executed. What is not a plain file below the folder, or
goes over a bound, is refused by name; a folder is read whole or not at all.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from flywheel.errors import ManifestError
from flywheel.formats.archives import is_archive, read_archive
from flywheel.formats.collection import BOUNDS, Bounds, Collection, Files, FormatError, shown
from schemas.file import File


def read_files(path: Path, bounds: Bounds = BOUNDS) -> dict[str, File]:
    """Return the files of a task folder, or of a .zip, .tar, .tar.gz or .tgz archive of one.

    Raises:
        FormatError: a link, device, path, name or size that is refused; a broken archive.
    """
    collection = Collection(shown(path.name), bounds)
    with reported(collection.source):
        if is_archive(path.name):
            return read_archive(path, collection)
        for entry, name in _walk(path, collection):
            _read_entry(entry, name, collection)
    return collection.files


def read_file(path: Path, bounds: Bounds = BOUNDS) -> File:
    """Return one file that stands alone, under its own name.

    Raises:
        FormatError: no regular file, or too large.
    """
    collection = Collection(shown(path.name), bounds)
    with reported(collection.source):
        _read_entry(path, collection.name(path.name), collection)
    (file,) = collection.files.values()
    return file


def _walk(folder: Path, collection: Collection) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield what is no folder, with its path, in order of paths."""
    waiting = [(folder, "")]
    while waiting:
        here, prefix = waiting.pop()
        with os.scandir(here) as entries:
            found = []
            for entry in entries:
                collection.count()
                found.append(entry)
        for entry in sorted(found, key=lambda entry: entry.name):
            name = collection.name(prefix + entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append((Path(entry.path), f"{name}/"))
            else:
                yield entry, name


def _read_entry(entry: os.DirEntry[str] | Path, name: str, collection: Collection) -> None:
    """Open without following a link or waiting for a pipe, then look at what was opened."""
    if entry.is_symlink():
        raise collection.refusal(name, "a symbolic link: put the file itself there")
    descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise collection.refusal(name, "not a regular file: remove it")
        collection.add(name, info.st_mode, info.st_size, stream.read)


@contextmanager
def reported(path: str, field: str = "") -> Iterator[None]:
    """Turn what the system or a record says about `path` into a FormatError."""
    try:
        yield
    except OSError as problem:
        raise FormatError(path, field, f"can't be read: {problem.strerror}") from None
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FormatError(path, f"{field}.{where}".strip("."), first["msg"]) from None


def write_files(files: Files, folder: Path) -> None:
    """Write `files` below `folder`, which must be new or empty, with their modes.

    Raises:
        ManifestError: something is there already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ManifestError(f"{folder}: not empty; name a new folder")
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data())
        target.chmod(file.mode)
