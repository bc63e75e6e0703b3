"""Runs hidden tests on the tree that an agent left behind. Runs in a grader's sandbox of its own.

    tests ARTIFACTS EXPECTED CHECK…

The current folder is the workdir. ARTIFACTS (elsewhere) holds the agent's tree, EXPECTED/output

- `tests.json`: `fail_to_pass` and `pass_to_pass` (lists of test ids), `command` (for bash; it finds
  the paths RUNNER and RESULTS in its environment), `results` (a format of reports.py), `seconds`,
  `replaced` (a regular expression: files of the tree that give way), `patched` (path → first
  digits of the git blob that `test.patch` has to make of it);
- `hidden/`: files put over the tree; `test.patch`: applied to it; `reports.py`; `runner.py`.

Prints `name TAB pass|fail TAB evidence` a check, then `graded`. Whatever the tree does to the tests
fails its checks; without `graded` the runner could not start, or this program was killed.

Protected: tests, conftest.py, sitecustomize.py, .pth files and byte code that the agent planted or
changed are gone before anything runs, as far as `replaced` names them. Each listed test must have
been reported exactly once, as passed, and the exit code must agree with the reports. JSON lines
come through a pipe, so that what was said stays said, with a word that is not in the environment.
Not protected: the code under test runs as the same user, in the runner's own process. Code that
is written to look for the runner can report in its name, XML can be overwritten, and `log` forged
by printing.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

MAX_EVIDENCE = 3000
MAX_LOG = 1500
MAX_RESULTS = 16 * 1024 * 1024
READ_SECONDS = 20
HIDDEN = "hidden/"
START = ">>>>> Start Test Output"
EXIT_CODE = re.compile(r"^>>>>> Test Exit Code: (\d+)$", re.MULTILINE)


class Unusable(Exception):
    """The tree does not take the hidden tests: every check fails."""


@dataclass
class Run:
    """What one run of the tests left behind."""

    exit_code: int | None
    """None: it did not end in time."""
    report: str
    log: str
    nonce: str


def contents(folder):
    """Return path → (bytes, whether it is executable) of all files below `folder`."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in found
    }


def write(folder, files):
    for path, (data, executable) in files.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as problem:
            raise Unusable(f"{path}: {problem.strerror}") from None
        target.chmod(0o755 if executable else 0o644)


def with_tests(tree, spec, given, own):
    """Return the tree without what gives way, and the hidden tests over it."""
    replaced = re.compile(spec["replaced"]) if spec["replaced"] else None
    kept = {path: data for path, data in tree.items() if not (replaced and replaced.search(path))}
    made = patched(kept, spec["patched"], given, own) if spec["patched"] else {}
    hidden = {path[len(HIDDEN) :]: data for path, data in given.items() if path.startswith(HIDDEN)}
    return {path: kept[path] for path in kept if path not in spec["patched"]} | made | hidden


def patched(tree, blobs, given, own):
    """Return the files that the hidden patch makes, each the very blob that it should be."""
    folder = own / "patching"
    folder.mkdir()
    write(folder, {path: tree[path] for path in blobs if path in tree})
    argv = ["git", "apply", "--whitespace=nowarn", "-"]
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(own), "GIT_CONFIG_NOSYSTEM": "1"}
    result = subprocess.run(
        argv, cwd=folder, input=given["test.patch"][0], capture_output=True, env=environment
    )
    if result.returncode:
        raise Unusable(f"test.patch: {result.stderr.decode(errors='replace')}")
    made = contents(folder)
    for path, digits in blobs.items():
        if digits.strip("0") and not blob(*made.get(path, (b"",))[:1]).startswith(digits):
            raise Unusable(f"{path}: the tree changed this test file")
    return made


def blob(data):
    """Return git's name of a file's content: SHA-1 over a header and the bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def run(spec, own):
    """Run the command in the workdir until it ends or its seconds have passed."""
    nonce = secrets.token_hex(16)
    reading, writing = os.pipe()
    piped, report = spec["results"] == "lines", own / "report.xml"
    environment = {
        "RESULTS": f"/dev/fd/{writing}" if piped else str(report),
        "RUNNER": str(own / "runner.py"),
        "PYTEST_ADDOPTS": f"--junitxml={report} -o junit_family=xunit1 -p no:cacheprovider",
    }
    received, log = [], own / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/bash", "-c", spec["command"]],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(writing,),
            start_new_session=True,
            env=os.environ | environment,
        )
    os.close(writing)
    with contextlib.suppress(OSError), process.stdin as stream:
        stream.write(f"{nonce}\n".encode())
    reader = threading.Thread(target=drain, args=(reading, received), daemon=True)
    reader.start()
    code = wait(process, spec["seconds"])
    reader.join(2.0)
    said = b"".join(received).decode(errors="replace") if piped else tail(report)
    return Run(code, said if spec["results"] != "log" else tail(log), tail(log), nonce)


def drain(descriptor, received):
    """Keep what comes through a pipe, up to a limit, until nobody holds its other end."""
    size = 0
    while data := os.read(descriptor, 65536):
        if (size := size + len(data)) <= MAX_RESULTS:
            received.append(data)
    os.close(descriptor)


def wait(process, seconds):
    """Return the exit code, or None where the time was up; its session is ended either way."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(path):
    """Return the end of a file; nothing where the tests left something else in its place."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - MAX_RESULTS))
        return stream.read().decode(errors="replace")


def understand(spec, reports, ran):
    """Return test → what was reported of it, and what is wrong with the whole run, if anything.

    Raises SystemExit where the runner did not even start.
    """
    argv = [sys.executable, "-I", "-c", reports, spec["results"], ran.nonce]
    read = subprocess.run(argv, input=ran.report.encode(), stdout=-1, timeout=READ_SECONDS)
    if read.returncode == 2:
        return {}, f"no report was written: {read.stdout.decode()}; exit {ran.exit_code}"
    told = json.loads(read.stdout)
    if "start" not in told["events"]:
        raise SystemExit(f"the runner did not start: exit {ran.exit_code}: {ran.log[-MAX_LOG:]}")
    statuses = {}
    for outcome in told["outcomes"]:
        word, message = outcome["status"], outcome["message"]
        said = word if word == "passed" or not message else f"{word} ({message})"
        statuses.setdefault(outcome["test"], []).append(said)
    return statuses, objection(statuses, "end" in told["events"], spec, ran)


def objection(statuses, ended, spec, ran):
    """Return why the reports don't describe the run, or nothing."""
    code = ran.exit_code
    if code is None:
        return "the tests did not end in time"
    if not ended:
        return "the run broke off before its last test"
    if START in spec["command"]:  # a script that goes on after the tests and prints their exit code
        code = next(iter(EXIT_CODE.findall(ran.log)[-1:]), None)
    bad = any(word.startswith(("failed", "error")) for found in statuses.values() for word in found)
    if code is not None and bool(int(code)) is not bad:
        return f"the tests' exit code is {code}, yet {'a' if bad else 'no'} test failed"
    return ""


def status_of(test, statuses):
    """Return a listed test's status; `passed` only where it was reported once, as passed.

    A list may have cut an id at a space in its brackets: all tests that begin so must pass.
    """
    found = statuses.get(test, [])
    if test.count("[") > test.count("]"):
        found = [
            word for name, words in statuses.items() if name.startswith(test) for word in words
        ]
    elif len(found) > 1:
        return f"reported {len(found)} times"
    return next((word for word in found if word != "passed"), "passed" if found else "absent")


def judge(tests, statuses, problem, ran):
    """Return whether all of `tests` passed, and the evidence."""
    wrong = {test: word for test in tests if (word := status_of(test, statuses)) != "passed"}
    said = [problem] if problem else []
    said += [f"{len(tests) - len(wrong)} of {len(tests)} passed, exit {ran.exit_code}"]
    said += [f"{test}: {word}" for test, word in wrong.items()]
    evidence = "; ".join(said)[: MAX_EVIDENCE - MAX_LOG - 100]
    if problem or wrong:
        evidence += f"; log {hashlib.sha256(ran.log.encode()).hexdigest()}: {ran.log[-MAX_LOG:]}"
    return not problem and not wrong, evidence


def grade(tree, given, lists):
    """Return check → (passed, evidence) of a tree, by the files given."""
    spec = json.loads(given["tests.json"][0])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        own = Path(name)
        write(own, {path: file for path, file in given.items() if path == "runner.py"})
        try:
            write(Path.cwd(), with_tests(tree, spec, given, own))
        except Unusable as problem:
            return dict.fromkeys(lists, (False, str(problem)))
        ran = run(spec, own)
        statuses, problem = understand(spec, given["reports.py"][0], ran)
    return {check: judge(tests, statuses, problem, ran) for check, tests in lists.items()}


def main(argv):
    """Grade one tree; see the module's docstring."""
    artifacts, expected, *checks = argv
    given = contents(Path(expected, "output"))
    spec = json.loads(given["tests.json"][0])
    lists = {check: spec[check.replace("-", "_")] for check in checks}
    if not all(lists.values()):
        raise SystemExit("tests.json: an empty list of tests grades nothing")
    for check, (passed, evidence) in grade(contents(Path(artifacts)), given, lists).items():
        shown = evidence.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
        print(f"{check}\t{'pass' if passed else 'fail'}\t{shown}")
    print("graded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
