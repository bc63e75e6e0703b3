"""The command line: help that teaches, errors that name the file, the field and the fix."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.endings import plain_errors
from schemas.config import CycleConfig

runner = CliRunner()


def test_the_default_configuration_can_be_printed_edited_and_read_back() -> None:
    result = runner.invoke(app, ["config"])
    assert result.exit_code == 0
    assert CycleConfig.model_validate_json(result.stdout) == CycleConfig()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"draw": {"attemps": 3}}', "draw.attemps: Extra inputs are not permitted"),
        ('{"probe": {"tasks": 0}}', "probe.tasks: Input should be greater than or equal to 1"),
        ('{"draw": {"attempts": 3}}', "train.rows exceeds draw.attempts"),
        ("{", "Invalid JSON"),
    ],
)
def test_a_wrong_configuration_names_file_and_field(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "cycle.json"
    path.write_text(content)
    result = runner.invoke(app, ["run", "--config", str(path), "--home", str(tmp_path / "home")])
    assert result.exit_code != 0
    assert str(path) in result.output
    assert complaint in result.output
    assert not (tmp_path / "home").exists()


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    result = runner.invoke(app, ["run", "--config", str(tmp_path / "none.json")])
    assert result.exit_code != 0
    assert "none.json: No such file" in result.output


def test_a_report_without_a_store_says_what_to_do(tmp_path: Path) -> None:
    result = runner.invoke(app, ["report", "--home", str(tmp_path)])
    assert result.exit_code != 0
    assert "run a cycle first" in result.output


def test_every_command_explains_itself() -> None:
    for command in ("run", "report", "config"):
        result = runner.invoke(app, [command, "--help"])
        assert result.exit_code == 0
        assert len(result.output.split()) > 20


def test_an_unknown_sandbox_is_refused_with_the_choices(tmp_path: Path) -> None:
    result = runner.invoke(app, ["run", "--sandbox", "chroot", "--home", str(tmp_path / "home")])
    assert result.exit_code != 0
    assert "'auto', 'bubblewrap' or 'docker'" in result.output
    assert json.dumps("Traceback") not in result.output


def imports_while_interrupted() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
    except KeyboardInterrupt:
        raise RuntimeError("a library's own words for it") from None


def test_an_interruption_is_one_line_whatever_a_library_makes_of_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit, match=r"^interrupted: what is done is kept"), plain_errors():
        imports_while_interrupted()
    assert signal.getsignal(signal.SIGINT) is before
