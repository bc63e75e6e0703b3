"""Attempts under faults and interrupted cycles: the flow's own rules, without Prefect."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from flows.attempts import CircuitBreaker, fulfil, make_shard, orders
from flows.cycle import abandon, begin
from flows.progress import Progress
from flows.runtime import Room, unfinished
from flywheel.collect import Order
from flywheel.errors import ConfigError, SandboxError
from flywheel.plugins import Plugins
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.sandbox import Backend, Sandbox, SandboxSpec
from flywheel.sandbox.layers import Searched
from flywheel.store import Store, close, open_store, read_attempts
from schemas.attempt import Attempt, InfraStage, Purpose, Sampling, Verdict
from schemas.config import Cycle, CycleConfig, SandboxKind
from tests.real_tasks import real_task


@dataclass
class Engine:
    """A real backend that can be switched off: stands in for an engine that is down."""

    inner: Backend
    down: bool = False
    digest: str = "env-1"
    name: SandboxKind = "bubblewrap"

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        if self.down:
            raise SandboxError(InfraStage.ENGINE, "engine-unreachable", "planted")
        with self.inner.open(spec) as sandbox:
            yield sandbox

    def reap(self) -> int:
        return 0

    def search_image(self, image: str, needles: Mapping[str, bytes]) -> Searched:
        return self.inner.search_image(image, needles)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "flywheel.duckdb", clock=time.time)
    yield opened
    close(opened)


@pytest.fixture
def room(tmp_path: Path, store: Store, bubblewrap: Backend) -> Room:
    config = CycleConfig(home=str(tmp_path), shard_size=2, retries=0)
    progress = Progress(Console(quiet=True))
    return Room(
        config=config,
        home=tmp_path,
        store=store,
        backend=Engine(bubblewrap),
        plugins=Plugins(),
        progress=progress,
    )


@pytest.fixture(autouse=True)
def without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the shard's function itself: what Prefect adds is tested with whole cycles."""
    monkeypatch.setattr(type(make_shard), "__call__", lambda step, *args: step.fn(*args))


def make(room: Room, cycle: Cycle) -> tuple[Attempt, ...]:
    tasks = [real_task(rule) for rule in ("keep-last", "at-least", "half-up", "skip-missing")]
    scripts = {t.version_id: ScriptedPolicy("reference", t.sealed.reference) for t in tasks}
    wanted: list[Order] = []
    for task in tasks:
        version = scripts[task.version_id].version
        sampling = Sampling()
        wanted += orders(room, cycle, Purpose.COLLECT, "none", version, sampling, [(task, 0)])
    policies = {policy.version: policy for policy in scripts.values()}
    return fulfil(room, cycle, "collect", wanted, policies, room.store, room.shards(cycle))


def test_too_many_faults_stop_the_cycle_and_mending_the_cause_lets_it_go_on(room: Room) -> None:
    assert isinstance(room.backend, Engine)
    cycle = begin(room)
    room.backend.down = True
    for _ in range(2):
        with pytest.raises(CircuitBreaker, match=r"4 of 4.*engine-unreachable"):
            make(room, cycle)
    assert read_attempts(room.store, trajectories=False) == ()
    room.backend.down = False
    made = make(room, cycle)
    assert [a.verdict for a in made].count(Verdict.PASSED) == 4
    kept = read_attempts(room.store, trajectories=False)
    assert len(kept) == len(made) == 12
    assert sorted(a.key.try_number for a in kept) == [0] * 4 + [1] * 4 + [2] * 4
    assert {a.attempt_id for a in make(room, cycle)} == {a.attempt_id for a in made}


def test_an_interrupted_cycle_goes_on_and_a_finished_one_is_followed(room: Room) -> None:
    cycle = begin(room)
    assert begin(room) == cycle == unfinished(room.store)
    close(room.store)
    assert "cycle-0001 is abandoned" in abandon(room.config)
    with pytest.raises(ConfigError, match="none to abandon"):
        abandon(room.config)
    room.store = open_store(room.home / "flywheel.duckdb", clock=time.time)
    following = begin(room)
    assert (following.number, following.parent) == (2, cycle.parent)
    close(room.store)


def test_a_cycle_is_not_mixed_from_two_environments(room: Room) -> None:
    assert isinstance(room.backend, Engine)
    begin(room)
    room.backend.digest = "env-2"
    with pytest.raises(ConfigError, match=r"cycle-0001 began.*--abandon"):
        begin(room)


def test_what_a_killed_training_left_is_removed_before_the_cycle_goes_on(room: Room) -> None:
    begin(room)
    torn = room.policies / ".making-torn"
    torn.mkdir()
    (torn / "weights.npz").write_bytes(b"half")
    begin(room)
    assert not torn.exists()
