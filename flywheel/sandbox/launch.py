"""What every backend starts a sandbox with: the worker's command, variables and folders."""

import base64
import hashlib
import marshal
from pathlib import Path, PurePosixPath

from flywheel.errors import SandboxError
from flywheel.sandbox import SandboxSpec
from schemas.attempt import InfraStage

WORKER_FILES = ("frames", "output", "workspace", "walk", "program", "worker")
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
"""What every process in a sandbox sees, apart from PATH and what its spec adds."""
KERNEL = ("/dev", "/proc", "/sys")
NEEDED = (*KERNEL, "/bin", "/etc", "/lib", "/lib64", "/opt/python", "/usr/bin", "/usr/lib")
"""What a folder of ours must not hide."""


def writable_folders(spec: SandboxSpec) -> list[str]:
    """Return the folders to mount empty and writable: the workspace, /tmp and the further ones.

    Each once, and those that hold others before what they hold. Raises SandboxError, which trying
    again does not help, for a path that is not absolute and plain or hides what a sandbox needs.
    """
    folders = sorted({spec.workdir, "/tmp", *spec.folders})
    for folder in folders:
        path = PurePosixPath(folder)
        plain = path.is_absolute() and ".." not in path.parts and str(path) == folder
        hides = any(PurePosixPath(needed).is_relative_to(path) for needed in NEEDED)
        inside = any(path.is_relative_to(kernel) for kernel in KERNEL)
        if not plain or not folder.isprintable() or hides or inside:
            evidence = f"{folder!r} can't be a writable folder: take an absolute one of its own"
            raise SandboxError(InfraStage.BOOT, "folder-refused", evidence, retryable=False)
    return folders
