"""Supervised fine-tuning on demonstrations: only the tokens of calls carry loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from flywheel.errors import SplitViolation, TrainingError
from flywheel.policy.embedded.decoder import Weights, states, token_logprobs
from flywheel.policy.embedded.encoding import Encoded, encode, keys_of
from flywheel.policy.embedded.vocabulary import Vocabulary
from flywheel.train.batches import Batch, Rows
from flywheel.train.versions import KIND, RECIPE, find_version, load_policy, save_version
from schemas.base import content_id
from schemas.config import TrainConfig
from schemas.lineage import Split
from schemas.training import PolicyVersion, SftExample

WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; then it falls as a cosine."""
WEIGHT_DECAY, BETAS, MAX_GRADIENT = 2.0, (0.9, 0.98), 1.0


def train_sft(
    folder: Path,
    parent: str,
    rows: Sequence[SftExample],
    rehearsal: Sequence[SftExample],
    config: TrainConfig,
    seed: int,
    on_step: Callable[[int, int], None] | None = None,
) -> PolicyVersion:
    """Train `parent` on demonstrations and return the new version, complete in `folder`.

    The same arguments and number of threads give the same weights. A version that is already in
    `folder` is returned as it is.

    Args:
        folder: where the versions are.
        parent: the version to start from.
        rows: this cycle's demonstrations.
        rehearsal: older ones, which fill `config.rehearsal` of each batch where there are any.
        config: exactly `config.steps` steps of `config.batch` rows are made.
        seed: decides the order of rows, their aliases and their jitter.
        on_step: told the steps done and the steps in all, after each.

    Raises:
        SplitViolation: a row is not of the training split.
        TrainingError: there are no rows, a row has nothing to learn, the parent can't be loaded,
            or the loss is not finite.
    """
    _check(rows, rehearsal)
    start = load_policy(folder, parent)
    draft = _draft(parent, rows, rehearsal, config, seed)
    made = find_version(folder, draft.version)
    if made is not None:
        return made
    every = (*rows, *rehearsal)
    keys = (key for row in every for key in keys_of(row.goal, row.tools, row.turns))
    vocabulary = start.vocabulary.grown(keys)
    encoded = Rows([_encoded(vocabulary, row) for row in every])
    fresh = config.batch - (round(config.batch * config.rehearsal) if rehearsal else 0)
    generator = torch.Generator().manual_seed(seed)
    order = _order(len(rows), len(rehearsal), fresh, config, generator)
    began = perf_counter()
    result = _descend(start.weights, encoded, order, config.learning_rate, generator, on_step)
    version = draft.model_copy(
        update={
            "tokens": result.tokens,
            "metrics": {"loss": result.loss, "words": float(len(vocabulary.keys))},
            "seconds": perf_counter() - began,
        }
    )
    return save_version(folder, version, result.weights, vocabulary)


def sft_loss(weights: Weights, batch: Batch) -> Tensor:
    """Return the mean negative log-likelihood, in nats, of the batch's call tokens."""
    context = states(weights, batch.ids, batch.goals, batch.reading)
    logprobs = token_logprobs(weights, context, batch.ids, batch.at, batch.allowed)
    said = logprobs.gather(2, batch.ids.gather(1, batch.at)[..., None])[..., 0]
    return -said[batch.real].mean()


def _check(rows: Sequence[SftExample], rehearsal: Sequence[SftExample]) -> None:
    if not rows:
        raise TrainingError("no rows to train on: collect accepted demonstrations first")
    for row in (*rows, *rehearsal):
        if row.provenance.split is not Split.TRAIN:
            split = row.provenance.split.value
            raise SplitViolation(f"row {row.row_id} is of split {split!r}: training takes 'train'")


def _draft(
    parent: str,
    rows: Sequence[SftExample],
    rehearsal: Sequence[SftExample],
    config: TrainConfig,
    seed: int,
) -> PolicyVersion:
    """Return the version with all that decides its identity, before anything is trained."""
    settings = config.model_dump(exclude={"rows"})
    ids = [[row.row_id for row in part] for part in (rows, rehearsal)]
    return PolicyVersion(
        kind=KIND,
        parent=parent,
        dataset_digest=content_id("data", ids),
        rows=len(rows) + len(rehearsal),
        tokens=0,
        seed=seed,
        hyperparameters={name: float(value) for name, value in (settings | RECIPE).items()},
        weights_digest="",
        metrics={},
        seconds=0.0,
    )


def _encoded(vocabulary: Vocabulary, row: SftExample) -> Encoded:
    encoded = encode(vocabulary, row.goal, row.tools, row.turns)
    if not encoded.targets:
        raise TrainingError(f"row {row.row_id} has no call that its tools and literals allow")
    return encoded


def _order(
    rows: int, rehearsal: int, fresh: int, config: TrainConfig, generator: torch.Generator
) -> Tensor:
    """Return the row numbers of each batch, (steps, batch): `fresh` new ones, then older ones."""
    new = _passes(rows, config.steps * fresh, generator).view(config.steps, fresh)
    old = _passes(rehearsal, config.steps * (config.batch - fresh), generator)
    return torch.cat((new, rows + old.view(config.steps, config.batch - fresh)), dim=1)


def _passes(rows: int, draws: int, generator: torch.Generator) -> Tensor:
    """Return `draws` of `rows` numbers, one shuffled pass after another."""
    count = -(-draws // rows) if draws else 0
    passes = [torch.randperm(rows, generator=generator) for _ in range(count)]
    return torch.cat([*passes, torch.zeros(0, dtype=torch.long)])[:draws]


@dataclass(frozen=True, slots=True)
class _Result:
    weights: Weights
    tokens: int
    loss: float
    """Mean over the last tenth of the steps."""


def _descend(
    start: Weights,
    rows: Rows,
    order: Tensor,
    peak: float,
    generator: torch.Generator,
    on_step: Callable[[int, int], None] | None,
) -> _Result:
    """Make one step of AdamW (Loshchilov & Hutter 2019) for each batch of `order`."""
    weights = {name: value.clone().requires_grad_() for name, value in start.items()}
    optimiser = torch.optim.AdamW(weights.values(), betas=BETAS, weight_decay=WEIGHT_DECAY)
    losses, tokens, steps = list[float](), 0, len(order)
    for step, chosen in enumerate(order):
        for group in optimiser.param_groups:
            group["lr"] = peak * _warmth(step / steps)
        batch = rows.batch(chosen, generator)
        loss = sft_loss(weights, batch)
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingError(f"the loss is {losses[-1]} at step {step}: lower learning_rate")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), MAX_GRADIENT)
        optimiser.step()
        tokens += batch.tokens
        if on_step is not None:
            on_step(step + 1, steps)
    tail = losses[-max(1, steps // 10) :]
    return _Result(
        {name: value.detach() for name, value in weights.items()}, tokens, sum(tail) / len(tail)
    )


def _warmth(done: float) -> float:
    """Return the share of the peak learning rate after a share `done` of the steps."""
    return min(1.0, done / WARM_UP + 0.01) * (1 + math.cos(math.pi * done)) / 2
