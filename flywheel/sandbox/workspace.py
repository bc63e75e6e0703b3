"""The files of a workspace, from inside a sandbox: written and read without following a link."""

import errno
import os
import stat

WORKSPACE = "/workspace"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Refused(Exception):
    """What is at a path is not taken out; the message says why."""


def open_folder(parts: list[str], create: bool = False) -> int:
    """Return a descriptor of a folder of the workspace, following no symbolic link."""
    here = os.open(WORKSPACE, FOLDER)
    for part in parts:
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
    """Return the components of a relative path; the host has refused `..` before sending it."""
    return [part for part in path.split("/") if part not in ("", ".")]


def _write(parts: list[str], data: bytes, mode: int) -> None:
    folder = open_folder(parts[:-1], create=True)
    try:
        if _exists(parts[-1], folder):
            os.unlink(parts[-1], dir_fd=folder)
        file = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)
    finally:
        os.close(folder)


def put(folder: str, files: list[tuple[str, bytes]], read_only: bool) -> None:
    """Write `files` below `folder`, replacing what is there; raise OSError where that fails.

    Read-only seals the files (0444) and the folders that hold them (0555), `folder` the topmost
    and the workspace's own folder excepted.
    """
    base = parts_of(folder)
    os.close(open_folder(base, create=True))
    sealed = {tuple(base)}
    for path, data in files:
        parts = base + parts_of(path)
        _write(parts, data, 0o444 if read_only else 0o644)
        sealed.update(tuple(parts[:depth]) for depth in range(len(base), len(parts)))
    if read_only:
        for parent in sealed - {()}:
            opened = open_folder(list(parent))
            os.fchmod(opened, 0o555)
            os.close(opened)


def get(path: str, limit: int) -> bytes:
    """Return a regular file that has one name and at most `limit` bytes; else raise Refused."""
    try:
        file = _open(parts_of(path))
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


def _open(parts: list[str]) -> int:
    folder = open_folder(parts[:-1])
    try:
        # Non-blocking: opening a FIFO must not wait for someone to write into it.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
