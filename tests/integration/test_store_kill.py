"""A writer killed at any moment loses nothing that it acknowledged and leaves nothing half done."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from flywheel.store import Store, close, ingest_shards, open_store, stage_done, sweep

KILLS = 15
BATCH = 40
"""Attempts in one shard."""

WRITER = """
import sys
from pathlib import Path
from flywheel.store import ingest_shards, mark_stage, open_store, transaction, write_shard
from tests.factories import make_attempt

home, number, size, threshold = Path(sys.argv[1]), *map(int, sys.argv[2:])
store = open_store(home / "main.duckdb", clock=lambda: 0.0)
store.connection.execute(f"SET checkpoint_threshold = '{threshold}KB'")
while True:
    attempts = [make_attempt(index, run_id=f"batch-{number}") for index in range(size)]
    shard = write_shard(home / "shards" / f"{number}.parquet", attempts)
    print("written", number, flush=True)
    with transaction(store):
        ingest_shards(store, [shard])
        mark_stage(store, f"batch-{number}", "ingest", "d", 0.0, "")
    print("committed", number, flush=True)
    number += 1
"""


def run_and_kill(home: Path, first: int, rng: random.Random) -> tuple[set[int], set[int]]:
    """Let a writer start at batch `first`, kill it once it commits; return what it said."""
    # A small threshold puts checkpoints, too, in the way of the kill.
    arguments = [str(home), str(first), str(BATCH), str(rng.choice([64, 16_384]))]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [process.stdout.readline(), process.stdout.readline()]
    time.sleep(rng.uniform(0.0, 0.25))
    os.kill(process.pid, signal.SIGKILL)
    said += process.stdout.read().splitlines()
    assert process.wait() == -signal.SIGKILL
    words = [line.split() for line in said]
    written = {int(number) for word, number in words if word == "written"}
    return written, {int(number) for word, number in words if word == "committed"}


def counts(store: Store, table: str) -> dict[str, int]:
    """Rows by batch, in `attempts` or in `trajectories`."""
    sql = f"""
        SELECT batch, count(*)
        FROM {table}
        JOIN (SELECT attempt_id, run_id AS batch FROM attempts) USING (attempt_id)
        GROUP BY batch
    """
    return dict(store.connection.execute(sql).fetchall())


def shards(home: Path) -> Iterator[Path]:
    return (home / "shards").glob("*.parquet")


def test_acknowledged_batches_survive_kills_whole_and_once(tmp_path: Path) -> None:
    rng = random.Random(20)
    written: set[int] = set()
    acknowledged: set[int] = set()
    for _ in range(KILLS):
        new_written, new_acknowledged = run_and_kill(tmp_path, max(written, default=-1) + 1, rng)
        assert new_acknowledged, "the writer was killed before its first commit"
        written |= new_written
        acknowledged |= new_acknowledged
        store = open_store(tmp_path / "main.duckdb", clock=time.time)
        marked = {n for n in written if stage_done(store, f"batch-{n}", "ingest", "d")}
        assert acknowledged <= marked
        whole = {f"batch-{n}": BATCH for n in marked}
        assert counts(store, "attempts") == whole
        assert counts(store, "trajectories") == whole
        close(store)
        sweep(tmp_path / "shards")
        written |= {int(path.stem) for path in shards(tmp_path)}

    store = open_store(tmp_path / "main.duckdb", clock=time.time)
    before = counts(store, "attempts")
    of_marked = [
        tmp_path / "shards" / f"{run_id.removeprefix('batch-')}.parquet" for run_id in before
    ]
    assert ingest_shards(store, of_marked) == 0
    assert counts(store, "attempts") == before
    recovered = ingest_shards(store, sorted(shards(tmp_path)))
    assert recovered == BATCH * (len(written) - len(before))
    assert counts(store, "trajectories") == {f"batch-{n}": BATCH for n in written}
    close(store)
