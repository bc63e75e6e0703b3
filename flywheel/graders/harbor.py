"""Runs a Harbor task's own verifier. Runs in a grader's sandbox of its own.

    harbor ARTIFACTS EXPECTED CHECK…

The current folder is the workdir. ARTIFACTS holds the agent's tree, which is restored there, and
EXPECTED/output the files of `tests/`, which go to /tests. Then `/bin/bash /tests/test.sh` runs, and
/logs/verifier/reward.json (numbers by name), or else reward.txt (one number), is read. The check
`reward` holds where the number `reward` is at least 1; without one of that name, where all are.

Prints `reward TAB pass|fail TAB evidence`, then `graded`. A reward that is absent, empty, no number
or not finite is no verdict: then there is no `graded`. Nor is there one when the verifier does not
end: whoever called this program ends it.

Protected: /logs is emptied before the verifier starts, so that no reward was there before it; what
the verifier prints is kept away from this program's output; what it left running is not waited
for. Not protected: code of the agent's that the verifier runs has the same user. A process
of its making can write a reward while the verifier runs, as it can in Harbor.
"""

import json
import math
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

TESTS, LOGS = Path("/tests"), Path("/logs")
FOLDERS = ("agent", "artifacts", "verifier")
"""Of /logs, as Harbor makes them."""
MAX_EVIDENCE = 300
MAX_REWARD_BYTES = 65_536


class Unreadable(Exception):
    """There is no reward that could be a verdict."""


def restore(source, target):
    """Copy regular files and folders with their modes; links were refused before they got here."""
    for entry in source.iterdir() if source.is_dir() else ():
        place = target / entry.name
        kind = entry.lstat().st_mode
        if stat.S_ISDIR(kind):
            place.mkdir(exist_ok=True)
            restore(entry, place)
        elif stat.S_ISREG(kind):
            place.write_bytes(entry.read_bytes())
            place.chmod(kind & 0o777)


def empty(folder):
    """Remove what stands in a folder."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def run_verifier():
    """Run test.sh; return its exit code and the end of what it printed."""
    log = LOGS / "verifier" / "test-stdout.txt"
    with log.open("wb") as stream:
        code = subprocess.call(
            ["/bin/bash", str(TESTS / "test.sh")],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    return code, said(log)


def said(log):
    """Return the end of the log, empty where the verifier took it away."""
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as stream:
        stream.seek(max(0, os.fstat(descriptor).st_size - MAX_EVIDENCE))
        return stream.read().decode("utf-8", "replace")


def read_reward():
    """Return the numbers by name; raise Unreadable where they are none."""
    for name in ("reward.json", "reward.txt"):
        path = LOGS / "verifier" / name
        if path.is_symlink():
            raise Unreadable(f"{name} is a link")
        if path.is_file():
            if path.stat().st_size > MAX_REWARD_BYTES:
                raise Unreadable(f"{name} is too large")
            return parsed(name, path.read_bytes())
    raise Unreadable("no reward file")


def parsed(name, data):
    """Return the numbers in a reward file's bytes."""
    try:
        text = data.decode("utf-8")
        values = json.loads(text) if name.endswith(".json") else {"reward": float(text)}
    except (ValueError, RecursionError):
        raise Unreadable(f"{name} can't be parsed") from None
    if not isinstance(values, dict) or not values:
        raise Unreadable(f"{name} holds no numbers by name")
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unreadable(f"{name}: {key[:60]} is no number")
        if isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"{name}: {key[:60]} is not finite")
    return values


def main(argv):
    """Grade one tree; see the module's docstring."""
    artifacts, expected, *checks = argv
    if checks != ["reward"]:
        print(f"the only check is reward, not {checks}")
        return 2
    restore(Path(artifacts), Path.cwd())
    restore(Path(expected) / "output", TESTS)
    empty(LOGS)
    for name in FOLDERS:
        (LOGS / name).mkdir()
    code, tail = run_verifier()
    try:
        values = read_reward()
    except Unreadable as problem:
        print(f"{problem}; exit {code}; {tail!a}")
        return 0
    passed = min((values["reward"],) if "reward" in values else values.values()) >= 1
    evidence = f"{json.dumps(values)[:MAX_EVIDENCE]}; exit {code}; {tail!a}"
    print(f"reward\t{'pass' if passed else 'fail'}\t{evidence}")
    print("graded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
