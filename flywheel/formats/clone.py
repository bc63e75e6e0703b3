"""Local git clones, read without running anything that they configure.

No hook, filter, pager, external diff or file-system monitor runs, nothing is fetched, and nothing
is checked out: objects are read by git's plumbing, within bounds.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from flywheel.formats.collection import Files, FormatError
from flywheel.formats.reading import read_files, reported
from flywheel.sandbox import Limits
from schemas.file import File

MAX_OUTPUT = 64 * 1024 * 1024
SECONDS = 120.0
ROOM = 2
"""A tree is at most this fraction of what a sandbox brings back: an agent adds files."""
_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "safe.directory=*"),
    *("-c", "protocol.allow=never"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
}
_PLAIN = ("100644", "100755")


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Run git in `folder` and return its output.

    Raises:
        FormatError: git failed, took too long or said too much.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT}
    argv = ["git", *_OPTIONS, *arguments]
    with TemporaryDirectory() as name:
        output = Path(name, "output")
        with output.open("wb") as stream, reported(folder.name):
            try:
                result = subprocess.run(
                    argv,
                    cwd=folder,
                    env={**environment, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
                    input=given,
                    stdout=stream,
                    stderr=subprocess.PIPE,
                    timeout=SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise FormatError(folder.name, "git", f"no end in {SECONDS} seconds") from None
        if result.returncode:
            said = result.stderr.decode(errors="replace").strip()
            raise FormatError(folder.name, f"git {arguments[0]}", said)
        if output.stat().st_size > MAX_OUTPUT:
            raise FormatError(folder.name, "git", f"more than {MAX_OUTPUT} bytes: too large")
        return output.read_bytes()


def tree_at(clone: Path, commit: str) -> dict[str, File]:
    """Return the files of a commit by path.

    Raises:
        FormatError: no such commit; a link or submodule; a name that is refused; more than half
            of what a sandbox brings back.
    """
    limits = Limits()
    entries = list(_entries(clone, commit))
    size = sum(size for *_, size in entries)
    if len(entries) > limits.tree_files // ROOM or size > limits.artifact_bytes // ROOM:
        raise FormatError(
            clone.name,
            f"commit {commit}",
            f"{len(entries)} files, {size} bytes: at most {limits.tree_files // ROOM} and "
            f"{limits.artifact_bytes // ROOM} can be put into a task; use an image",
        )
    contents = _blobs(clone, [blob for _, _, blob, _ in entries])
    with reported(clone.name, f"commit {commit}"):
        return {
            path: File.of(path, data, 0o755 if mode == "100755" else 0o644)
            for (path, mode, _, _), data in zip(entries, contents, strict=True)
        }


def _entries(clone: Path, commit: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield path, mode, blob and size of each file of a commit."""
    listing = git(clone, "ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", commit)
    for line in filter(None, listing.split(b"\0")):
        fields, _, name = line.partition(b"\t")
        mode, _, blob, size = fields.decode().split()
        path = name.decode("utf-8", errors="backslashreplace")
        if mode not in _PLAIN:
            reason = f"{path}: a symbolic link or submodule, which a task can't hold"
            raise FormatError(clone.name, f"commit {commit}", reason)
        yield path, mode, blob, int(size)


def _blobs(clone: Path, names: list[str]) -> Iterator[bytes]:
    """Yield the contents of blobs, in order."""
    data = git(clone, "cat-file", "--batch", given="".join(f"{n}\n" for n in names).encode())
    at = 0
    for _ in names:
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[2])
        yield data[end + 1 : end + 1 + size]
        at = end + size + 2


def apply_patch(files: Mapping[str, File], patch: str) -> Files:
    """Return what a patch makes of `files`; those that it removes are gone.

    Raises:
        FormatError: it does not apply.
    """
    with TemporaryDirectory() as name:
        folder = Path(name, "tree")
        folder.mkdir()
        for path, file in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data())
            target.chmod(file.mode)
        git(folder, "apply", "--whitespace=nowarn", "-", given=patch.encode())
        return read_files(folder)
