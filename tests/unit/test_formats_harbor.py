"""Harbor folders in and out, the grader that runs their verifiers, and folders of many tasks."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.families.catalogue import FAMILIES
from flywheel.formats import read_folder
from flywheel.formats.collection import FormatError
from flywheel.formats.dockerfile import read_dockerfile
from flywheel.formats.harbor import BASE, KNOWN_BASES, harbor_of, read_harbor
from flywheel.formats.harbor_export import harbor_files, write_harbor
from flywheel.formats.harbor_solution import MAX_COMMAND, reference_of, texts_of
from flywheel.formats.manifest import write_manifest
from flywheel.grade import grade_sets
from flywheel.graders import grader_source
from flywheel.sandbox import Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from schemas.attempt import Verdict
from schemas.file import File
from schemas.task import Environment, TaskManifest
from tests.real_tasks import real_task
from tests.sabotage import CONFIG, DOCKERFILE, FAULTS, SOLVE, Fault, edit, good_folder, write

LABELS = {"run": "test", "attempt": "test"}
IMAGE = "flywheel-sandbox:bookworm"
BACKEND = Bubblewrap()


def solve(task: TaskManifest, folders: tuple[str, ...] = ()) -> tuple[File, ...]:
    """Run the reference as an agent's sandbox would; return the tree that it leaves."""
    environment = task.brief.environment
    spec = SandboxSpec({}, 60.0, LABELS, workdir=environment.workdir, folders=folders)
    with BACKEND.open(spec) as sandbox:
        sandbox.put(environment.files)
        for call in task.sealed.reference:
            done = sandbox.call(["/bin/bash", "-c", call.arguments["command"]], 20.0)
            assert done.exit_code == 0, done.output
        return sandbox.tree(".").files


def graded(task: TaskManifest, *sets: Iterable[File]) -> list[Verdict]:
    grades = grade_sets(task, [tuple(files) for files in sets], BACKEND.open, LABELS)
    return [grade.verdict for grade in grades]


def bytes_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_harbor_folder_becomes_a_task(tmp_path: Path) -> None:
    task = read_harbor(good_folder(tmp_path / "task"))
    assert (task.family, task.family_version, task.rules) == ("harbor", "harbor@1.4", ())
    assert (task.source.uri, task.source.licence) == ("shop/order-totals", "MIT")
    environment = task.brief.environment
    assert [file.path for file in environment.files] == ["orders.csv"]
    assert (environment.workdir, environment.image) == ("/app", None)
    assert environment.variables == {"ORDERS_YEAR": "2026"}
    assert (task.brief.budget.seconds, task.sealed.grader.seconds) == (30.0, 20.0)
    assert task.brief.artifacts == ("./",)
    assert [tool.name for tool in task.brief.tools] == ["bash", "submit"]
    expected = [file.path for file in task.sealed.grader.expected]
    assert expected == ["check.py", "expected.csv", "test.sh"]
    assert task.outside["task.toml:metadata.category"] == '"data"'
    assert task.outside["task.toml:environment.memory_mb"] == "256"


def test_the_reference_passes_and_nothing_fails(tmp_path: Path) -> None:
    task = read_harbor(good_folder(tmp_path / "task"))
    verdicts = graded(task, solve(task), task.brief.environment.files, ())
    assert verdicts == [Verdict.PASSED, Verdict.FAILED, Verdict.FAILED]


def test_the_grader_runs_in_the_agents_tree_with_its_modes(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    write(
        folder, "tests/test.sh", 'pwd; ls -A; [ -x a/run ] && echo 1 > "/logs/verifier/reward.txt"'
    )
    task = read_harbor(folder)
    run = File(path="a/run", content="", mode=0o750)
    (grade,) = grade_sets(task, [[run]], BACKEND.open, LABELS)
    assert grade.verdict is Verdict.PASSED
    assert "'/app\\na\\n'" in grade.checks[0].evidence


@pytest.mark.parametrize(
    ("json_text", "text", "verdict"),
    [
        ('{"reward": 1}', None, Verdict.PASSED),
        ('{"reward": 0.99}', None, Verdict.FAILED),
        ('{"reward": 1, "style": 0}', None, Verdict.PASSED),
        ('{"a": 1, "b": 1.0}', None, Verdict.PASSED),
        ('{"a": 1, "b": 0}', None, Verdict.FAILED),
        ('{"reward": 0}', "1", Verdict.FAILED),
        (None, "1.0", Verdict.PASSED),
        (None, " 0\n", Verdict.FAILED),
        ("", "1", Verdict.UNGRADED),
        ("{}", None, Verdict.UNGRADED),
        ("[1]", None, Verdict.UNGRADED),
        ('{"reward": NaN}', None, Verdict.UNGRADED),
        ('{"reward": 1e999}', None, Verdict.UNGRADED),
        ('{"reward": true}', None, Verdict.UNGRADED),
        ('{"reward": "1"}', None, Verdict.UNGRADED),
        (None, "nan", Verdict.UNGRADED),
        (None, "passed", Verdict.UNGRADED),
        (None, None, Verdict.UNGRADED),
    ],
)
def test_a_reward_is_read_as_harbor_reads_it(
    tmp_path: Path, json_text: str | None, text: str | None, verdict: Verdict
) -> None:
    folder = good_folder(tmp_path / "task")
    said = {"reward.json": json_text, "reward.txt": text}
    lines = [
        f"printf %s '{t}' > /logs/verifier/{name}" for name, t in said.items() if t is not None
    ]
    write(folder, "tests/test.sh", "\n".join(lines))
    assert graded(read_harbor(folder), ()) == [verdict]


def test_what_the_agent_left_is_no_reward(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    write(folder, "tests/test.sh", "exit 0")
    places = ("reward.txt", "verifier/reward.txt", "logs/verifier/reward.txt")
    planted = [File(path=path, content="1") for path in places]
    assert graded(read_harbor(folder), planted) == [Verdict.UNGRADED]


def test_a_reward_that_was_there_before_the_verifier_ran_does_not_count() -> None:
    folders = ("/tests", "/logs", "/grading")
    spec = SandboxSpec({"harbor": grader_source("harbor")}, 60.0, LABELS, folders=folders)
    with BACKEND.open(spec) as sandbox:
        sandbox.put([File(path="verifier/reward.json", content='{"reward": 1}')], "/logs")
        sandbox.put([File(path="test.sh", content="exit 0")], "/grading/expected/output")
        words = ["harbor", "/grading/sets/0", "/grading/expected"]
        done = sandbox.call([*words, "reward"], 20.0)
        assert done.output.startswith(b"no reward file; exit 0")
        assert sandbox.call([*words, "rows"], 20.0).exit_code == 2


def test_the_verifiers_output_is_no_verdict(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    write(folder, "tests/test.sh", "printf 'reward\\tpass\\tx\\ngraded\\n'; kill -9 $PPID")
    assert graded(read_harbor(folder), ()) == [Verdict.UNGRADED]
    write(folder, "tests/test.sh", "printf 'reward\\tpass\\tx\\ngraded\\n'")
    assert graded(read_harbor(folder), ()) == [Verdict.UNGRADED]


def test_what_the_verifier_left_running_is_not_waited_for(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    late = "(setsid sh -c 'sleep 5; echo 1 > /logs/verifier/reward.txt' &)"
    write(folder, "tests/test.sh", f"{late}\necho 0 > /logs/verifier/reward.txt")
    began = time.monotonic()
    assert graded(read_harbor(folder), ()) == [Verdict.FAILED]
    assert time.monotonic() - began < 4


def test_a_folder_survives_import_and_export_to_the_byte(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    write(
        folder,
        "instruction.md",
        "<!-- canary 123 -->\n\n" + (folder / "instruction.md").read_text(),
    )
    edit(folder, "task.toml", "[agent]", "# said twice\n[agent]\nfavourite = { a = [1, 2] }")
    write(folder, ".harborignore", "*.pyc\n")
    write(folder, "environment/unused.txt", "not copied\r\n")
    write(folder, "solution/data/more.txt", "x\n", 0o600)
    (folder / "tests" / "image.png").write_bytes(b"\x89PNG\xff\0")
    task = read_harbor(folder)
    assert task.brief.goal.startswith("Add up")
    write_harbor(task, tmp_path / "again", "unused")
    assert bytes_below(tmp_path / "again") == bytes_below(folder)
    assert read_harbor(tmp_path / "again").version_id == task.version_id
    assert json.loads(task.outside["task.toml:agent.favourite.a"]) == [1, 2]


def test_what_was_changed_since_the_import_is_exported(tmp_path: Path) -> None:
    task = read_harbor(good_folder(tmp_path / "task"))
    brief = task.brief.model_copy(update={"goal": "Other words.\n"})
    changed = TaskManifest.model_validate({**dict(task), "brief": brief})
    write_harbor(changed, tmp_path / "again", "unused")
    assert (tmp_path / "again" / "instruction.md").read_text() == "Other words.\n"
    gone = brief.model_copy(update={"environment": Environment(files=(), workdir="/app")})
    with pytest.raises(FormatError, match=r"orders\.csv is no longer part"):
        harbor_files(TaskManifest.model_validate({**dict(task), "brief": gone}), "unused")


def test_a_lone_solution_is_the_call_itself() -> None:
    (call,) = reference_of([File(path="solve.sh", content=SOLVE)], {})
    assert call.arguments == {"command": SOLVE}


@pytest.mark.parametrize("folders", [(), ("/solution",)])
def test_a_solution_of_several_files_runs_beside_them(
    tmp_path: Path, folders: tuple[str, ...]
) -> None:
    folder = good_folder(tmp_path / "task")
    text = (
        '#!/bin/bash\nhere=$(dirname "$0")\ncat $here/a/b.txt $here/c.bin > out; echo $X >> out\n'
    )
    write(folder, "solution/solve.sh", text)
    write(folder, "solution/a/b.txt", "it's `$x`\n" * (MAX_COMMAND // 10))
    (folder / "solution" / "c.bin").write_bytes(bytes(range(256)) * 400)
    edit(folder, "task.toml", "[environment]", '[solution.env]\nX = "it\'s"\n[environment]')
    task = read_harbor(folder)
    commands = [call.arguments["command"] for call in task.sealed.reference]
    assert len(commands) > 1
    assert max(len(command.encode()) for command in commands) <= MAX_COMMAND
    assert task.brief.environment.folders == ("/solution",)
    (out,) = [file for file in solve(task, folders) if file.path == "out"]
    wanted = b"it's `$x`\n" * (MAX_COMMAND // 10) + bytes(range(256)) * 400 + b"it's\n"
    assert out.data() == wanted


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_sabotaged_folder_is_refused_by_its_field_or_left_to_screening(
    tmp_path: Path, fault: Fault
) -> None:
    folder = fault.folder(tmp_path / fault.name)
    if fault.reasons:
        assert read_harbor(folder).brief.goal
        return
    with pytest.raises(FormatError) as caught:
        read_harbor(folder)
    assert fault.field in (caught.value.field, caught.value.path)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("memory_mb = 256", "gpus = 1", "environment.gpus"),
        ("memory_mb = 256", 'os = "windows"', "environment.os"),
        ("memory_mb = 256", 'workdir = "/tests/x"', "environment.workdir"),
        ("memory_mb = 256", '[[environment.mcp_servers]]\nname = "x"', "environment.mcp_servers"),
        ("memory_mb = 256", 'env = { KEY = "${KEY}" }', "environment.env.KEY"),
        ("timeout_sec = 30.0", 'timeout_sec = "30"', "agent.timeout_sec"),
        ("timeout_sec = 30.0", "timeout_sec = nan", "agent.timeout_sec"),
        ("timeout_sec = 30.0", f"timeout_sec = {10**400}", "agent.timeout_sec"),
        ('schema_version = "1.4"', 'schema_version = "2.0"', "schema_version"),
        ('schema_version = "1.4"', 'artifacts = ["/data/x"]', "artifacts"),
        ("[verifier]", '[[verifier.collect]]\ncommand = "x"\n[verifier]', "verifier.collect"),
    ],
)
def test_what_no_sandbox_has_is_refused_by_name(
    tmp_path: Path, old: str, new: str, field: str
) -> None:
    folder = good_folder(tmp_path / "task")
    edit(folder, "task.toml", old, new)
    with pytest.raises(FormatError) as caught:
        read_harbor(folder)
    assert (caught.value.path, caught.value.field) == ("task.toml", field)


@pytest.mark.parametrize(
    "name", ["instruction.md", "tests/test.sh", "solution/solve.sh", "task.toml"]
)
def test_an_absent_file_is_named(tmp_path: Path, name: str) -> None:
    folder = good_folder(tmp_path / "task")
    (folder / name).unlink()
    with pytest.raises(FormatError, match="missing") as caught:
        read_harbor(folder)
    assert caught.value.path == name


def test_the_fields_of_earlier_schemas_are_read(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "old-task")
    legacy = (
        'version = "1.0"\n[environment]\nmemory = "2G"\nstorage = "10G"\nallow_internet = true\n'
    )
    write(folder, "task.toml", legacy)
    task = read_harbor(folder)
    assert (task.family_version, task.source.uri) == ("harbor@1.0", "old-task")
    assert (task.source.licence, task.brief.budget.seconds) == ("unknown", 600.0)
    assert task.outside["task.toml:environment.memory"] == '"2G"'


CONTEXT = {
    path: File(path=path, content=path, mode=0o755 if path.endswith("run.sh") else 0o644)
    for path in (
        "environment/a.csv",
        "environment/b.csv",
        "environment/d/x.txt",
        "environment/d/e/run.sh",
    )
}


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ("WORKDIR /app\nCOPY a.csv .", {"a.csv": "a.csv"}),
        ("WORKDIR /app\nCOPY a.csv data.csv", {"data.csv": "a.csv"}),
        ("WORKDIR /app\nCOPY *.csv /app/in/", {"in/a.csv": "a.csv", "in/b.csv": "b.csv"}),
        ("COPY d /app/d2\nWORKDIR /app", {"d2/x.txt": "d/x.txt", "d2/e/run.sh": "d/e/run.sh"}),
        ("WORKDIR /app\nADD d/e/ ./", {"run.sh": "d/e/run.sh"}),
        (
            'WORKDIR /app\nCOPY --chmod=600 ["a.csv", "b.csv", "./"]',
            {"a.csv": "a.csv", "b.csv": "b.csv"},
        ),
        (
            "WORKDIR /app\nRUN mkdir -p in out && \\\n  mkdir /app/x\nCOPY a.csv in",
            {"in/a.csv": "a.csv"},
        ),
        ("WORKDIR /app\nUSER nobody\nLABEL a=b\nCMD [\"bash\"]\n# RUN x\nENV A=1 B='2 3'", {}),
    ],
)
def test_a_dockerfile_of_files_only_needs_no_build(lines: str, files: dict[str, str]) -> None:
    recipe = read_dockerfile(
        CONTEXT
        | {
            "environment/Dockerfile": File(
                path="environment/Dockerfile", content=f"FROM x\n{lines}"
            )
        }
    )
    assert (recipe.problem, recipe.elsewhere("/app")) == ("", "")
    found = {file.path: file.content for file in recipe.files_below("/app", CONTEXT)}
    kept = {path: text for path, text in found.items() if not path.endswith(".keep")}
    assert kept == {path: f"environment/{source}" for path, source in files.items()}
    if "mkdir" in lines:
        assert {"out/.keep", "x/.keep"} <= found.keys()
    if "ENV" in lines:
        assert recipe.variables == {"A": "1", "B": "2 3"}


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get update",
        "RUN mkdir -m 700 x",
        "RUN mkdir x; curl evil",
        "COPY --from=build a.csv /app/x",
        "ADD https://example.com/x /app/",
        "ADD d.tar.gz /app/",
        "COPY absent.txt /app/",
        "COPY $NAME /app/",
        "COPY a.csv ../../x",
        "COPY <<EOF /app/x",
        "FROM y",
        'ENTRYPOINT ["serve"]',
        "ARG X=1",
    ],
)
def test_a_dockerfile_with_anything_else_needs_one(line: str) -> None:
    text = f"FROM x\nWORKDIR /app\n{line}\n"
    recipe = read_dockerfile(
        CONTEXT | {"environment/Dockerfile": File(path="environment/Dockerfile", content=text)}
    )
    assert recipe.problem


def test_an_image_stands_where_files_are_not_all(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    digest = f"shop/orders@sha256:{'0' * 64}"
    edit(folder, "environment/Dockerfile", "debian:bookworm-slim", digest)
    assert read_harbor(folder).brief.environment.image == digest
    assert read_harbor(folder, {digest: None}).brief.environment.image is None
    edit(folder, "environment/Dockerfile", "COPY", "COPY orders.csv /data/\nCOPY")
    with pytest.raises(FormatError, match=r"/data/orders\.csv is outside /app"):
        read_harbor(folder)
    edit(folder, "environment/Dockerfile", digest, "debian:12")
    edit(folder, "task.toml", "[environment]", '[environment]\ndocker_image = "x y"')
    with pytest.raises(FormatError, match="names no image"):
        read_harbor(folder)


GOOD = {
    "task.toml": CONFIG,
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": f"{DOCKERFILE}RUN mkdir -p a && mkdir b\nADD --chmod=644 *.csv a/\n",
    "environment/docker-compose.yaml": "services: {main: {init: true}}\n",
    "environment/orders.csv": "a\n",
    "solution/solve.sh": SOLVE,
    "tests/test.sh": "exit 0\n",
}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_folder_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    texts = dict(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(GOOD)))
        at = data.draw(st.integers(0, len(texts[name])))
        end = data.draw(st.integers(at, min(len(texts[name]), at + 12)))
        new = data.draw(
            st.text(st.sampled_from(list("=[]{}\"'\\$/.,- \n\t#aA1:*\x7f\xa0")), max_size=8)
        )
        texts[name] = texts[name][:at] + new + texts[name][end:]
    files = {path: File(path=path, content=text) for path, text in texts.items()}
    with contextlib.suppress(FormatError):
        task = harbor_of(files, "task", KNOWN_BASES)
        again = harbor_files(task, "unused")
        assert {path: file.content for path, file in again.items()} == texts


def place(sandbox: Sandbox, files: dict[str, File], source: str, target: str) -> None:
    found = {
        path.removeprefix(source): file for path, file in files.items() if path.startswith(source)
    }
    sandbox.put((file.model_copy(update={"path": path}) for path, file in found.items()), target)


def verify(files: dict[str, File], left: Iterable[File], workdir: str) -> dict[str, int] | None:
    """Run an exported verifier in a sandbox laid out like its image; return the reward."""
    spec = SandboxSpec({}, 60.0, LABELS, workdir=workdir, folders=("/tests", "/logs"))
    with BACKEND.open(spec) as sandbox:
        place(sandbox, files, "tests/", "/tests")
        sandbox.put(left)
        done = sandbox.call(["/bin/bash", "/tests/test.sh"], 30.0)
        shown = sandbox.call(["/bin/cat", "/logs/verifier/reward.json"], 5.0)
        assert (shown.exit_code == 0) == (done.exit_code == 0), done.output
        return json.loads(shown.output) if shown.exit_code == 0 else None


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_task_is_solved_by_its_script_and_graded_by_its_verifier(
    tmp_path: Path, family: str
) -> None:
    rule = next(iter(FAMILIES[family].rules))
    task = real_task(rule, family=family)
    if task.sealed.user or "modes" in task.sealed.grader.checks:
        with pytest.raises(ManifestError, match=r"Harbor (has no place|changes the modes)"):
            harbor_files(task, IMAGE)
        return
    files = harbor_files(task, IMAGE)
    workdir = task.brief.environment.workdir
    spec = SandboxSpec({}, 60.0, LABELS, workdir=workdir, folders=("/opt/flywheel", "/solution"))
    with BACKEND.open(spec) as sandbox:
        place(sandbox, files, "environment/programs/", "/opt/flywheel/programs")
        place(sandbox, files, "environment/bin/", "/opt/flywheel/bin")
        place(sandbox, files, "environment/files/", ".")
        place(sandbox, files, "solution/", "/solution")
        done = sandbox.call(["/bin/bash", "/solution/solve.sh"], 30.0)
        left = sandbox.tree(".").files
    reward = verify(files, left, workdir)
    assert reward == {"reward": 1} | dict.fromkeys(task.sealed.grader.checks, 1), done.output
    assert (verify(files, task.brief.environment.files, workdir) or {})["reward"] == 0
    write_harbor(task, tmp_path / "task", IMAGE)
    assert read_harbor(tmp_path / "task") == task


def test_an_exported_verifier_whose_grader_says_nothing_writes_nothing() -> None:
    task = real_task("keep-last")
    files = harbor_files(task, IMAGE)
    lines = "".join(f"{check}\tpass\tx\n" for check in task.sealed.grader.checks)
    for broken in (
        f"print({lines!r} + 'bye')",
        f"print({lines!r} + 'graded'); raise SystemExit(3)",
        "print('rows\\tpass\\tx\\ngraded')",
        "raise SystemExit(0)",
    ):
        broken_files = files | {"tests/grader.py": File(path="tests/grader.py", content=broken)}
        assert verify(broken_files, (), "/workspace") is None


def test_an_exported_folder_that_was_edited_is_not_taken_for_its_manifest(tmp_path: Path) -> None:
    write_harbor(real_task("keep-last"), tmp_path / "task", IMAGE)
    (tmp_path / "task" / "instruction.md").write_text("Something else.")
    with pytest.raises(FormatError, match="changed since it was exported"):
        read_harbor(tmp_path / "task")


def test_an_exported_goal_says_how_to_call_the_tools_and_what_to_leave() -> None:
    task = real_task("keep-last")
    text = harbor_files(task, IMAGE)["instruction.md"].content
    assert task.brief.goal in text
    assert "`/opt/flywheel/bin/deduplicate --column=COLUMN --keep=first|last`" in text
    assert f"Leave your result there as `{task.brief.artifacts[0]}`." in text


def test_a_thousand_tasks_with_broken_ones_among_them_are_read_in_seconds(tmp_path: Path) -> None:
    template = good_folder(tmp_path / "template")
    tasks = tmp_path / "tasks"
    for number in range(1000):
        folder = tasks / f"t{number:04}"
        shutil.copytree(template, folder, copy_function=os.link)
        (folder / "task.toml").unlink()
        config = CONFIG.replace("order-totals", f"order-totals-{number}")
        write(folder, "task.toml", config if number % 50 else "broken = = toml")
    (tasks / "t0001" / "tests" / "link").symlink_to("/etc/passwd")
    (tasks / "t0002" / "environment" / "Dockerfile").unlink()
    write(tasks / "t0002", "environment/Dockerfile", DOCKERFILE + "RUN make\n")
    shutil.rmtree(tasks / "t0003")
    shutil.copytree(tasks / "t0004", tasks / "t0003")
    write_manifest(real_task("keep-last"), tasks / "native")
    shutil.make_archive(str(tasks / "packed"), "gztar", tmp_path, "template")
    (tasks / "empty\x1b[2J").mkdir()
    (tasks / "notes.txt").write_text("hello")
    (tasks / "loop").symlink_to(tasks)
    began = time.process_time()
    imported = read_folder(tasks)
    assert time.process_time() - began < 8
    refused = {item.path for item in imported.refused}
    broken = {f"t{number:04}/task.toml" for number in range(0, 1000, 50)}
    assert broken <= refused
    assert len(refused) == len(imported.refused) == len(broken) + 6
    assert len(imported.tasks) == 1000 - 20 - 3 + 2
    assert all(item.reason and item.path.isprintable() for item in imported.refused)
    (again,) = [item for item in imported.refused if item.path == "t0004"]
    assert again.field == "version_id"


@pytest.mark.parametrize("base", ["python:3.12-slim", "debian:bookworm-slim", "ubuntu:24.04"])
def test_a_stand_in_for_the_named_image_is_on_record(tmp_path: Path, base: str) -> None:
    folder = good_folder(tmp_path / "task")
    edit(folder, "environment/Dockerfile", "debian:bookworm-slim", base)
    task = read_harbor(folder)
    assert (task.brief.environment.image, task.outside[BASE]) == (None, base)
    write_harbor(task, tmp_path / "again", IMAGE)
    assert bytes_below(tmp_path / "again") == bytes_below(folder)


def test_an_image_that_nothing_stands_in_for_is_taken_by_its_reference(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    edit(folder, "environment/Dockerfile", "debian:bookworm-slim", "shop/orders:1.0")
    task = read_harbor(folder)
    assert task.brief.environment.image == "shop/orders:1.0"
    assert BASE not in task.outside


@given(
    st.dictionaries(
        st.sampled_from(["a.txt", "lib/b c.py", "it's.cfg"]),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200),
        min_size=1,
    )
)
def test_the_texts_of_a_solution_are_found_in_its_calls(texts: dict[str, str]) -> None:
    files = [File(path=path, content=text) for path, text in texts.items()]
    script = reference_of([File(path="solve.sh", content="true\n"), *files], {})
    found = [text for call in script for text in texts_of(call.arguments["command"])]
    assert found == [text for text in ["true\n", *texts.values()] if text]


def test_a_call_of_somebody_elses_is_its_own_text() -> None:
    assert texts_of("echo 'it is") == ["echo 'it is"]
    torn = "home=/solution; [ -w /solution ] || home=/tmp/solution\nprintf %s 'x"
    assert texts_of(torn) == [torn]
