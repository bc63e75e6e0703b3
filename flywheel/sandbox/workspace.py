"""The files of a workspace, from inside a sandbox: written and read without following a link."""

import errno
import os
import stat

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Refused(Exception):
    """What is at a path is not taken out; the message says why."""


def open_folder(parts: list[str], create: bool = False) -> int:
    """Return a descriptor of a folder, given as `parts_of` does, following no symbolic link."""
    here = os.open(parts[0], FOLDER)
    for part in parts[1:]:
        above = here
        try:
            if create and not _exists(part, above):
                os.mkdir(part, 0o755, dir_fd=above)
            here = os.open(part, FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return here


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def parts_of(path: str) -> list[str]:
    """Return where a path starts (the workspace is `.`, the worker's own folder) and what follows.

    The host has refused `..`, and absolute paths but to writable folders, before sending it.
    """
    start = "/" if path.startswith("/") else "."
    return [start, *(part for part in path.split("/") if part not in ("", "."))]


def _write(parts: list[str], data: bytes, mode: int) -> None:
    folder = open_folder(parts[:-1], create=True)
    try:
        if _exists(parts[-1], folder):
            os.unlink(parts[-1], dir_fd=folder)
        file = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        try:
            os.fchmod(file, mode)  # not as an argument of open, which masks it
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)
    finally:
        os.close(folder)


def put(folder: str, files: "Iterable[tuple[str, int, bytes]]", read_only: bool) -> None:
    """Write `files` below `folder`, replacing what is there; raise OSError where that fails.

    `files` are path, mode and bytes. Read-only seals them (0444) and the folders that hold them
    (0555), `folder` the topmost; the workspace and the further folders themselves stay open.
    """
    base = parts_of(folder)
    os.close(open_folder(base, create=True))
    sealed = {tuple(base)}
    for path, mode, data in files:
        parts = base + parts_of(path)[1:]
        _write(parts, data, 0o444 if read_only else mode)
        sealed.update(tuple(parts[:depth]) for depth in range(len(base), len(parts)))
    if read_only:
        for parent in sealed:
            if not os.path.ismount("/".join(parent)):
                opened = open_folder(list(parent))
                os.fchmod(opened, 0o555)
                os.close(opened)


def get(path: str, limit: int) -> bytes:
    """Return a regular file that has one name and at most `limit` bytes; else raise Refused."""
    *parents, name = parts_of(path)
    try:
        folder = open_folder(parents or ["."])
    except OSError as problem:
        raise Refused(str(problem.strerror)) from None
    try:
        return take(name, folder, limit)
    finally:
        os.close(folder)


def take(name: str, folder: int, limit: int) -> bytes:
    """Return the regular file `name` of an open folder, as `get` does."""
    try:
        # Non-blocking: opening a FIFO must not wait for someone to write into it.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as problem:
        link = problem.errno == errno.ELOOP
        raise Refused("a symbolic link" if link else str(problem.strerror)) from None
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise Refused("not a regular file")
        if info.st_nlink != 1:
            raise Refused(f"a hard link: the file has {info.st_nlink} names")
        if info.st_size > limit:
            raise Refused(f"too large: {info.st_size} bytes, at most {limit} are taken")
        data = bytearray()
        while chunk := os.read(file, 1 << 20):
            data += chunk
        return bytes(data)
    finally:
        os.close(file)
