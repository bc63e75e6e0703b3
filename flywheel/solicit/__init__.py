"""Asks a model for task folders: ideas in, folders or refusals out, each with what it cost.

An idea is a public issue's text, a failed attempt of a training task, or a requirement that
somebody wrote. What comes back is hostile text: it is parsed under bounds and written into plain
files; nothing in it is executed, and no trust comes with it (`SourceKind.PROPOSED`). Whether it is
a task at all is for a reader to say (`settle`), whether a sound one for screening.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from flywheel.endpoint import Completion, Endpoint, Prices
from flywheel.errors import ConfigError, ManifestError, PolicyError
from flywheel.solicit.fenced import Unusable, parse_files
from flywheel.solicit.ideas import Idea
from schemas.file import File
from schemas.screening import Proposal
from schemas.task import Source, TaskManifest

TEMPERATURE = 0.7
MAX_FAULTS = 3
"""Faults of the endpoint in a row after which nothing more is asked."""
OVERHEAD = 64
"""Tokens that a chat template may add to a request."""
MAX_EVIDENCE = 1_000
WRITTEN = "written"
"""The folder stands; nobody has read it as a task yet."""
READ = "read"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a run of `solicit` may use. It stops before it would go over."""

    proposals: int
    tokens: int
    """Prompt and completion tokens."""
    cost: float
    """US dollars."""
    answer_tokens: int
    """Most completion tokens of one answer."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposal, and its folder where it has one."""

    proposal: Proposal
    source: Source
    folder: Path | None
    """None: refused, for the proposal's reason."""


@dataclass
class _Spent:
    """What was used so far: what the server reports, and the most that a lost answer can cost."""

    prices: Prices
    tokens: int = 0
    cost: float = 0.0

    def add(self, prompt: int, completion: int) -> None:
        self.tokens += prompt + completion
        self.cost += self.prices.cost(prompt, completion)

    def allows(self, prompt: int, completion: int, most: Allowance) -> bool:
        cost = self.cost + self.prices.cost(prompt, completion)
        return self.tokens + prompt + completion <= most.tokens and cost <= most.cost


def solicit(
    endpoint: Endpoint, ideas: Iterable[Idea], allowance: Allowance, folder: Path, run_id: str
) -> Iterator[Proposed]:
    """Ask for one task folder an idea, until the allowance does not cover another answer.

    Folders are `folder/0000`, `folder/0001`, …: a file's mode lets nobody execute it.

    Args:
        endpoint: the model, with prices (zero for a model of one's own): a cap on the cost can't
            be held without them.
        ideas: each is asked about once.
        allowance: hard caps. A prompt is taken to have at most as many tokens as bytes; an answer
            that was lost counts in full.
        folder: an empty one, or one to be made.
        run_id: part of each proposal's identity.

    Raises:
        ConfigError: the endpoint has no prices, or `folder` is not empty.
    """
    if endpoint.prices is None:
        raise ConfigError("endpoint.prices: give prices, zero where a model costs nothing")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"folder {folder} is not empty: give each run a folder of its own")
    spent, faults = _Spent(endpoint.prices), 0
    for number, idea in enumerate(islice(ideas, allowance.proposals)):
        messages = idea.messages()
        most = OVERHEAD + sum(len(message.content.encode()) for message in messages)
        if not spent.allows(most, allowance.answer_tokens, allowance):
            return
        try:
            answer = endpoint.complete(messages, allowance.answer_tokens, TEMPERATURE)
        except PolicyError as error:
            spent.add(most, allowance.answer_tokens)
            faults += 1
            reason = (f"model-{error.status.code}", error.status.evidence)
            yield Proposed(_proposal(endpoint, run_id, number, reason), idea.source, None)
            if faults == MAX_FAULTS:
                return
        else:
            spent.add(answer.prompt_tokens, answer.completion_tokens)
            faults = 0
            yield _received(endpoint, answer, idea.source, folder, run_id, number)


def _received(
    endpoint: Endpoint, answer: Completion, source: Source, folder: Path, run_id: str, number: int
) -> Proposed:
    """Write an answer's files, or say why it has none."""
    own = folder / f"{number:04d}"
    try:
        files = parse_files(answer.text)
    except Unusable as refusal:
        reason = (refusal.code, refusal.evidence)
        return Proposed(_proposal(endpoint, run_id, number, reason, answer), source, None)
    write_files(files, own)
    reason = (WRITTEN, f"{len(files)} files")
    return Proposed(_proposal(endpoint, run_id, number, reason, answer), source, own)


def write_files(files: Sequence[File], folder: Path) -> None:
    """Write `files` into a folder that is made for them, readable and not executable.

    Raises:
        FileExistsError: the folder exists.
    """
    folder.mkdir()
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(file.data())


def _proposal(
    endpoint: Endpoint,
    run_id: str,
    number: int,
    reason: tuple[str, str],
    answer: Completion | None = None,
) -> Proposal:
    code, evidence = reason
    return Proposal(
        proposer=f"model/{re.sub('[^a-z0-9._@/-]', '-', endpoint.model.lower())}"[:128],
        run_id=run_id,
        number=number,
        version_id=None,
        reason=code,
        evidence=evidence,
        tokens=answer.prompt_tokens + answer.completion_tokens if answer else 0,
        cost=(answer.cost or 0.0) if answer else 0.0,
    )


def settle(
    proposed: Proposed, read: Callable[[Path], TaskManifest]
) -> tuple[Proposal, TaskManifest | None]:
    """Read a proposed folder as a task: it keeps the idea's source, whatever the folder says.

    Args:
        proposed: as `solicit` yields it.
        read: makes a manifest of a folder; raises ManifestError where it is no task.
    """
    if proposed.folder is None:
        return proposed.proposal, None
    try:
        task = read(proposed.folder)
    except ManifestError as error:
        return _settled(proposed.proposal, None, "not-a-task", str(error)), None
    task = task.with_source(proposed.source)
    return _settled(proposed.proposal, task.version_id, READ, proposed.proposal.evidence), task


def _settled(proposal: Proposal, version_id: str | None, reason: str, evidence: str) -> Proposal:
    update = {"version_id": version_id, "reason": reason, "evidence": evidence[:MAX_EVIDENCE]}
    return proposal.model_copy(update=update)
