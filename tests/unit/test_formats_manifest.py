"""Native manifests: what is written reads back the same, to the byte."""

import json
from base64 import b64encode
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.families.catalogue import FAMILIES
from flywheel.formats import read_folder
from flywheel.formats.collection import FormatError
from flywheel.formats.manifest import (
    manifest_files,
    manifest_of,
    read_manifest,
    task_schema,
    write_manifest,
)
from flywheel.formats.reading import read_files, write_files
from schemas.file import File
from schemas.task import Budget, Environment, TaskManifest
from schemas.tool import ToolCall
from tests.real_tasks import real_task

ROOT = Path(__file__).parents[2]


@cache
def family_task(name: str) -> TaskManifest:
    """A task of a shipped family with its first rule live."""
    return real_task(next(iter(FAMILIES[name].rules)), family=name)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_of_every_family_survives_its_folder(tmp_path: Path, family: str) -> None:
    task = family_task(family)
    write_manifest(task, tmp_path / "task")
    again = read_manifest(tmp_path / "task")
    assert (again, again.version_id) == (task, task.version_id)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(
    st.sampled_from(list("ab: -#'\"|>&*!%@`\n\t\r{}[],0.")), max_size=40
)
PATHS = st.sampled_from(["a", "./a", "a/b", "a//b", "b", "a b", "é", "x" * 200, "ü" * 200])
MODES = st.integers(0, 0o777)
BASE64 = st.binary(max_size=40).map(lambda data: b64encode(data).decode())
FILES = st.builds(File, path=PATHS, content=TEXTS, mode=MODES) | st.builds(
    File, path=PATHS, content=BASE64, encoding=st.just("base64"), mode=MODES
)


@settings(max_examples=60, deadline=None)
@given(
    goal=TEXTS,
    inputs=st.lists(FILES, max_size=4, unique_by=lambda file: file.path),
    expected=st.lists(FILES, max_size=4),
    outside=st.dictionaries(TEXTS, TEXTS, max_size=3),
    arguments=st.dictionaries(st.sampled_from(["command", "file"]), TEXTS),
    seconds=st.floats(1e-300, 1e300),
    seed=st.integers(0, 2**80),
)
def test_any_manifest_survives_its_folder(
    goal: str,
    inputs: list[File],
    expected: list[File],
    outside: dict[str, str],
    arguments: dict[str, str],
    seconds: float,
    seed: int,
) -> None:
    task = family_task("orders")
    environment = Environment(files=tuple(inputs))
    budget = Budget(seconds=seconds)
    brief = task.brief.model_copy(
        update={"goal": goal, "environment": environment, "budget": budget}
    )
    grader = task.sealed.grader.model_copy(update={"expected": tuple(expected), "protected": ()})
    script = (ToolCall(tool="bash", arguments=arguments),)
    sealed = task.sealed.model_copy(update={"grader": grader, "reference": script})
    parts = {"brief": brief, "sealed": sealed, "outside": outside, "seed": seed}
    kept = {name: getattr(task, name) for name in TaskManifest.model_fields}
    task = TaskManifest.model_validate(kept | parts)
    files = manifest_files(task)
    with TemporaryDirectory() as name:
        write_files(files, Path(name))
        assert read_files(Path(name)).keys() == files.keys()
        again = read_manifest(Path(name))
    assert again == task
    assert again.version_id == task.version_id


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_whole_manifest_in_one_file_is_read(tmp_path: Path, suffix: str) -> None:
    task = family_task("orders")
    path = tmp_path / f"task{suffix}"
    path.write_text(task.model_dump_json(), "utf-8")  # JSON is YAML too
    assert read_manifest(path) == task


def test_what_an_agent_may_see_holds_nothing_sealed(tmp_path: Path) -> None:
    task = family_task("orders")
    files = manifest_files(task)
    answer = task.sealed.grader.expected[0].content.strip()
    open_to_all = [path for path in files if not path.startswith("sealed/")]
    assert {"task.yaml", "environment/" + task.brief.environment.files[0].path} <= set(open_to_all)
    assert not any(answer in files[path].content for path in open_to_all)
    assert any(answer in files[path].content for path in files)


def spoilt(tmp_path: Path, name: str, old: str, new: str) -> Path:
    folder = tmp_path / "task"
    write_manifest(family_task("orders"), folder)
    text = (folder / name).read_text("utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("task.yaml", "seed: 1", "seed: one", "task.yaml: seed"),
        ("task.yaml", "seed: 1", "sead: 1", "task.yaml"),
        ("task.yaml", "steps: 12", "steps: 0", "task.yaml: brief.budget.steps"),
        ("task.yaml", "brief:", "brief2:", "not listed"),
        ("task.yaml", "workdir: /workspace", "workdir: ../x", "workdir"),
        ("sealed/grader.yaml", "program: compare", "program: /bin/sh", "sealed.grader.program"),
        ("sealed/grader.yaml", "program: compare", "program: no-such", "no grader program"),
        (
            "sealed/grader.yaml",
            "version: compare@",
            "version: compare@f",
            "grader.version: is .*an",
        ),
        ("sealed/grader.yaml", "protected:", "protected:\n- other.csv", "no file of the environ"),
        ("sealed/reference.yaml", "- tool:", "- tool: *x\n- tool:", "sealed/reference.yaml"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(
    tmp_path: Path, name: str, old: str, new: str, said: str
) -> None:
    with pytest.raises(FormatError, match=said):
        read_manifest(spoilt(tmp_path, name, old, new))


def test_a_protected_file_has_to_be_among_what_is_graded() -> None:
    task = family_task("orders")
    kept = [a for a in task.brief.artifacts if a not in task.sealed.grader.protected]
    assert len(kept) < len(task.brief.artifacts)
    for artifacts, refused in ((kept, True), ([*kept, "./"], False)):
        brief = task.brief.model_copy(update={"artifacts": tuple(artifacts)})
        changed = task.model_copy(update={"brief": brief})
        files = manifest_files(changed)
        if refused:
            with pytest.raises(FormatError, match=r"protected: .*not among brief\.artifacts"):
                manifest_of(files)
        else:
            assert manifest_of(files).brief == brief


def test_files_and_their_list_have_to_agree(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    write_manifest(family_task("orders"), folder)
    (folder / "environment" / "stray.txt").write_text("x")
    with pytest.raises(FormatError, match=r"environment/stray\.txt: not listed"):
        read_manifest(folder)
    (folder / "environment" / "stray.txt").unlink()
    (answer,) = (folder / "sealed" / "expected").iterdir()
    answer.unlink()
    with pytest.raises(FormatError, match=r"sealed/expected/.*absent"):
        read_manifest(folder)


def test_an_identity_that_is_not_the_tasks_own_is_refused(tmp_path: Path) -> None:
    document = json.loads(family_task("orders").model_dump_json())
    document["brief"]["goal"] = "Something else."
    (tmp_path / "t.json").write_text(json.dumps(document))
    with pytest.raises(FormatError, match=r"t\.json: version_id|t\.json: prompt_hash"):
        read_manifest(tmp_path / "t.json")


def test_a_folder_of_manifests_is_read_whole(tmp_path: Path) -> None:
    for name in FAMILIES:
        write_manifest(family_task(name), tmp_path / name)
    (tmp_path / "copy").mkdir()
    (tmp_path / "one.yaml").write_text("[1, 2]")
    write_manifest(family_task("orders"), tmp_path / "zz-copy")
    imported = read_folder(tmp_path)
    assert len(imported.tasks) == len(FAMILIES)
    problems = {item.path: item for item in imported.refused}
    assert set(problems) == {"copy", "one.yaml", "zz-copy"}
    assert problems["zz-copy"].field == "version_id"


def test_the_committed_schema_is_up_to_date() -> None:
    committed = (ROOT / "schemas" / "task.schema.json").read_text("utf-8")
    assert committed == task_schema(), "write task_schema() to schemas/task.schema.json"
