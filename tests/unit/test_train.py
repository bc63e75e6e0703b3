"""Training is deterministic, takes training rows only, and leaves complete versions or none."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from flywheel.errors import SplitViolation, TrainingError
from flywheel.policy.embedded import EmbeddedPolicy
from flywheel.policy.embedded.decoder import initial_weights, is_operand
from flywheel.policy.embedded.encoding import encode
from flywheel.policy.embedded.vocabulary import Vocabulary
from flywheel.train import load_policy, train_sft, untrained
from flywheel.train.batches import Rows
from schemas.attempt import Sampling
from schemas.config import TrainConfig
from schemas.lineage import Split
from schemas.task import Brief
from schemas.training import SftExample
from tests.demonstrations import demonstration, some_demonstrations
from tests.real_tasks import real_task

ROWS = some_demonstrations()
SHORT = TrainConfig(steps=6, batch=4, rehearsal=0.5)
ROOT = Path(__file__).parents[2]


def call_tokens(row: SftExample) -> int:
    """A tool's name and a value for each of its parameters."""
    return sum(1 + len(turn.call.arguments) for turn in row.turns if turn.call)


def script(folder: Path, config: TrainConfig) -> list[str]:
    """A process of its own, with one thread, that trains ROWS and prints the digest."""
    code = (
        "import torch; torch.set_num_threads(1)\n"
        "from pathlib import Path\n"
        "from flywheel.train import train_sft, untrained\n"
        "from schemas.config import TrainConfig\n"
        "from tests.demonstrations import some_demonstrations\n"
        f"folder, config = Path({str(folder)!r}), TrainConfig(**{config.model_dump()!r})\n"
        "step = lambda done, steps: print(done, flush=True) if done == 1 else None\n"
        "rows, parent = some_demonstrations(), untrained(folder, 0).version\n"
        "made = train_sft(folder, parent, rows, (), config, 5, step)\n"
        "print(made.weights_digest)\n"
    )
    return [sys.executable, "-c", code]


def test_the_same_seed_gives_the_same_weights_in_any_thread_or_process(tmp_path: Path) -> None:
    def train(name: str) -> str:
        folder = tmp_path / name
        parent = untrained(folder, 0).version
        return train_sft(folder, parent, ROWS, (), SHORT, 5).weights_digest

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        here = train("here")
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(train, ("one", "two"))) == [here, here]
        printed = subprocess.run(
            script(tmp_path / "other", SHORT), cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    finally:
        torch.set_num_threads(threads)
    assert printed[-1] == here


def test_another_seed_gives_another_version_and_other_weights(tmp_path: Path) -> None:
    parent = untrained(tmp_path, 0).version
    one, two = (train_sft(tmp_path, parent, ROWS, (), SHORT, seed) for seed in (1, 2))
    assert one.version != two.version
    assert one.weights_digest != two.weights_digest


def test_it_learns_to_make_the_calls_of_its_demonstrations(tmp_path: Path) -> None:
    parent = untrained(tmp_path, 0).version
    made = train_sft(tmp_path, parent, ROWS, (), TrainConfig(steps=120, batch=6), 1)
    assert made.metrics["loss"] < 0.1
    before, after = load_policy(tmp_path, parent), load_policy(tmp_path, made.version)
    turns = sum(len(row.turns) for row in ROWS)

    def right(policy: EmbeddedPolicy) -> int:
        greedy = Sampling(temperature=0.0)
        return sum(
            policy.act(brief_of(row), row.turns[:number], greedy, seed=3).call == turn.call
            for row in ROWS
            for number, turn in enumerate(row.turns)
        )

    assert right(before) <= 0.3 * turns
    assert right(after) >= 0.95 * turns


def brief_of(row: SftExample) -> Brief:
    """A brief with the row's goal and tools."""
    brief = real_task("keep-last").brief
    return brief.model_copy(update={"goal": row.goal, "tools": row.tools})


def test_each_use_of_a_row_redraws_its_aliases_one_to_one_and_keeps_the_order_of_reading() -> None:
    row = ROWS[0]
    encoded = encode(Vocabulary(), row.goal, row.tools, row.turns)
    rows, generator = Rows([encoded]), torch.Generator().manual_seed(0)
    one, two = (rows.batch(torch.tensor([0]), generator) for _ in range(2))
    ids, operand = torch.tensor(encoded.ids), is_operand(torch.tensor(encoded.ids))
    for batch in (one, two):
        pairs = set(zip(ids[operand].tolist(), batch.ids[0][operand].tolist(), strict=True))
        assert len(pairs) == len(encoded.literals) == len({alias for _, alias in pairs})
        assert torch.equal(batch.ids[0][~operand], ids[~operand])
        assert is_operand(batch.ids[0][operand]).all()
        assert (batch.reading[0, : encoded.goal].diff() > 0).all()
        told = torch.tensor(encoded.reading)
        assert torch.equal(batch.reading[0], batch.reading[0, : encoded.goal][told])
    assert not torch.equal(one.ids, two.ids)
    assert not torch.equal(one.reading, two.reading)


def test_exactly_the_configured_steps_are_made_and_call_tokens_alone_are_counted(
    tmp_path: Path,
) -> None:
    parent, told = untrained(tmp_path, 0).version, list[tuple[int, int]]()
    row = ROWS[0]
    made = train_sft(
        tmp_path, parent, [row], (), SHORT, 1, lambda done, of: told.append((done, of))
    )
    assert told == [(done, SHORT.steps) for done in range(1, SHORT.steps + 1)]
    assert made.tokens == SHORT.steps * SHORT.batch * call_tokens(row)
    assert (made.parent, made.rows, made.kind) == (parent, 1, "embedded")


@pytest.mark.parametrize(("share", "old"), [(0.0, 0), (0.5, 2), (0.75, 3), (1.0, 4)])
def test_rehearsal_fills_its_share_of_each_batch(tmp_path: Path, share: float, old: int) -> None:
    parent = untrained(tmp_path, 0).version
    config = SHORT.model_copy(update={"rehearsal": share})
    short, long = ROWS[0], demonstration(real_task("half-up", "at-least"))
    made = train_sft(tmp_path, parent, [short], [long], config, 1)
    mean = old * call_tokens(long) + (config.batch - old) * call_tokens(short)
    assert call_tokens(long) > call_tokens(short)
    assert made.tokens == config.steps * mean


@pytest.mark.parametrize("split", [Split.DEV, Split.HOLDOUT])
@pytest.mark.parametrize("place", ["rows", "rehearsal"])
def test_a_row_of_another_split_is_refused(tmp_path: Path, split: Split, place: str) -> None:
    parent = untrained(tmp_path, 0).version
    foreign = (demonstration(real_task("keep-last"), split=split),)
    rows, rehearsal = (foreign, ()) if place == "rows" else (ROWS, foreign)
    with pytest.raises(SplitViolation, match=split.value):
        train_sft(tmp_path, parent, rows, rehearsal, SHORT, 1)


def test_nothing_to_learn_from_is_an_error(tmp_path: Path) -> None:
    parent = untrained(tmp_path, 0).version
    with pytest.raises(TrainingError, match="no rows"):
        train_sft(tmp_path, parent, (), ROWS, SHORT, 1)
    silent = ROWS[0].model_copy(update={"turns": ()})
    with pytest.raises(TrainingError, match="no call"):
        train_sft(tmp_path, parent, (silent,), (), SHORT, 1)


def test_a_loss_that_is_not_finite_leaves_no_version(tmp_path: Path) -> None:
    parent = untrained(tmp_path, 0).version
    wild = SHORT.model_copy(update={"learning_rate": 1e30, "steps": 12})
    with pytest.raises(TrainingError, match="lower learning_rate"):
        train_sft(tmp_path, parent, ROWS, (), wild, 1)
    assert [path.name for path in tmp_path.iterdir()] == [parent]


def test_a_version_that_is_there_is_returned_without_training(tmp_path: Path) -> None:
    parent, steps = untrained(tmp_path, 0).version, list[int]()
    made = train_sft(tmp_path, parent, ROWS, (), SHORT, 1)
    again = train_sft(tmp_path, parent, ROWS, (), SHORT, 1, lambda done, _: steps.append(done))
    assert again == made
    assert steps == []
    assert untrained(tmp_path, 0).version == parent


def test_a_child_keeps_its_parents_rows_and_adds_the_words_it_meets(tmp_path: Path) -> None:
    parent = untrained(tmp_path, 0).version
    one = train_sft(tmp_path, parent, ROWS[:3], (), SHORT, 1)
    two = train_sft(tmp_path, one.version, ROWS[3:], (), SHORT, 1)
    old, new = (load_policy(tmp_path, made.version).vocabulary.keys for made in (one, two))
    assert new[: len(old)] == old
    assert len(new) > len(old)
    assert "tool:deduplicate" in old
    assert not any(literal in new for literal in ("`", *real_task("keep-last", seed=2).operands))


def test_a_full_vocabulary_leaves_new_words_unknown() -> None:
    full = Vocabulary().grown(f"w{number}" for number in range(10_000))
    assert full.grown(["late"]) == full
    assert full.word("late") == full.word("later") != full.word("w1")


def test_untrained_weights_are_a_function_of_the_seed(tmp_path: Path) -> None:
    one, two = untrained(tmp_path / "a", 1), untrained(tmp_path / "b", 1)
    other = untrained(tmp_path / "a", 2)
    assert (one.version, one.weights_digest) == (two.version, two.weights_digest)
    assert one.weights_digest != other.weights_digest
    loaded = load_policy(tmp_path / "a", one.version)
    expected = initial_weights(1)
    assert loaded.weights.keys() == expected.keys()
    assert all(torch.equal(loaded.weights[name], expected[name]) for name in expected)


def test_an_absent_incomplete_or_altered_version_is_refused(tmp_path: Path) -> None:
    def broken(name: str) -> tuple[Path, str]:
        version = untrained(tmp_path / name, 0).version
        return tmp_path / name, version

    folder, version = broken("absent")
    with pytest.raises(TrainingError, match="can't be read"):
        load_policy(folder, "embedded-00000000000000000000")
    for missing in ("weights.npz", "vocabulary.json", "version.json"):
        folder, version = broken(f"no-{missing}")
        (folder / version / missing).unlink()
        with pytest.raises(TrainingError, match="can't be read"):
            load_policy(folder, version)
    folder, version = broken("vocabulary")
    (folder / version / "vocabulary.json").write_text('["sneaked"]')
    with pytest.raises(TrainingError, match="altered"):
        load_policy(folder, version)
    folder, version = broken("record")
    record = json.loads((folder / version / "version.json").read_text())
    (folder / version / "version.json").write_text(json.dumps(record | {"seed": 9}))
    with pytest.raises(TrainingError, match="altered"):
        load_policy(folder, version)
    folder, version = broken("weights")
    data = bytearray((folder / version / "weights.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / version / "weights.npz").write_bytes(data)
    with pytest.raises(TrainingError, match=r"altered|can't be read"):
        load_policy(folder, version)


def test_a_killed_training_leaves_no_version_and_can_be_repeated(tmp_path: Path) -> None:
    config = TrainConfig(steps=100_000, batch=4)
    parent = untrained(tmp_path, 0).version
    child = subprocess.Popen(
        script(tmp_path, config), cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"
        time.sleep(0.2)
        assert child.poll() is None
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    assert [path.name for path in tmp_path.iterdir()] == [parent]
    made = train_sft(tmp_path, parent, ROWS, (), SHORT, 5)
    assert load_policy(tmp_path, made.version).version == made.version
