"""The Prefect server of one run: it starts from nothing and never outlives its owner."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from flows.server import Server, serving
from flywheel.errors import ConfigError

OWNER = """
import sys, time
from pathlib import Path
from flows.server import serving
with serving(Path(sys.argv[1])) as server:
    server.wait()
    print(server.url, server.process.pid, flush=True)
    time.sleep(600)
"""


def answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{url}/health", timeout=2).status == 200)
    except (urllib.error.URLError, OSError):
        return False


def test_a_server_ends_with_a_killed_owner(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert owner.stdout is not None
    url, pid = owner.stdout.readline().split()
    assert answers(url)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 15
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not answers(url)
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_is_configured_is_used_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with serving(tmp_path) as server:
        assert (server.url, server.process) == ("http://127.0.0.1:9/api", None)
    assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:9/api"


def test_a_server_that_ends_at_once_is_an_error_and_not_a_wait() -> None:
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    process.wait()
    with pytest.raises(ConfigError, match="ended with code 3"):
        Server("http://127.0.0.1:9/api", process).wait()
