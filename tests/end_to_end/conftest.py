"""Whole cycles through the command line, against one real Prefect server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.server import serving

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL: dict[str, Any] = json.loads((Path(__file__).parent / "small.json").read_text("utf-8"))
"""A cycle of seconds: too small to learn from, whole in every stage."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prefect server that lives as long as the tests."""
    before = dict(os.environ)
    with serving(tmp_path_factory.mktemp("server")) as started:
        started.wait()
        url = started.url
        os.environ.clear()
        os.environ.update(before)
        yield url


def command(home: Path, config: dict[str, Any]) -> list[str]:
    """The command line of one cycle in `home`."""
    home.mkdir(parents=True, exist_ok=True)
    path = home.parent / f"{home.name}.json"
    path.write_text(json.dumps({"sandbox": "bubblewrap", **config}))
    run = [sys.executable, "-m", "flows.cli", "run"]
    return [*run, "--home", str(home), "--config", str(path)]


@pytest.fixture(scope="session")
def environment(server: str) -> dict[str, str]:
    """The environment in which cycles run."""
    return {**os.environ, "PREFECT_API_URL": server, "PREFECT_LOGGING_LEVEL": "CRITICAL"}


@pytest.fixture(scope="session")
def run_cycle(environment: dict[str, str]) -> Run:
    """Run one cycle to its end."""

    def run(home: Path, config: dict[str, Any] | None = None) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            command(home, config or SMALL),
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    return run


@pytest.fixture(scope="session")
def two_cycles(tmp_path_factory: pytest.TempPathFactory, run_cycle: Run) -> Path:
    """A home in which two small cycles were run, for tests that only look."""
    home = tmp_path_factory.mktemp("two") / "home"
    for _ in range(2):
        run_cycle(home)
    return home
