"""SWE-bench instances as rows: read into tasks, and written from them.

Fields are those of swebench 5.0.2 (`instance_id`, `repo`, `base_commit`, `patch`, `test_patch`,
`problem_statement`, `FAIL_TO_PASS`, `PASS_TO_PASS` as lists or their JSON text, `image`,
`eval_script`, `log_parser` …); rows of 4.x lack the last three. Every other field is kept in
`outside` and written back.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from flywheel.errors import ManifestError
from flywheel.formats.clone import tree_at
from flywheel.formats.collection import Files, FormatError
from flywheel.formats.documents import Value
from flywheel.formats.patch import applied_by, applying, touched
from flywheel.formats.reading import reported
from flywheel.formats.software import (
    BUDGET,
    WORKDIR,
    make_brief,
    make_grader,
    outside_of,
    tests_of,
)
from flywheel.formats.swebench_tests import Row, hidden_tests, text_at
from schemas.task import Budget, Environment, Repository, Sealed, Source, SourceKind, TaskManifest

Checkouts = Mapping[str, Path]
"""`owner/name` of a repository → a local clone of it."""
FAMILY = "swebench"
FAMILY_VERSION = "swebench@5.0.2"
MAX_ROW_BYTES = 16 * 1024 * 1024
MAX_LIST_BYTES = 256 * 1024 * 1024
COMPONENT = "flywheel_component"
"""Tasks of one repository are related: they go to one split together."""
HOST = "https://github.com/"
IN_PLACE = ("repo", "base_commit", "patch", "problem_statement", "FAIL_TO_PASS", "PASS_TO_PASS")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


def task_of_row(
    row: Row, checkouts: Checkouts | None = None, budget: Budget = BUDGET
) -> TaskManifest:
    """Return the task of one row.

    Args:
        row: the fields.
        checkouts: where a repository is among them, the task holds its tree, and whole test files
            instead of a patch to whatever test files the agent left.
        budget: of an attempt.

    Raises:
        FormatError: a field that is missing or can't work, by name.
    """
    name = text_at(row, "instance_id", "row")
    if not _ID.fullmatch(name):
        raise FormatError(name, "instance_id", "use letters, digits, '.', '_' and '-'")
    clone = (checkouts or {}).get(text_at(row, "repo", name))
    tree = tree_at(clone, text_at(row, "base_commit", name)) if clone else {}
    patch, test_patch = text_at(row, "patch", name), text_at(row, "test_patch", name)
    with reported(name):
        tests, hidden = hidden_tests(row, name, tree)
        return TaskManifest(
            family=FAMILY,
            family_version=FAMILY_VERSION,
            rules=(),
            seed=0,
            operands=tuple(sorted(touched(patch, name, "patch"))),
            brief=make_brief(
                text_at(row, "problem_statement", name), _environment(row, name, tree), budget
            ),
            sealed=Sealed(
                grader=make_grader(tests, hidden, "" if clone else test_patch, name),
                reference=applying(patch, name, "patch"),
            ),
            features=None,
            source=Source(kind=SourceKind.IMPORTED, uri=f"swebench:{name}", licence=_licence(row)),
            outside=_outside(row, bool(clone)),
        )


def _environment(row: Row, name: str, tree: Files) -> Environment:
    """Return the tree if there is one, and the image: the one that SWE-bench derives if need be."""
    image = row.get("image")
    if not image and not tree:
        key = f"sweb.eval.x86_64.{name}:latest".lower().replace("__", "_1776_")
        image = f"swebench/{key}"
    return Environment(
        files=tuple(tree[path] for path in sorted(tree)),
        image=str(image) if image else None,
        workdir=WORKDIR,
        repository=Repository(
            url=HOST + text_at(row, "repo", name), commit=text_at(row, "base_commit", name)
        ),
    )


def _licence(row: Row) -> str:
    return str(row.get("license") or row.get("licence") or "unknown")


def _outside(row: Row, has_tree: bool) -> dict[str, str]:
    """Return what has no home, as JSON text, and the component that the task belongs to."""
    homes = {*IN_PLACE, *(() if has_tree else ("test_patch",))}
    homes |= {name for name in ("image", "eval_script") if row.get(name)}
    kept = {name: value for name, value in row.items() if name not in homes}
    return outside_of({**kept, COMPONENT: row["repo"]})


def row_of_task(task: TaskManifest) -> dict[str, Value]:
    """Return a software task as a row; the lists are JSON text, as published data sets have them.

    Raises:
        FormatError: not a task with hidden tests and a patch as its reference.
    """
    name = task.source.uri.rpartition(":")[2]
    tests, repository = tests_of(task.sealed.grader, name), task.brief.environment.repository
    if repository is None:
        raise FormatError(name, "environment.repository", "missing: a row names one")
    outside = {field: json.loads(text) for field, text in task.outside.items()}
    given = {file.path: file.content for file in task.sealed.grader.expected}
    row = {
        "repo": repository.url.removeprefix(HOST),
        "base_commit": repository.commit,
        "patch": applied_by(task.sealed.reference),
        "problem_statement": task.brief.goal,
        "FAIL_TO_PASS": json.dumps(tests.fail_to_pass),
        "PASS_TO_PASS": json.dumps(tests.pass_to_pass),
        "eval_script": tests.command,
        **({"test_patch": given["test.patch"]} if "test.patch" in given else {}),
        **({"image": task.brief.environment.image} if task.brief.environment.image else {}),
    }
    return {name: value for name, value in {**outside, **row}.items() if name != COMPONENT}


def read_rows(
    file: Path, checkouts: Checkouts | None = None, budget: Budget = BUDGET
) -> Iterator[TaskManifest | ManifestError]:
    """Yield the task of each row of a .jsonl file, or of a .json file with a list, or why not.

    Raises:
        FormatError: the file can't be read at all.
    """
    for number, row in enumerate(_rows(file), start=1):
        try:
            if not isinstance(row, dict):
                raise FormatError(file.name, f"row {number}", "no JSON object")
            yield task_of_row(row, checkouts, budget)
        except ManifestError as problem:
            yield problem


def _rows(file: Path) -> Iterator[Value]:
    """Yield the items of a list, or what stands on each line (None where that is broken)."""
    with reported(file.name), file.open("rb") as stream:
        if file.suffix == ".json":
            listed = _parsed(stream.read(MAX_LIST_BYTES + 1))
            if not isinstance(listed, list):
                raise FormatError(file.name, "", f"no JSON list of at most {MAX_LIST_BYTES} bytes")
            yield from listed
            return
        while line := stream.readline(MAX_ROW_BYTES + 1):
            if len(line) > MAX_ROW_BYTES:
                raise FormatError(file.name, "", f"a row of more than {MAX_ROW_BYTES} bytes")
            if line.strip():
                yield _parsed(line)


def _parsed(text: bytes) -> Value:
    try:
        return cast(Value, json.loads(text))
    except (ValueError, RecursionError):
        return None


def write_rows(tasks: Iterable[TaskManifest], file: Path) -> None:
    """Write tasks as a .jsonl file, one row a line."""
    file.write_text("".join(json.dumps(row_of_task(task)) + "\n" for task in tasks), "utf-8")
