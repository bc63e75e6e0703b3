"""The host's side of a sandbox: frames over a pair of byte streams, whatever carries them.

What a worker says is not trusted: a reply that is too long or makes no sense ends the sandbox.
"""

import base64
import contextlib
import errno
import hashlib
import io
import marshal
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType

from flywheel.errors import SandboxError
from flywheel.sandbox import ArtifactRefused, ExecResult, SandboxSpec
from flywheel.sandbox.frames import pack, unpack
from schemas.attempt import InfraStage
from schemas.task import File

MEGABYTE = 1024 * 1024
REPLY_OVERHEAD = 64 * 1024
"""Bytes that a reply may have beyond the output or the artifact that it carries."""
WORKER_FILES = ("frames", "output", "workspace", "program", "worker")
BOOTSTRAP = """\
import sys
from binascii import a2b_base64
from marshal import loads
for name, text in zip(sys.argv[1::2], sys.argv[2::2]):
    module = sys.modules[name] = type(sys)(name)
    exec(LOAD, module.__dict__)
module.main()
"""
FROM_SOURCE = "compile(text, name, 'exec')"
FROM_CODE = "loads(a2b_base64(text))"


def worker_command(python: str, *, compiled: bool = False) -> list[str]:
    """Return the command that runs the worker under the interpreter `python` of a sandbox.

    The worker travels as arguments, so that nothing has to be mounted; `compiled` saves a fifth
    of a start, for an interpreter that is the very one that runs this. Not `-I`: it would ignore
    PYTHONHASHSEED; the rest of what it does comes from an environment that has nothing else.
    """
    bootstrap = BOOTSTRAP.replace("LOAD", FROM_CODE if compiled else FROM_SOURCE)
    command = [python, "-s", "-S", "-c", bootstrap]
    for name in WORKER_FILES:
        module = f"flywheel.sandbox.{name}"
        text = Path(__file__).with_name(f"{name}.py").read_text("utf-8")
        if compiled:
            text = base64.b64encode(marshal.dumps(compile(text, module, "exec"))).decode()
        command += [module, text]
    return command


def worker_digest() -> str:
    """Return the SHA-256 of the worker's command, in hexadecimal."""
    return hashlib.sha256("\0".join(worker_command("")).encode()).hexdigest()


ENVIRONMENT = {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
"""What every process in a sandbox sees, apart from PATH."""


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
        self._longest = spec.limits.output_bytes + spec.limits.artifact_bytes + REPLY_OVERHEAD

    def start(self, processes: int) -> None:
        """Load the programs; `processes` is the limit for the worker to set, 0 for none."""
        limits = self._spec.limits
        numbers = (
            limits.memory_mb * MEGABYTE,
            processes,
            (limits.workspace_mb + 1) * MEGABYTE,
            limits.output_bytes,
            limits.artifact_bytes,
        )
        programs = [word.encode() for item in self._spec.programs.items() for word in item]
        status, *reply = self._exchange(
            InfraStage.BOOT, b"start", " ".join(map(str, numbers)).encode(), *programs
        )
        if status != b"ok":
            evidence = reply[-1].decode(errors="replace") if reply else "no reason given"
            raise SandboxError(InfraStage.BOOT, "program-broken", evidence, retryable=False)

    def put(self, files: Iterable[File], folder: str = ".", *, read_only: bool = False) -> None:
        """Write files below `folder` in the workspace.

        Read-only holds against accidents, not against a program that wants to write: it runs as
        the files' owner and can change their mode. A sealed folder takes no further files.
        """
        words = [word for file in files for word in (_inside(file.path), file.data())]
        status, *reply = self._exchange(
            InfraStage.TOOL, b"put", _inside(folder), b"1" if read_only else b"0", *words
        )
        if status != b"ok":
            raise self._put_failed(reply)

    def call(self, argv: Sequence[str], timeout: float, folder: str = ".") -> ExecResult:
        """Run a program by name (or an absolute path) in `folder` for at most `timeout` seconds.

        Afterwards no process that it started is left. 127: there is no such program.
        """
        words = [word.encode("utf-8", "surrogatepass") for word in argv]
        reply = self._exchange(
            InfraStage.TOOL, b"call", repr(float(timeout)).encode(), _inside(folder), *words
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
        try:
            wanted = _inside(path)
        except SandboxError as problem:
            raise ArtifactRefused(problem.status.evidence) from None
        match self._exchange(InfraStage.TOOL, b"get", wanted):
            case [b"ok", data]:
                return data
            case [b"refused", reason]:
                raise ArtifactRefused(f"{path}: {reason.decode(errors='replace')}")
            case reply:
                raise self._lost(
                    InfraStage.TOOL, f"the reply to a get makes no sense: {reply[:2]!r}"
                )

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
