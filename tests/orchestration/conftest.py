"""A room on a real sandbox and store, and steps without what Prefect adds."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prefect import Task
from rich.console import Console

from flows.progress import Progress
from flows.runtime import Room
from flows.screening import screen_shard
from flywheel.plugins import Plugins
from flywheel.sandbox import Backend
from flywheel.store import (
    Store,
    close,
    open_store,
)
from schemas.config import Cycle, CycleConfig


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "flywheel.duckdb", clock=time.time)
    yield opened
    close(opened)


@pytest.fixture
def room(tmp_path: Path, store: Store, bubblewrap: Backend) -> Room:
    config = CycleConfig(home=str(tmp_path), retries=0)
    progress = Progress(Console(quiet=True))
    return Room(config, tmp_path, store, bubblewrap, Plugins(), progress)


def once(body: Callable[[Room, Cycle], None], room: Room, cycle: Cycle) -> None:
    """Run a step of the loop as its function."""
    assert isinstance(body, Task)
    body.fn(room, cycle)


@pytest.fixture(autouse=True)
def without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the step's function itself: what Prefect adds is tested with whole cycles."""
    monkeypatch.setattr(type(screen_shard), "__call__", lambda step, *args: step.fn(*args))
