"""The stage ledger: which stage of which cycle is complete, for which input.

A stage's outputs and its mark belong into one `transaction`: then a kill leaves both or neither.
"""

from flywheel.store.connection import Store


def mark_stage(
    store: Store, cycle_id: str, stage: str, digest: str, seconds: float, said: str
) -> None:
    """Note that `stage` completed in `seconds` for the input `digest`, and what it came to.

    A second mark is ignored.
    """
    store.connection.execute(
        "INSERT INTO stages (cycle_id, stage, digest, completed_at, seconds, said) "
        "SELECT ?, ?, ?, ?::TIMESTAMP, ?, ? WHERE NOT EXISTS "
        "(FROM stages WHERE cycle_id = ? AND stage = ? AND digest = ?)",
        [cycle_id, stage, digest, store.now(), seconds, said, cycle_id, stage, digest],
    )


def stage_done(store: Store, cycle_id: str, stage: str, digest: str) -> bool:
    """Whether `stage` completed for this very input: another digest is another input."""
    row = store.connection.execute(
        "SELECT 1 FROM stages WHERE cycle_id = ? AND stage = ? AND digest = ?",
        [cycle_id, stage, digest],
    ).fetchone()
    return row is not None


def completed_stages(store: Store, cycle_id: str) -> tuple[tuple[str, str, float], ...]:
    """Return a cycle's completed stages in order: name, what it came to, seconds."""
    rows = store.connection.execute(
        "SELECT stage, said, seconds FROM stages WHERE cycle_id = ? ORDER BY completed_at, stage",
        [cycle_id],
    ).fetchall()
    return tuple((str(stage), str(said), float(seconds)) for stage, said, seconds in rows)
