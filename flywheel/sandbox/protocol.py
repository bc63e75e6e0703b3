"""The host's side of a sandbox: frames over a pair of byte streams, whatever carries them.

What a worker says is not trusted: a reply that is too long or makes no sense ends the sandbox.
"""

import contextlib
import errno
import io
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import TracebackType

from flywheel.errors import SandboxError
from flywheel.sandbox import ArtifactRefused, ExecResult, SandboxSpec, Tree
from flywheel.sandbox.frames import pack, unpack
from schemas.attempt import InfraStage
from schemas.file import MAX_FILE_BYTES, File

MEGABYTE = 1024 * 1024
REPLY_OVERHEAD = 64 * 1024
"""Bytes that a reply may have beyond the output or the artifacts that it carries."""
ENTRY_OVERHEAD = 2048
"""Bytes that an entry of a tree may have beyond its content: path, mode, reason."""
SHOWN = 255
"""Characters of a refused path, or of the reason, that are passed on."""


@dataclass(frozen=True, slots=True)
class Death:
    """What a backend found out about a sandbox that no longer answers."""

    evidence: str
    out_of_memory: bool = False


class Deadline:
    """Ends a sandbox after `seconds`, from a thread of its own, whatever everyone else does."""

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self.expired = False
        self._end = end
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        self._end()


class WorkerSandbox:
    """A `Sandbox` that is a worker at the other end of two streams.

    `replies` is the stream from it, `send` puts all of its argument on the stream to it. `examine`
    is asked for the reason when the worker is lost.
    """

    def __init__(
        self,
        replies: io.BufferedIOBase,
        send: Callable[[bytes], object],
        spec: SandboxSpec,
        deadline: Deadline,
        examine: Callable[[], Death],
    ) -> None:
        self._replies, self._send = replies, send
        self._spec, self._deadline, self._examine = spec, deadline, examine
        limits = spec.limits
        entries = limits.tree_files * ENTRY_OVERHEAD
        self._longest = limits.output_bytes + limits.artifact_bytes + entries + REPLY_OVERHEAD

    def start(self, processes: int) -> None:
        """Load the programs; `processes` is the limit for the worker to set, 0 for none."""
        limits = self._spec.limits
        numbers = (
            limits.memory_mb * MEGABYTE,
            processes,
            (limits.workspace_mb + 1) * MEGABYTE,
            limits.output_bytes,
            limits.artifact_bytes,
            min(limits.artifact_bytes, MAX_FILE_BYTES),
            limits.tree_files,
        )
        programs = [word.encode() for item in self._spec.programs.items() for word in item]
        status, *reply = self._exchange(
            InfraStage.BOOT, b"start", " ".join(map(str, numbers)).encode(), *programs
        )
        if status != b"ok":
            evidence = reply[-1].decode(errors="replace") if reply else "no reason given"
            raise SandboxError(InfraStage.BOOT, "program-broken", evidence, retryable=False)

    def put(self, files: Iterable[File], folder: str = ".", *, read_only: bool = False) -> None:
        """Write files with their modes below `folder` in the workspace or a further folder.

        Read-only gives them mode 0444. It holds against accidents, not against a program that
        wants to write: it runs as the files' owner and can change their mode. A sealed folder
        takes no further files.
        """
        seal, words = b"1" if read_only else b"0", []
        for file in files:
            words += [_inside(file.path), str(file.mode).encode(), file.data()]
        status, *reply = self._exchange(InfraStage.TOOL, b"put", self._inside(folder), seal, *words)
        if status != b"ok":
            raise self._put_failed(reply)

    def call(self, argv: Sequence[str], timeout: float, folder: str = ".") -> ExecResult:
        """Run a program by name (or an absolute path) in `folder` for at most `timeout` seconds.

        Afterwards no process that it started is left. 127: there is no such program.
        """
        words = [word.encode("utf-8", "surrogatepass") for word in argv]
        reply = self._exchange(
            InfraStage.TOOL, b"call", repr(float(timeout)).encode(), self._inside(folder), *words
        )
        try:
            status, code, dropped, seconds, timed_out, output = reply
            if status != b"ok":
                raise ValueError(f"status {status!r}")
            return ExecResult(int(code), output, int(dropped), float(seconds), bool(int(timed_out)))
        except ValueError as problem:
            raise self._lost(
                InfraStage.TOOL, f"the reply to a call makes no sense: {problem}"
            ) from problem

    def get(self, path: str) -> bytes:
        """Return a regular file of the workspace; raise ArtifactRefused where it is none."""
        reply = self._take(b"get", path)
        if len(reply) != 1:
            raise self._lost(InfraStage.TOOL, "the reply to a get makes no sense")
        return reply[0]

    def tree(self, folder: str) -> Tree:
        """Return all that stands below a folder; raise ArtifactRefused where it is none.

        A link is never followed. A file or folder that its owner can't read is read nevertheless.
        Levels are taken from the top down: beyond the limits it is the deep end that is refused.
        """
        count, *reply = self._take(b"tree", folder)
        try:
            end = 3 * int(count)
            taken = zip(reply[:end:3], map(int, reply[1:end:3]), reply[2:end:3], strict=True)
            refused = list(zip(reply[end::2], reply[end + 1 :: 2], strict=True))
            return _checked(list(taken), refused)
        except ValueError as problem:
            what = f"the reply to a tree makes no sense: {problem}"
            raise self._lost(InfraStage.TOOL, what) from problem

    def _take(self, operation: bytes, path: str) -> list[bytes]:
        try:
            wanted = self._inside(path)
        except SandboxError as problem:
            raise ArtifactRefused(problem.status.evidence) from None
        match self._exchange(InfraStage.TOOL, operation, wanted):
            case [b"ok", *fields] if fields:
                return fields
            case [b"refused", reason]:
                raise ArtifactRefused(f"{path}: {_shown(reason)}")
            case reply:
                what = f"the reply to a {operation.decode()} makes no sense: {reply[:2]!r}"
                raise self._lost(InfraStage.TOOL, what)

    def _inside(self, path: str) -> bytes:
        """Return `path` for the wire: below the workspace, or absolute in a further folder."""
        home = next(filter(PurePosixPath(path).is_relative_to, self._spec.folders), None)
        if home is None:
            return _inside(path)
        return b"/".join((home.encode(), _inside(str(PurePosixPath(path).relative_to(home)))))

    def _exchange(self, stage: InfraStage, *fields: bytes) -> list[bytes]:
        try:
            self._send(pack(*fields))
            (size,) = struct.unpack(">I", self._read(4))
            if size > self._longest:
                raise ValueError(f"a reply of {size} bytes")
            return unpack(self._read(size)) or [b""]
        except (OSError, EOFError, ValueError) as problem:
            raise self._lost(stage, str(problem)) from problem

    def _read(self, size: int) -> bytes:
        data = self._replies.read(size)
        if len(data) < size:
            raise EOFError("the stream ended")
        return data

    def _lost(self, stage: InfraStage, what: str) -> SandboxError:
        if self._deadline.expired:
            evidence = f"killed {self._spec.deadline} s after its start"
            return SandboxError(InfraStage.DEADLINE, "deadline", evidence, retryable=False)
        death = self._examine()
        evidence = f"{what}; {death.evidence}"
        if death.out_of_memory:
            return SandboxError(InfraStage.MEMORY, "out-of-memory", evidence)
        code = "boot-failed" if stage is InfraStage.BOOT else "worker-lost"
        return SandboxError(stage, code, evidence)

    def _put_failed(self, reply: list[bytes]) -> SandboxError:
        number, reason = [*reply, b"", b""][:2]
        full = number == str(errno.ENOSPC).encode()
        stage, code = (
            (InfraStage.DISK, "workspace-full") if full else (InfraStage.TOOL, "put-failed")
        )
        return SandboxError(stage, code, reason.decode(errors="replace"), retryable=False)


def _inside(path: str) -> bytes:
    """Return `path` for the wire; raise SandboxError unless it stays below the workspace."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise SandboxError(
            InfraStage.TOOL, "path-refused", f"{path!r} leaves the workspace", retryable=False
        )
    with contextlib.suppress(UnicodeEncodeError):
        return path.encode()
    raise SandboxError(InfraStage.TOOL, "path-refused", f"{path!r} is no text", retryable=False)


def _checked(taken: list[tuple[bytes, int, bytes]], refused: list[tuple[bytes, bytes]]) -> Tree:
    """Return a tree of what is a file by our own rules too.

    Another Python inside may know more printable characters: that must not look like a fault.
    """
    files = []
    for path, mode, data in taken:
        try:
            files.append(File.of(path.decode(), data, mode))
        except ValueError:
            refused.append((path, b"not a file with a printable path"))
    lines = [f"{_shown(path)}: {_shown(reason)}" for path, reason in refused]
    return Tree(tuple(sorted(files, key=lambda file: file.path)), tuple(sorted(lines)))


def _shown(text: bytes) -> str:
    """Return what a worker said as one short printable line."""
    words = text.decode("utf-8", "surrogateescape")
    return (words if words.isprintable() else ascii(words)[1:-1])[:SHOWN]
