"""What decides a SWE-bench task: its tests, how to run them, and the files that they are in."""

import json
from collections.abc import Iterable, Mapping

from flywheel.formats.clone import apply_patch
from flywheel.formats.collection import Files, FormatError
from flywheel.formats.documents import Value
from flywheel.formats.patch import touched
from flywheel.formats.reading import reported
from flywheel.formats.software import REPLACED, STARTUP, HiddenTests, Results, is_test
from schemas.file import File

Row = Mapping[str, Value]
"""Column → value."""
TEST_SECONDS = 1800.0
"""The time that SWE-bench gives the tests by default."""
KEPT = "flywheel_files"
"""Column of a task folder's files that have no home: path → the other fields of a `File`."""
ASSETS = "test_assets/"
"""Files of the tests that a patch can't carry, by their paths in the tree."""
RESULTS: Mapping[str, Results] = {
    "django": "log",
    "sympy": "log",
    "unittest_lines": "lines",
    **dict.fromkeys(("pytest", "pytest_options", "pytest_v2", "astroid", "astropy"), "junit"),
    **dict.fromkeys(("flask", "marshmallow", "matplotlib", "pvlib", "pydicom"), "junit"),
    **dict.fromkeys(("pylint", "pyvista", "requests", "scikit", "seaborn"), "junit"),
    **dict.fromkeys(("sphinx", "sqlfluff", "xarray"), "junit"),
}
"""Log parser, without its `parse_log_` → how those tests report here: pytest's as XML."""


def hidden_tests(row: Row, name: str, tree: Files) -> tuple[HiddenTests, Files]:
    """Return what decides, and the hidden test files as far as they are known.

    Args:
        row: an instance.
        name: its id, for messages.
        tree: the repository at the base commit; empty where there is no clone. With it the hidden
            files are whole, else they come as a patch.

    Raises:
        FormatError: a field that is missing or can't work, by name.
    """
    test_patch = text_at(row, "test_patch", name)
    files = touched(test_patch, name, "test_patch")
    if not files:
        raise FormatError(name, "test_patch", "no diff: give the patch that adds the tests")
    base = {path: file for path, file in tree.items() if path in files or is_test(path)}
    clash = base.keys() & touched(text_at(row, "patch", name), name, "patch").keys()
    if clash:
        reason = f"changes test files, which give way to the hidden ones: {', '.join(clash)}"
        raise FormatError(name, "patch", reason)
    fail_to_pass = names_at(row, "FAIL_TO_PASS", name)
    if not fail_to_pass and row.get("split") != "deprecated":
        raise FormatError(name, "FAIL_TO_PASS", "empty: no test shows that the task was done")
    tests = HiddenTests(
        fail_to_pass=fail_to_pass,
        pass_to_pass=names_at(row, "PASS_TO_PASS", name),
        command=_command(row, name, files),
        results=_results(row, name, fail_to_pass),
        seconds=TEST_SECONDS,
        replaced=REPLACED if tree else STARTUP,
        patched={} if tree else files,
    )
    return tests, {**(apply_patch(base, test_patch) if tree else {}), **_assets(row, name)}


def _assets(row: Row, name: str) -> dict[str, File]:
    kept = row.get(KEPT)
    found = {
        path.removeprefix(ASSETS): fields
        for path, fields in (kept.items() if isinstance(kept, dict) else ())
        if path.startswith(ASSETS) and isinstance(fields, dict)
    }
    with reported(name, KEPT):
        return {path: File.model_validate({**f, "path": path}) for path, f in found.items()}


def _command(row: Row, name: str, files: Iterable[str]) -> str:
    """Return the row's script, or pytest on the test files for rows without one."""
    script = row.get("eval_script")
    if script:
        return text_at(row, "eval_script", name)
    return " ".join(["python -m pytest -rA", *sorted(p for p in files if p.endswith(".py"))])


def _results(row: Row, name: str, tests: Iterable[str]) -> Results:
    parser = str(row.get("log_parser") or "pytest")
    results = RESULTS.get(parser.removeprefix("parse_log_"))
    if results is None:
        known = ", ".join(sorted(RESULTS))
        raise FormatError(name, "log_parser", f"{parser!r} is unknown; known are {known}")
    if results == "junit" and not all("::" in test for test in tests):
        raise FormatError(name, "log_parser", "names are not pytest's: say how tests report")
    if results != "junit" and not row.get("eval_script"):
        raise FormatError(name, "eval_script", "missing: only pytest runs without one")
    return results


def text_at(row: Row, field: str, source: str) -> str:
    """Return a field's text; raise FormatError where it is absent or can't be stored."""
    value = row.get(field)
    if not isinstance(value, str):
        raise FormatError(source, field, "missing, or no text")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise FormatError(source, field, "holds a NUL or half a surrogate pair: remove it")
    return value


def names_at(row: Row, field: str, source: str) -> tuple[str, ...]:
    """Return a list of names, given as a list or as its JSON text."""
    value = row.get(field)
    try:
        names = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(source, field, "missing, or no list of texts")
    return tuple(dict.fromkeys(names))
