"""The verifier of an exported task: runs the task's own grader on what the agent left behind.

It stands in /tests of the verifier's image, beside `task.json`, `grader.py` and `expected/`, needs
nothing but Python, and writes /logs/verifier/reward.json only if the grader finished and said so.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TESTS = Path("/tests")
REWARD = Path("/logs/verifier/reward.json")
NOBODY = 65534
MAX_OUTPUT = 16_384


def files_of(root: Path, artifacts: list[str]) -> Iterator[str]:
    """Yield the paths of the regular files among the artifacts, following no link."""
    for artifact in artifacts:
        path = root / artifact
        if not artifact.endswith("/"):
            waiting = [path]
        else:
            waiting = list(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        while waiting:
            here = waiting.pop()
            kind = here.lstat().st_mode if os.path.lexists(here) else 0
            if stat.S_ISDIR(kind) and artifact.endswith("/"):
                waiting += here.iterdir()
            elif stat.S_ISREG(kind):
                yield here.relative_to(root).as_posix()


def copy(root: Path, names: list[str], target: Path) -> None:
    """Copy files and their modes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, target / name)


def list_modes(folder: Path) -> None:
    """Write the files' modes beside their folder, for graders that compare them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    lines = (f"{path.stat().st_mode & 0o777:04o} {path.relative_to(folder)}\n" for path in files)
    Path(f"{folder}.modes").write_text("".join(lines), "utf-8")


def run_exercise(name: str, argv: list[str], given: Path, seconds: float) -> str:
    """Run a delivered program on hidden input, as nobody and without a view of the answers."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(given, folder, dirs_exist_ok=True)
    shutil.copytree(TESTS / "exercises" / name, folder, dirs_exist_ok=True)
    identity = {}
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
            **identity,  # type: ignore[call-overload]
        )
    except subprocess.TimeoutExpired as expired:
        return said(expired.stdout or b"", "[timed out]")
    return said(done.stdout, "" if done.returncode == 0 else f"[exit {done.returncode}]")


def said(output: bytes, mark: str) -> str:
    """Return the output with a last line for each way in which it is not that of a clean exit."""
    cut = output[: MAX_OUTPUT // 2] + output[-MAX_OUTPUT // 2 :]
    text = (cut if len(output) > MAX_OUTPUT else output).decode("utf-8", "replace")
    marks = [m for m in ("[output cut]" if len(output) > MAX_OUTPUT else "", mark) if m]
    if marks and text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{m}\n" for m in marks)


def main() -> int:
    """Grade; return 0 where a reward was written."""
    task = json.loads((TESTS / "task.json").read_text("utf-8"))
    if os.geteuid() == 0:
        TESTS.chmod(0o700)
    work = Path(tempfile.mkdtemp())
    root, given = Path(task["workdir"]), work / "artifacts"
    names = sorted(set(files_of(root, task["artifacts"]))) if root.is_dir() else []
    copy(root, names, given)
    for exercise in task["exercises"]:
        output = given / "exercises" / f"{exercise['name']}.txt"
        text = run_exercise(exercise["name"], exercise["argv"], given, task["seconds"])
        output.parent.mkdir(exist_ok=True)
        output.write_text(text, "utf-8")
    list_modes(given)
    list_modes(TESTS / "expected" / "output")
    python = [sys.executable, "-I", str(TESTS / "grader.py")]
    done = subprocess.run(
        [*python, str(given), str(TESTS / "expected"), *task["checks"]],
        cwd=root if task["absolute"] else work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=task["seconds"],
        check=False,
    )
    return sign(done.returncode, done.stdout.decode("utf-8", "replace"), task["checks"])


def sign(code: int, output: str, checks: list[str]) -> int:
    """Write the reward where the grader gave a complete verdict."""
    *rows, last = output.splitlines() or [""]
    results = dict(row.split("\t")[:2] for row in rows if row.count("\t") >= 2)
    if code != 0 or last != "graded" or list(results) != checks:
        sys.stderr.write(f"not graded: exit {code}\n{output}")
        return 1
    rewards = {name: int(word == "pass") for name, word in results.items()}
    REWARD.parent.mkdir(parents=True, exist_ok=True)
    REWARD.write_text(json.dumps({"reward": min(rewards.values())} | rewards), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
