"""The program that runs inside a sandbox, as process 1 of its PID namespace.

It answers each request frame on standard input with one reply frame on standard output.

Only the standard library, and of that only what starts fast: `signal`, `subprocess` and
`contextlib` would cost more than the sandbox itself. This file and those that it imports run on
Python 3.10 and later, Linux 5.3 and later. Being process 1 is what makes it sturdy: signals from
inside can't end it, whatever a call leaves behind becomes its child, and when it ends the kernel
ends all the rest.
"""

import _signal  # type: ignore[import-not-found]
import os
import resource
import select
import struct
import sys
import time

from flywheel.sandbox.frames import pack, unpack
from flywheel.sandbox.output import Output
from flywheel.sandbox.program import become
from flywheel.sandbox.walk import Walk
from flywheel.sandbox.workspace import Refused, get, put

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = 65534
SIGKILL = 9
SET_DUMPABLE = 4


class Worker:
    """Answers requests: one method an operation, its arguments the request's fields."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._programs: dict[str, Callable[[list[str]], int]] = {}
        self._limits: list[tuple[int, int]] = []
        self._output_bytes = self._artifact_bytes = self._file_bytes = self._tree_files = 0

    def serve(self) -> None:
        """Answer until the other side hangs up."""
        operations: dict[bytes, Callable[..., bytes]] = {
            b"start": self.start,
            b"put": self.put,
            b"call": self.call,
            b"get": self.get,
            b"tree": self.tree,
        }
        while True:
            (size,) = struct.unpack(">I", self._read(4))
            operation, *fields = unpack(self._read(size))
            try:
                reply = operations[operation](*fields)
            except Refused as refusal:
                reply = pack(b"refused", str(refusal).encode())
            except OSError as problem:
                reply = pack(b"error", str(problem.errno).encode(), str(problem).encode())
            view = memoryview(reply)
            while view:
                view = view[os.write(self._replies, view) :]

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = os.read(self._requests, min(size - len(data), 1 << 20))
            if not chunk:
                os._exit(0)
            data += chunk
        return bytes(data)

    def start(self, limits: bytes, *programs: bytes) -> bytes:
        """Take the limits, and load the programs (name, source, name, source …)."""
        memory, processes, files, self._output_bytes, *artifacts = map(int, limits.split())
        self._artifact_bytes, self._file_bytes, self._tree_files = artifacts
        self._limits = [
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, files),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
        ]
        if processes:
            self._limits.append((resource.RLIMIT_NPROC, processes))
        for name, source in zip(programs[::2], programs[1::2], strict=True):
            try:
                self._load(name.decode(), source)
            except BaseException as problem:  # noqa: BLE001 - a program may raise anything
                text = f"program {name.decode()}: {type(problem).__name__}: {problem}"
                return pack(b"error", b"0", text.encode())
        return pack(b"ok")

    def _load(self, name: str, source: bytes) -> None:
        # A prefix keeps a program that is called `csv` from shadowing the module.
        module = type(sys)("programs." + name)
        sys.modules[module.__name__] = module
        exec(compile(source, name + ".py", "exec"), module.__dict__)  # noqa: S102
        self._programs[name] = module.__dict__["main"]

    def put(self, folder: bytes, read_only: bytes, *files: bytes) -> bytes:
        """Write files, given as path, mode, bytes, path, mode …; seal them if `read_only` is 1."""
        paths, modes = map(os.fsdecode, files[::3]), map(int, files[1::3])
        put(os.fsdecode(folder), zip(paths, modes, files[2::3], strict=True), read_only == b"1")
        return pack(b"ok")

    def get(self, path: bytes) -> bytes:
        """Return a file's bytes."""
        return pack(b"ok", get(os.fsdecode(path), self._artifact_bytes))

    def tree(self, folder: bytes) -> bytes:
        """Return how many files, then path, mode and bytes of each, then the refusals."""
        walk = Walk(os.fsdecode(folder), self._tree_files, self._file_bytes, self._artifact_bytes)
        walk.run()
        return pack(b"ok", str(len(walk.files) // 3).encode(), *walk.files, *walk.refused)

    def call(self, timeout: bytes, folder: bytes, *argv: bytes) -> bytes:
        """Run a program in a process of its own; afterwards nothing else is running here."""
        started = time.monotonic()
        readable, writable = os.pipe()
        process = os.fork()
        if process == 0:
            for stream in (self._requests, self._replies, readable):
                os.close(stream)
            words = [os.fsdecode(word) for word in argv]
            become(words, os.fsdecode(folder), writable, self._limits, self._programs)
        os.close(writable)
        output = Output(self._output_bytes)
        timed_out = self._watch(process, readable, output, started + float(timeout))
        exit_code = _end_all(process)
        while data := os.read(readable, 65536):
            output.add(data)
        os.close(readable)
        numbers = (exit_code, output.dropped, time.monotonic() - started, int(timed_out))
        return pack(b"ok", *(str(number).encode() for number in numbers), output.kept())

    def _watch(self, process: int, readable: int, output: Output, deadline: float) -> bool:
        """Collect output until the process ends (False) or the deadline passes (True)."""
        exited = os.pidfd_open(process)
        events = select.poll()
        events.register(exited, select.POLLIN)
        events.register(readable, select.POLLIN)
        events.register(self._requests, 0)  # hanging up is always reported
        try:
            while (left := deadline - time.monotonic()) > 0:
                ready = dict(events.poll(left * 1000 + 1))
                if self._requests in ready:
                    os._exit(0)
                if exited in ready:
                    return False
                if readable in ready:
                    data = os.read(readable, 65536)
                    output.add(data)
                    if not data:
                        events.unregister(readable)
            return True
        finally:
            os.close(exited)


def _end_all(process: int) -> int:
    """Kill and reap every process but this one; return the exit code of `process`."""
    exit_code = -SIGKILL
    while True:
        try:  # noqa: SIM105 - contextlib is slow to import
            os.kill(-1, SIGKILL)
        except ProcessLookupError:
            pass  # nothing left to kill, perhaps something to reap
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return exit_code
        if ended == process:
            exit_code = os.waitstatus_to_exitcode(status)


def _become_nobody() -> None:
    """Give up what is left of root, and keep calls from reaching into this process."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        import _ctypes
    except ImportError:
        return  # a Python built without libffi; giving up root has the same effect
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    _ctypes.call_function(prctl, (SET_DUMPABLE, 0, 0, 0, 0))


def main() -> None:
    """Serve on standard input and output, which from here on are nobody else's."""
    if os.getpid() != 1:
        raise SystemExit("the worker must be process 1 of a PID namespace: it kills all others")
    _become_nobody()
    os.umask(0o022)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.path[:] = [entry for entry in sys.path if entry]  # a workspace holds no modules of ours
    os.closerange(3, 1 << 16)  # what a backend's own tools left open
    requests, replies = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    Worker(requests, replies).serve()
