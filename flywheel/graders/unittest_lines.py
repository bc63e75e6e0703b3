"""Runs unittest files and writes one JSON line a test, apart from whatever the tests print.

    python3 -I unittest_lines.py RESULTS FILE…

RESULTS is a path to write to, FILEs are test files below the current folder. Each line carries the
word read from standard input; the first says `start`, the last `end`. Isolated mode (`-I`) and
importing unittest before the current folder comes onto the path keep a tree's own `unittest.py`,
`sitecustomize.py` and environment variables out.
"""
# ruff: noqa: D102 - most methods are unittest's own

import importlib
import json
import os
import sys
import traceback
import unittest

MAX_TEXT = 500


class Lines(unittest.TestResult):
    """Says each test's outcome once, when the test has stopped."""

    def __init__(self, say):
        super().__init__()
        self.say = say
        self.outcome = None

    def startTest(self, test):
        super().startTest(test)
        self.outcome = ("passed", "")

    def stopTest(self, test):
        super().stopTest(test)
        self.tell(test)
        self.outcome = None

    def tell(self, test):
        status, message = self.outcome
        doc = (test.shortDescription() or "")[:MAX_TEXT]
        self.say(test=test.id(), status=status, message=message[:MAX_TEXT], doc=doc)

    def note(self, test, status, message=""):
        """Keep the outcome; what happens outside a test (in setUpClass) is told at once."""
        outside = self.outcome is None
        if outside or self.outcome[0] == "passed":
            self.outcome = (status, message)
        if outside:
            self.tell(test)
            self.outcome = None

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", last_line(err[0], err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", last_line(err[0], err[1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", last_line(err[0], err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", str(reason))

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "unexpected success")


def last_line(kind, error):
    return traceback.format_exception_only(kind, error)[-1].strip()


def load(file, say):
    """Return a file's tests; a file that can't be imported is told as one test in error."""
    name = file.removesuffix(".py").replace("/", ".")
    try:
        return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    except Exception as problem:  # noqa: BLE001 - a test file may raise anything
        say(test=name, status="error", message=last_line(type(problem), problem), doc="")
        return None


def main(argv):
    results, *files = argv
    nonce = sys.stdin.readline().strip()
    with open(results, "w", encoding="utf-8", buffering=1) as stream:

        def say(**fields):
            stream.write(json.dumps({"nonce": nonce, **fields}) + "\n")

        say(event="start")
        sys.path.insert(0, os.getcwd())
        loaded = [load(file, say) for file in files]
        result = Lines(say)
        unittest.TestSuite(suite for suite in loaded if suite is not None).run(result)
        say(event="end")
    return 0 if result.wasSuccessful() and None not in loaded else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
