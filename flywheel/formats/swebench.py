"""SWE-bench 5.x task repositories: `sweb.yaml` and one folder a task, read and written.

    sweb.yaml                 the data sets and splits that the repository publishes
    tasks/<instance_id>/
        task.yaml             short metadata
        tests.json            FAIL_TO_PASS, PASS_TO_PASS
        problem_statement.md, hints.md, gold.patch, test.patch, eval.sh, Dockerfile
        test_assets/          files of the tests that a patch can't carry

Files that are none of these are kept and written back.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from flywheel.errors import ManifestError
from flywheel.formats.collection import Files, FormatError, shown
from flywheel.formats.documents import Value, read_yaml, text_at
from flywheel.formats.reading import read_files, write_files
from flywheel.formats.software import BUDGET
from flywheel.formats.swebench_rows import Checkouts, row_of_task, task_of_row
from flywheel.formats.swebench_tests import KEPT
from schemas.file import File
from schemas.task import Budget, TaskManifest

CONFIG, FOLDER, TASK, TESTS = "sweb.yaml", "tasks", "task.yaml", "tests.json"
TEXTS = {
    "patch": "gold.patch",
    "test_patch": "test.patch",
    "eval_script": "eval.sh",
    "problem_statement": "problem_statement.md",
    "hints_text": "hints.md",
    "dockerfile": "Dockerfile",
}
"""Column → file. `dockerfile` is none of SWE-bench's columns."""
OPTIONAL = ("hints_text", "dockerfile")
CONFIG_COLUMN = "flywheel_sweb_yaml"
LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")


def recognise_swebench(folder: Path) -> bool:
    """Tell whether a folder is a task repository."""
    return (folder / CONFIG).is_file() and (folder / FOLDER).is_dir()


def read_task_repo(
    folder: Path, checkouts: Checkouts | None = None, budget: Budget = BUDGET
) -> Iterator[TaskManifest | ManifestError]:
    """Yield the task of each folder below `tasks/`, in order of their names, or why not.

    Raises:
        FormatError: `sweb.yaml` can't be read.
    """
    config = _config(folder)
    for path in sorted((folder / FOLDER).iterdir()):
        if not path.is_dir():
            continue
        try:
            yield task_of_row(_row(path, config), checkouts, budget)
        except FormatError as problem:
            yield FormatError(f"{FOLDER}/{path.name}", *_within(problem, path.name))


def _within(problem: FormatError, name: str) -> tuple[str, str]:
    """Return field and reason; the folder's own name is said once."""
    field = ": ".join(part for part in (problem.path, problem.field) if part and part != name)
    return field, problem.reason


def _config(folder: Path) -> dict[str, Value]:
    path = folder / CONFIG
    if path.is_symlink() or path.stat().st_size > 1 << 20:
        raise FormatError(CONFIG, "", "a link, or more than 1 MiB")
    config = read_yaml(path.read_bytes().decode("utf-8", errors="replace"), CONFIG)
    if not isinstance(config, dict):
        raise FormatError(CONFIG, "", "no mapping: give `datasets` and `splits`")
    return config


def _row(path: Path, config: dict[str, Value]) -> dict[str, Value]:
    """Return a task's folder as a row."""
    if path.is_symlink():
        raise FormatError(path.name, "", "a symbolic link: put the folder itself there")
    files = read_files(path)
    meta = read_yaml(text_at(files, TASK), TASK)
    if not isinstance(meta, dict) or meta.get("instance_id") != path.name:
        raise FormatError(TASK, "instance_id", f"not the folder's name, {shown(path.name)}")
    texts = {
        column: text_at(files, name)
        for column, name in TEXTS.items()
        if name in files or column not in OPTIONAL
    }
    others = sorted(files.keys() - {TASK, TESTS, *TEXTS.values()})
    kept: dict[str, Value] = {
        name: files[name].model_dump(mode="json", exclude={"path"}) for name in others
    }
    extra: dict[str, Value] = {CONFIG_COLUMN: config, **({KEPT: kept} if kept else {})}
    return {**meta, **texts, **_lists(files), **extra}


def _lists(files: Files) -> dict[str, Value]:
    try:
        lists = json.loads(text_at(files, TESTS))
    except (ValueError, RecursionError) as problem:
        raise FormatError(TESTS, "", f"broken JSON: {problem}") from None
    if not isinstance(lists, dict) or not set(LISTS) <= lists.keys():
        raise FormatError(TESTS, "", f"give an object with {' and '.join(LISTS)}")
    return {name: lists[name] for name in LISTS}


def write_task_repo(tasks: Iterable[TaskManifest], folder: Path) -> None:
    """Write software tasks as a task repository into a new folder.

    Raises:
        ManifestError: not software tasks, an id twice, or the folder holds something.
    """
    files: dict[str, File] = {}
    config: dict[str, Value] = {"datasets": [], "splits": []}
    for task in tasks:
        row = row_of_task(task)
        name = str(row["instance_id"])
        _publish(config, row)
        for path, file in _files(row).items():
            place = f"{FOLDER}/{name}/{path}"
            if place in files:
                raise FormatError(name, "instance_id", "there twice: export one of the two")
            files[place] = file.model_copy(update={"path": place})
    files[CONFIG] = File(path=CONFIG, content=_yaml(config))
    write_files(files, folder)


def _publish(config: dict[str, Value], row: dict[str, Value]) -> None:
    """Add what a task's repository said, and its data sets and split, to the configuration."""
    given = row.pop(CONFIG_COLUMN, {})
    told = given if isinstance(given, dict) else {}
    split = row.setdefault("split", "test")
    sets = row.setdefault("datasets", ["exported"])
    for name, value in told.items():
        config.setdefault(name, value)
    named = {
        "datasets": [told.get("datasets"), sets],
        "splits": [told.get("splits"), [] if split == "deprecated" else [split]],
    }
    for key, groups in named.items():
        found = [item for group in (config[key], *groups) for item in _items(group)]
        config[key] = [item for at, item in enumerate(found) if item not in found[:at]]


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def _files(row: dict[str, Value]) -> dict[str, File]:
    """Return the files of a task's folder."""
    kept = row.pop(KEPT, {})
    files = {
        path: File.model_validate({"path": path, **fields})
        for path, fields in (kept if isinstance(kept, dict) else {}).items()
        if isinstance(fields, dict)
    }
    row.setdefault("dockerfile", f"FROM {row.get('image', 'scratch')}\n")
    lists = {name: json.loads(str(row.pop(name))) for name in LISTS}
    files[TESTS] = File(path=TESTS, content=json.dumps(lists, indent=2, ensure_ascii=False) + "\n")
    for column, name in TEXTS.items():
        if text := str(row.pop(column, "")):
            files[name] = File(path=name, content=text)
    return {**files, TASK: File(path=TASK, content=_yaml(row))}


def _yaml(value: dict[str, Value]) -> str:
    return str(yaml.safe_dump(value, sort_keys=True, allow_unicode=True))
