"""Each settings tool: what it does, and what it says where it can't."""

import json
from pathlib import Path

import pytest

from tests.programs import call, refusal

BASE = "[web]\nHost = red\nwait = 5\n\n[db]\nname = blue\n"
OVER = "[web]\nwait = 8\n\n[new]\nmode = on%(x)s\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"base.ini": BASE, "over.ini": OVER, "in.csv": "a,b\n1,2\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def settings(folder: Path) -> dict[str, str]:
    """The settings in hand, in order."""
    call(folder, "write-settings", file="now.json", format="json")
    return dict(json.loads((folder / "now.json").read_text()))


def test_read_ini_prints_the_settings_in_the_order_of_the_file(folder: Path) -> None:
    assert call(folder, "read-ini", file="base.ini") == "settings `web.Host` `web.wait` `db.name`\n"
    assert settings(folder) == {"web.Host": "red", "web.wait": "5", "db.name": "blue"}


BOTH = {"web.Host": "red", "db.name": "blue", "new.mode": "on%(x)s"}


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("merge-ini", {"file": "over.ini", "prefer": "added"}, BOTH | {"web.wait": "8"}),
        ("merge-ini", {"file": "over.ini", "prefer": "loaded"}, BOTH | {"web.wait": "5"}),
        (
            "rename-key",
            {"key": "db.name", "to": "db.title"},
            {"web.Host": "red", "web.wait": "5", "db.title": "blue"},
        ),
        ("drop-key", {"key": "web.Host"}, {"web.wait": "5", "db.name": "blue"}),
        (
            "scale-key",
            {"key": "web.wait", "factor": "1000"},
            {"web.Host": "red", "web.wait": "5000", "db.name": "blue"},
        ),
        (
            "set-default",
            {"key": "db.size", "value": "3"},
            {"web.Host": "red", "web.wait": "5", "db.name": "blue", "db.size": "3"},
        ),
        (
            "set-default",
            {"key": "db.name", "value": "3"},
            {"web.Host": "red", "web.wait": "5", "db.name": "blue"},
        ),
    ],
)
def test_a_settings_tool_changes_the_settings(
    folder: Path, tool: str, arguments: dict[str, str], result: dict[str, str]
) -> None:
    call(folder, "read-ini", file="base.ini")
    assert call(folder, tool, **arguments) == "done\n"
    assert settings(folder) == result


def test_write_settings_saves_env_lines_in_capitals(folder: Path) -> None:
    call(folder, "read-ini", file="base.ini")
    assert call(folder, "write-settings", file="out.env", format="env") == "written\n"
    assert (folder / "out.env").read_text() == "WEB_HOST=red\nWEB_WAIT=5\nDB_NAME=blue\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read-ini", {"file": "no.ini"}, "cannot open `no.ini`: No such file or directory"),
        ("read-ini", {"file": "in.csv"}, "`in.csv` is not an INI file"),
        ("read-ini", {"file": "twice.ini"}, "`twice.ini` is not an INI file"),
        ("merge-ini", {"file": "no.ini", "prefer": "added"}, "cannot open `no.ini`: No such file"),
        ("rename-key", {"key": "a.b", "to": "a.c"}, "no setting `a.b`"),
        (
            "rename-key",
            {"key": "db.name", "to": "web.wait"},
            "there is a setting `web.wait` already",
        ),
        ("drop-key", {"key": "web.host"}, "no setting `web.host`"),
        ("scale-key", {"key": "a.b", "factor": "60"}, "no setting `a.b`"),
        ("scale-key", {"key": "web.Host", "factor": "60"}, "`red` is not a whole number"),
        ("write-settings", {"file": ".", "format": "env"}, "cannot open `.`: Is a directory"),
    ],
)
def test_a_settings_tool_refuses_in_words_and_leaves_the_settings_as_they_were(
    folder: Path, tool: str, arguments: dict[str, str], message: str
) -> None:
    (folder / "twice.ini").write_text("[a]\nb = 1\nb = 2\n")
    call(folder, "read-ini", file="base.ini")
    assert refusal(folder, tool, **arguments).startswith(message)
    assert settings(folder) == {"web.Host": "red", "web.wait": "5", "db.name": "blue"}
