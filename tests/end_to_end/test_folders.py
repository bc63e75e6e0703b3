"""Folders of tasks through the command line: screened, resumed after kill -9, asked of a model."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from flywheel.formats.manifest import write_manifest
from schemas.screening import ScreenReport, ScreenVerdict
from tests.model_server import (
    ALWAYS_ONE,
    BROKEN,
    DUPLICATE,
    GOOD,
    INJECTION,
    TRAVERSAL,
    UNSOLVABLE,
    VAGUE,
    serve,
)
from tests.real_tasks import real_task
from tests.sabotage import good_folder

Environment = dict[str, str]


def flywheel(
    environment: Environment, *arguments: str, status: int = 0
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, done.stderr[-3000:]
    return done


def screen(environment: Environment, folder: Path, home: Path) -> str:
    command = ["screen", str(folder), "--home", str(home), "--sandbox", "bubblewrap"]
    return flywheel(environment, *command).stderr


def receipts(home: Path, folder: Path) -> list[ScreenReport]:
    (path,) = (home / "reports").glob(f"{folder.name}-*.receipts.jsonl")
    lines = path.read_text("utf-8").splitlines()
    return [ScreenReport.model_validate_json(line) for line in lines]


def page_of(home: Path, folder: Path) -> str:
    (path,) = (home / "reports").glob(f"{folder.name}-*.html")
    return path.read_text("utf-8")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two generated tasks, a Harbor task, one that is forged, and two that are broken."""
    folder = tmp_path / "mixed"
    write_manifest(real_task("keep-last"), folder / "orders")
    write_manifest(real_task("first-line", family="permissions"), folder / "permissions")
    good_folder(folder / "harbor")
    good_folder(folder / "misspelt")
    config = folder / "misspelt" / "task.toml"
    config.write_text(config.read_text().replace("timeout_sec", "timeout_secs"))
    (folder / "empty").mkdir()
    return folder


def test_a_mixed_folder_is_screened_listed_and_not_screened_twice(
    environment: Environment, tmp_path: Path, mixed: Path
) -> None:
    home = tmp_path / "home"
    said = screen(environment, mixed, home)
    assert "3 tasks read, 2 refused" in said
    assert "3 accepted" in said
    first = receipts(home, mixed)
    assert {report.verdict for report in first} == {ScreenVerdict.ACCEPTED}
    page = page_of(home, mixed)
    for text in ("misspelt", "agent.timeout_secs", "empty", "3 accepted", "shadows-the-graders"):
        assert text in page
    screen(environment, mixed, home)
    assert receipts(home, mixed) == first


def test_a_task_that_lies_about_where_it_comes_from_is_a_strangers(
    environment: Environment, tmp_path: Path
) -> None:
    """One file of a generated task is changed: no family makes it, so nobody vouches for it."""
    folder, home = tmp_path / "forged", tmp_path / "home"
    write_manifest(real_task("keep-last"), folder / "orders")
    goal = folder / "orders" / "task.yaml"
    goal.write_text(goal.read_text("utf-8").replace("order", "sale", 1), "utf-8")
    screen(environment, folder, home)
    with duckdb.connect(str(home / "flywheel.duckdb"), read_only=True) as store:
        kinds = store.execute("SELECT source->>'kind' FROM tasks").fetchall()
    assert kinds == [("imported",)]


def test_screening_survives_kill_9_and_loses_nothing(
    environment: Environment, tmp_path: Path
) -> None:
    folder, home = tmp_path / "many", tmp_path / "home"
    flywheel(environment, "generate", str(folder), "--count", "12", "--families", "orders,logs")
    command = ["screen", str(folder), "--home", str(home), "--sandbox", "bubblewrap"]
    rng = random.Random(1)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *command],
            env=environment,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(2.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert "12 accepted" in flywheel(environment, *command).stderr
    assert len({report.version_id for report in receipts(home, folder)}) == 12
    with duckdb.connect(str(home / "flywheel.duckdb"), read_only=True) as store:
        assert store.execute("SELECT count(*) FROM screen_reports").fetchone() == (12,)
    left = [
        entry.name
        for entry in Path("/proc").glob("[0-9]*")
        if _name(entry).startswith(f"bwrap of {socket.gethostname()} {process.pid} ")
    ]
    assert left == []


def test_control_c_is_one_line_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """As on a terminal: the whole group gets it, the run's own Prefect server included."""
    folder, home = tmp_path / "many", tmp_path / "home"
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    flywheel(environment, "generate", str(folder), "--count", "16")
    command = ["screen", str(folder), "--home", str(home), "--sandbox", "bubblewrap"]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *command],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (home / "flywheel.duckdb").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("interrupted: what is done is kept")
    assert "Traceback" not in said
    assert "Exception" not in said


def _name(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def test_proposals_of_a_model_get_no_trust_and_their_yield_is_told(
    environment: Environment, tmp_path: Path
) -> None:
    answers = (GOOD, BROKEN, UNSOLVABLE, VAGUE, DUPLICATE, INJECTION, TRAVERSAL, ALWAYS_ONE)
    wishes, home = tmp_path / "wishes", tmp_path / "home"
    wishes.mkdir()
    for number in range(len(answers)):
        (wishes / f"{number}.md").write_text("count the lines of a log")
    with serve(answers) as server:
        done = flywheel(
            {**environment, "FLYWHEEL_API_KEY": "secret-key"},
            *("solicit", str(tmp_path / "answers"), "--requirements", str(wishes)),
            *("--url", server.url, "--model", "stand-in", "--prompt-price", "1"),
            *("--answer-price", "2", "--home", str(home), "--sandbox", "bubblewrap"),
        )
    assert "model/stand-in: 8 proposed, 6 read, 1 accepted" in done.stderr
    assert "an accepted one cost $0.0" in " ".join(done.stderr.split())
    assert "secret-key" not in done.stderr + done.stdout
    reasons = sorted(report.reason for report in receipts(home, tmp_path / "answers"))
    assert reasons == [
        "accepted",
        "not-initial-state-fails",
        "not-outputs-named",
        "not-outputs-named",
        "not-reference-passes",
    ]
    assert not (tmp_path / "escaped.txt").exists()
    page = page_of(home, tmp_path / "answers")
    assert "<script>alert" not in page
    waiting = flywheel(environment, "review", "list", "--home", str(home)).stdout
    item = next(line.split()[0] for line in waiting.splitlines() if "not-outputs-named" in line)
    flywheel(environment, *("review", "accept", item, "--author", "Ada", "--home", str(home)))
    told = flywheel(environment, "review", "list", "--home", str(home)).stdout
    assert "accept by Ada" in told
    missing = ("review", "accept", "rev-none", "--author", "Ada", "--home", str(home))
    assert "no such item" in flywheel(environment, *missing, status=1).stderr


def test_the_schema_on_the_command_line_is_the_committed_one(environment: Environment) -> None:
    printed = json.loads(flywheel(environment, "schema").stdout)
    committed = Path(__file__).parents[2] / "schemas" / "task.schema.json"
    assert printed == json.loads(committed.read_text("utf-8"))


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    missing = flywheel(dict(os.environ), "screen", str(tmp_path / "none"), status=1)
    assert missing.stderr.strip() == f"ConfigError: {tmp_path / 'none'}: there is no such folder"
