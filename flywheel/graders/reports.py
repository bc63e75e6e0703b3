"""Reads what a test run reported, as one outcome a test.

    python3 -I reports.py FORMAT NONCE < REPORT

FORMAT is `lines` (what unittest_lines.py writes; only lines with NONCE count), `junit` (pytest's
XML, family xunit1) or `log` (the words of unittest -v and of SymPy's runner). Prints a JSON object
with `outcomes` and `events`; where REPORT is no report, exits 2 and says why.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import asdict, dataclass

START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
_LOGGED = re.compile(
    r"^(?P<test>\S.*?) (?:\.\.\. +)?"
    r"(?P<word>ok|OK|FAIL|ERROR|F|E|f|s|expected failure|skipped.*)$",
    re.MULTILINE,
)
_WORDS = {"FAIL": "failed", "F": "failed", "ERROR": "error", "E": "error"}
_PASSING = ("ok", "OK", "f", "expected failure")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test's report."""

    test: str
    """Its id, as the runner names it."""
    status: str
    """`passed`, `failed`, `error` or `skipped`."""
    message: str = ""
    """The exception's last line, or the reason."""
    doc: str = ""
    """The first line of the test's docstring."""


def read_lines(text: str, nonce: str) -> tuple[list[Outcome], list[str]]:
    """Return the outcomes and the events (`start`, `end`) of JSON lines that carry `nonce`."""
    records = [record for record in map(_record, text.splitlines()) if record.get("nonce") == nonce]
    events = [record["event"] for record in records if "event" in record]
    outcomes = [
        Outcome(record["test"], record["status"], record["message"], record["doc"])
        for record in records
        if "event" not in record
    ]
    return outcomes, events


def _record(line: str) -> dict[str, str]:
    """Return a line's fields, all of them text; nothing where it is no such line."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    fields = {"nonce", "event"}, {"nonce", "test", "status", "message", "doc"}
    if not isinstance(record, dict) or set(record) not in fields:
        return {}
    return {name: str(value) for name, value in record.items()}


def read_junit(text: str) -> list[Outcome]:
    """Return the outcomes of pytest's XML, named as pytest names tests.

    Raises:
        ValueError: it is none.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a report has no declarations")
    try:
        return [_case(case) for case in ElementTree.fromstring(text).iter("testcase")]
    except ElementTree.ParseError as problem:
        raise ValueError(str(problem)) from None


def _case(case: ElementTree.Element) -> Outcome:
    file, name = case.get("file", ""), case.get("name", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".").split(".")
    test = "::".join([file, *filter(None, classes), name])
    for tag, status in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None and found.get("type") != "pytest.xfail":
            return Outcome(test, status, found.get("message", "").partition("\n")[0])
    return Outcome(test, "passed")


def read_log(text: str) -> Iterator[Outcome]:
    """Yield the outcomes that a log shows between its markers, or anywhere if it has none."""
    for found in _LOGGED.finditer(text.split(START)[-1].split(END)[0]):
        word = found["word"]
        yield Outcome(found["test"], "passed" if word in _PASSING else _WORDS.get(word, "skipped"))


def read(kind: str, text: str, nonce: str) -> tuple[list[Outcome], list[str]]:
    """Return the outcomes and the events of a report of one of the three kinds.

    Raises:
        ValueError: it is no such report.
    """
    if kind == "lines":
        return read_lines(text, nonce)
    return (read_junit(text) if kind == "junit" else list(read_log(text))), ["start", "end"]


def main(argv: list[str]) -> int:
    """Read one report from standard input; see the module's docstring."""
    try:
        outcomes, events = read(argv[0], sys.stdin.read(), argv[1])
    except ValueError as problem:
        print(problem)
        return 2
    print(json.dumps({"outcomes": [asdict(outcome) for outcome in outcomes], "events": events}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
