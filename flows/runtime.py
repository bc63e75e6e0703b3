"""Composition root: a configuration in, everything that the steps need out."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from flows.progress import Progress
from flywheel.attempt import HARNESS_VERSION
from flywheel.families import Family
from flywheel.families.catalogue import FAMILIES
from flywheel.graders import GRADERS, grader_version
from flywheel.plugins import Check, Plugins, load, register, run_check
from flywheel.sandbox import Backend
from flywheel.sandbox.choose import open_backend
from flywheel.store import (
    Store,
    close,
    completed_stages,
    open_holdout,
    open_store,
    read,
)
from flywheel.tools import SHIPPED_PROGRAMS, program_source, programs_for
from schemas.base import content_id
from schemas.config import Cycle, CycleConfig
from schemas.tool import ToolSpec

AND_SCREENING = "+"
"""Between the versions of harness and screening; see `screening_version`."""
FINISHED = "cycle"
"""The stage whose mark says that a cycle is complete."""


@dataclass
class Room:
    """What one cycle works with. Only its owner process touches the store."""

    config: CycleConfig
    home: Path
    store: Store
    backend: Backend
    plugins: Plugins
    progress: Progress
    began: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    """Wall seconds of attempts, training and statistics: the rest is orchestration."""

    @property
    def families(self) -> Mapping[str, Family[Any]]:
        """The families that ship, and the user's own."""
        return {**FAMILIES, **self.plugins.families}

    @property
    def own_checks(self) -> tuple[Check, ...]:
        """The user's own screening checks."""
        return tuple(partial(run_check, name, c) for name, c in self.plugins.checks.items())

    @property
    def policies(self) -> Path:
        """Folder of policy versions."""
        return self.home / "policies"

    def shards(self, cycle: Cycle) -> Path:
        """Folder of a cycle's shards."""
        return self.home / "shards" / cycle.cycle_id

    @property
    def holdout_shards(self) -> Path:
        """Folder of the holdout's shards, outside everything that is published."""
        return self.home / "holdout" / "shards"

    @contextmanager
    def open_holdout(self) -> Iterator[Store]:
        """Open the holdout's own file for one counted read."""
        store = open_holdout(self.home / "holdout" / "holdout.duckdb", clock=time.time)
        try:
            yield store
        finally:
            close(store)

    @property
    def environment(self) -> str:
        """Return what all receipts and settings hang on: sandbox, tools, graders, harness."""
        programs = {name: program_source(name) for name in SHIPPED_PROGRAMS}
        sandboxes = content_id("env", self.backend.digest, programs)
        graders = [grader_version(name) for name in GRADERS]
        screening = screening_version(self.plugins)
        return content_id("env", sandboxes, graders, self.plugins.versions, screening)

    def environment_digest(self, tools: Sequence[ToolSpec]) -> str:
        """Return what a task's sandboxes are made of: backend and tool programs."""
        return content_id("env", self.backend.digest, programs_for(tools))

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count wall time towards `what`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings[what] = self.timings.get(what, 0.0) + time.perf_counter() - began

    def account(self) -> str:
        """Say where this process's wall time went; orchestration is all that is not named."""
        wall = time.perf_counter() - self.began
        rest = wall - sum(self.timings.values())
        named = "".join(f"{what} {seconds:.1f} s, " for what, seconds in self.timings.items())
        return (
            f"this run {wall:.1f} s: {named}orchestration {rest:.1f} s ({100 * rest / wall:.0f} %)"
        )


def screening_version(plugins: Plugins) -> str:
    """Return what a receipt was made by: `HARNESS+screening-…`, the user's own checks included."""
    own = {name: v for name, v in plugins.versions.items() if name.startswith("check/")}
    return f"{HARNESS_VERSION}{AND_SCREENING}{content_id('screening', _checks_digest(), own)}"


@cache  # of what this process runs, whatever becomes of the files meanwhile
def _checks_digest() -> str:
    package = files("flywheel.screen")
    texts = {f.name: f.read_text("utf-8") for f in package.iterdir() if f.name.endswith(".py")}
    return content_id("checks", texts)


@contextmanager
def open_room(config: CycleConfig, progress: Progress) -> Iterator[Room]:
    """Open the store, and the sandbox backend that the cycle at hand runs on.

    Raises:
        StoreError: another run holds the store.
        ConfigError: no sandbox backend works here.
    """
    torch.set_num_threads(1)  # several attempts ask the policy at once, a thread each
    home = Path(config.home)
    (home / "holdout").mkdir(parents=True, exist_ok=True)
    store = open_store(home / "flywheel.duckdb", clock=time.time)
    try:
        cycle = unfinished(store)
        backend = open_backend(cycle.sandbox if cycle else config.sandbox)
        chosen = cycle.config if cycle else config
        plugins = load(chosen.propose.plugins)
        register(plugins)
        yield Room(config, home, store, backend, plugins, progress)
    finally:
        close(store)


def unfinished(store: Store) -> Cycle | None:
    """Return the cycle that was interrupted, if one was."""
    cycles = read(store, Cycle)
    done = {name for name, *_ in completed_stages(store, cycles[-1].cycle_id)} if cycles else ()
    return cycles[-1] if cycles and FINISHED not in done else None
