"""Policy versions on disk: complete or not there, and refused where a byte has changed.

FOLDER/VERSION/weights.npz       the tensors, no pickle
FOLDER/VERSION/vocabulary.json   the keys, in the order of their rows
FOLDER/VERSION/version.json      the `PolicyVersion`, with the digest of the other two
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from zipfile import BadZipFile

import numpy as np
import torch
from pydantic import ValidationError

from flywheel.errors import TrainingError
from flywheel.policy.embedded import EmbeddedPolicy
from flywheel.policy.embedded.decoder import Weights, initial_weights
from flywheel.policy.embedded.vocabulary import Vocabulary
from schemas.base import content_id
from schemas.training import PolicyVersion

KIND = "embedded"
MAKING = ".making-"
"""How the folder of a version that is not complete yet begins."""
RECIPE = {"recipe": 1}
"""Part of every version's identity: raised whenever model, encoding or optimiser change."""


def untrained(folder: Path, seed: int) -> PolicyVersion:
    """Return the version with random weights, a function of `seed`, complete in `folder`."""
    draft = PolicyVersion(
        kind=KIND,
        parent=None,
        dataset_digest=content_id("data", []),
        rows=0,
        tokens=0,
        seed=seed,
        hyperparameters={name: float(value) for name, value in RECIPE.items()},
        weights_digest="",
        metrics={},
        seconds=0.0,
    )
    made = find_version(folder, draft.version)
    return made or save_version(folder, draft, initial_weights(seed), Vocabulary())


def find_version(folder: Path, version: str) -> PolicyVersion | None:
    """Return a version's record, None where `folder` doesn't hold it.

    Raises:
        TrainingError: it is there, but incomplete or altered.
    """
    return _read(folder, version)[0] if (folder / version).exists() else None


def load_policy(folder: Path, version: str) -> EmbeddedPolicy:
    """Return the policy of a version.

    Raises:
        TrainingError: it is absent, incomplete or altered.
    """
    _, weights, vocabulary = _read(folder, version)
    return EmbeddedPolicy(version=version, weights=weights, vocabulary=vocabulary)


def save_version(
    folder: Path, draft: PolicyVersion, weights: Weights, vocabulary: Vocabulary
) -> PolicyVersion:
    """Write a version under its own name in one rename, and return it with its digest.

    Where another process has been faster, its version is returned.
    """
    digest = weights_digest(weights, vocabulary)
    version = draft.model_copy(update={"weights_digest": digest})
    folder.mkdir(parents=True, exist_ok=True)
    making = Path(mkdtemp(prefix=MAKING, dir=folder))
    with (making / "weights.npz").open("wb") as stream:
        np.savez(stream, **{name: value.numpy() for name, value in weights.items()})
    (making / "vocabulary.json").write_text(json.dumps(vocabulary.keys), "utf-8")
    (making / "version.json").write_text(
        version.model_dump_json(indent=1, exclude={"version"}), "utf-8"
    )
    for path in (*making.iterdir(), making):
        _flush(path)
    try:
        making.rename(folder / version.version)
    except OSError:
        shutil.rmtree(making)
        return _read(folder, version.version)[0]
    _flush(folder)
    return version


def sweep_versions(folder: Path) -> int:
    """Remove what killed trainings left in `folder`; return how much. Call it while none runs."""
    leftovers = list(folder.glob(f"{MAKING}*"))
    for leftover in leftovers:
        shutil.rmtree(leftover)
    return len(leftovers)


def weights_digest(weights: Weights, vocabulary: Vocabulary) -> str:
    """Return the sha256 of all tensors (name, shape, bytes) and of the vocabulary."""
    digest = hashlib.sha256(json.dumps(vocabulary.keys).encode())
    for name, value in sorted(weights.items()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _read(folder: Path, name: str) -> tuple[PolicyVersion, Weights, Vocabulary]:
    """Read a version and check it against its name and its digest."""
    place = folder / name
    try:
        version = PolicyVersion.model_validate_json((place / "version.json").read_text("utf-8"))
        keys = json.loads((place / "vocabulary.json").read_text("utf-8"))
        with np.load(place / "weights.npz", allow_pickle=False) as arrays:
            weights = {key: torch.from_numpy(arrays[key]) for key in arrays.files}
    except (OSError, ValueError, BadZipFile, ValidationError) as error:
        raise TrainingError(f"policy version {name} in {folder} can't be read: {error}") from error
    vocabulary = Vocabulary(tuple(keys))
    if version.version != name or version.weights_digest != weights_digest(weights, vocabulary):
        raise TrainingError(f"policy version {name} in {folder} was altered: delete it")
    return version, weights, vocabulary


def _flush(path: Path) -> None:
    """Make a file or folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
