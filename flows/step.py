"""What a step is: one stage of one cycle as a Prefect task that happens once.

A step reads what earlier stages recorded, calls a verb, and returns records. They are written in
one transaction with the mark that says so; a step whose mark is there does nothing. So a cycle
that was killed at any point goes on where it was.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from time import perf_counter

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.runtime import Room
from flywheel.store import append, mark_stage, stage_done, transaction
from schemas.base import Record
from schemas.config import Cycle

Records = Sequence[Sequence[Record]]
"""Groups of records, each of one type."""
Body = Callable[[Room, Cycle], tuple[Records, str]]
"""Returns what to record, and what to tell the person who watches."""


def step(name: str) -> Callable[[Body], Callable[[Room, Cycle], None]]:
    """Make a stage body into a step called `name`."""

    def wrap(body: Body) -> Callable[[Room, Cycle], None]:
        @wraps(body)
        def once(room: Room, cycle: Cycle) -> None:
            if stage_done(room.store, cycle.cycle_id, name, cycle.config_digest):
                room.progress.line(name, "done before", perf_counter())
                return
            began = perf_counter()
            records, said = body(room, cycle)
            with transaction(room.store):
                for group in records:
                    append(room.store, group)
                seconds = perf_counter() - began
                mark_stage(room.store, cycle.cycle_id, name, cycle.config_digest, seconds, said)
            room.progress.line(name, said, began)

        return task(name=name, task_run_name=name, cache_policy=NO_CACHE)(once)

    return wrap


def tally(counter: Counter[str]) -> str:
    """Return counts in words: `3 accepted, 1 duplicate`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items())) or "none"
