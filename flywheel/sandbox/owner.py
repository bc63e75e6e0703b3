"""Whose a sandbox is: how the reaper tells what a killed process left from what is in use."""

import socket
import subprocess
from pathlib import Path

PROC = Path("/proc")


def owner_of(pid: int) -> str:
    """Return which process this is, among all that ever were: host, pid and start time."""
    return f"{socket.gethostname()} {pid} {_started(pid)}"


def is_orphan(owner: str) -> bool:
    """Tell whether a process of this host is gone; other hosts' are never called orphans."""
    host, _, process = owner.partition(" ")
    pid = process.partition(" ")[0]
    return host == socket.gethostname() and pid.isdigit() and owner_of(int(pid)) != owner


def _started(pid: int) -> str:
    """Return when a process started, in the system's own words; empty where there is none."""
    if not PROC.exists():  # macOS
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    try:
        status = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return status.rpartition(")")[2].split()[19]  # proc(5): field 22, starttime
