"""How long the first cycle takes, and how much of it is orchestration.

    python benchmarks/first_cycle.py bubblewrap docker

A dated figure, not a gate: bars are 120 s with bubblewrap and 360 s with Docker on two cores, and
orchestration (all wall time outside attempts, training and statistics; the Prefect server's start
apart) below 10 % of the cycle.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(sandbox: str) -> str:
    """Return a table row for one first cycle from nothing."""
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli", "run", "--home", home, "--sandbox", sandbox],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent.parent,
        )
        wall = time.perf_counter() - began
    ready = re.search(r"ready after ([\d.]+) s \(([\d.]+) s for Prefect\)", done.stderr)
    spent = re.search(r"this run ([\d.]+ s: .*?%\))", done.stderr, re.S)
    if ready is None or spent is None:
        raise SystemExit(f"unexpected output:\n{done.stderr}")
    account = " ".join(spent[1].split())
    return f"{sandbox:<12} {wall:6.1f} s in all; ready after {ready[1]} s; cycle {account}"


if __name__ == "__main__":
    for name in sys.argv[1:] or ["bubblewrap"]:
        print(measure(name), flush=True)
