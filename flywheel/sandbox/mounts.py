"""What a bubblewrap sandbox is given to see: options of the command line, the same for all."""

import os
import sys
import sysconfig
from pathlib import Path

import flywheel
from flywheel.errors import ConfigError
from flywheel.sandbox.launch import ENVIRONMENT

INSIDE = "/opt/python"
"""Where a sandbox sees this interpreter, wherever the host keeps it."""
SYSTEM = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec")
SYSTEM_FILES = ("/usr/share", "/etc/ld.so.cache", "/etc/alternatives")
ROOT_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")


def isolation() -> list[str]:
    """Return the namespaces, the variables and the kernel's own file systems."""
    options = "--unshare-all --unshare-user --die-with-parent --new-session --as-pid-1 --clearenv"
    arguments = [*options.split(), "--cap-drop", "ALL", "--hostname", "sandbox"]
    path = {"PATH": f"{INSIDE}/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    for name, value in (ENVIRONMENT | path).items():
        arguments += ["--setenv", name, value]
    for folder in ("/etc", "/usr", "/opt", INSIDE, f"{INSIDE}/bin"):
        arguments += ["--dir", folder]  # else made for their owner alone
    return [*arguments, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]


def system() -> list[str]:
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


def interpreter() -> list[str]:
    """Return the mounts of this Python and its standard library, without installed packages.

    Raises ConfigError where there is no such interpreter as a file.
    """
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


def writable(folders: list[str], size: int) -> list[str]:
    """Return the mounts of `folders`, each empty, in memory, of at most `size` bytes."""
    options = ("--perms", "1777", "--size", str(size), "--tmpfs")
    return [word for folder in folders for word in (*options, folder)]
