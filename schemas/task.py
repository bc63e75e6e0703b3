"""A task: an executable asset. What an agent may see and what it may not are two types."""

import base64
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, computed_field, model_validator

from schemas.base import Count, Name, Record, Seconds, content_id

MAX_FILE_BYTES = 4 * 1024 * 1024


def _safe_path(path: str) -> str:
    """Accept a relative path that stays below the workspace and prints as one line."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts:
        raise ValueError(f"path {path!r} must be relative and must not contain '..'")
    if len(path) > 255 or not path.isprintable():
        raise ValueError(f"path {path!r} must be at most 255 printable characters")
    return path


RelativePath = Annotated[str, AfterValidator(_safe_path)]


class File(Record):
    """A small file below the workspace."""

    path: RelativePath
    content: str
    """The text itself, or base64 where `encoding` says so."""
    encoding: Literal["utf-8", "base64"] = "utf-8"

    @classmethod
    def of(cls, path: str, data: bytes) -> "File":
        """Wrap `data`, as text where it is valid UTF-8 without NUL bytes, else as base64."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            encoded = base64.b64encode(data).decode("ascii")
            return cls(path=path, content=encoded, encoding="base64")
        return cls(path=path, content=text)

    def data(self) -> bytes:
        """Return the file's bytes."""
        if self.encoding == "base64":
            return base64.b64decode(self.content)
        return self.content.encode("utf-8")

    @model_validator(mode="after")
    def _small(self) -> "File":
        if len(self.content) > MAX_FILE_BYTES * 4 // 3 + 4:
            raise ValueError(f"{self.path}: larger than {MAX_FILE_BYTES} bytes")
        return self


class ToolKind(StrEnum):
    """Whether a tool's answers come from execution."""

    REAL = "real"
    SIMULATED = "simulated"


class Parameter(Record):
    """One named argument of a tool."""

    name: Name
    description: str
    choices: tuple[str, ...] = ()
    """The only values allowed; empty for a literal that the task or an observation names."""


class ToolSpec(Record):
    """A command-line program that an agent may call inside its sandbox."""

    name: Name
    description: str
    parameters: tuple[Parameter, ...] = ()
    kind: ToolKind = ToolKind.REAL


class ToolCall(Record):
    """One call: the tool's name and its arguments, in the order of the tool's parameters."""

    tool: Name
    arguments: Mapping[str, str] = {}


SUBMIT = ToolCall(tool="submit")
"""The call that ends an attempt: the policy says that it is done."""

Script = tuple[ToolCall, ...]
"""What a scripted policy does, ending without `submit` (the harness adds it)."""


class Repository(Record):
    """Where a software task's files come from."""

    url: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Environment(Record):
    """The initial state of a workspace."""

    files: tuple[File, ...]
    image: str | None = None
    """`name@sha256:…`; None: the family's shared base image."""
    repository: Repository | None = None
    egress: tuple[str, ...] = ()
    """Hosts that may be reached; empty: no network."""

    @model_validator(mode="after")
    def _pinned_and_unique(self) -> "Environment":
        if self.image is not None and "@sha256:" not in self.image:
            raise ValueError(f"environment.image {self.image!r} has no digest: use name@sha256:…")
        paths = [file.path for file in self.files]
        if len(paths) != len(set(paths)):
            raise ValueError("environment.files holds a path twice")
        return self


class Budget(Record):
    """What one attempt may use; going over is the attempt's failure, never infrastructure."""

    steps: Annotated[int, Field(ge=1)] = 12
    """Tool calls, the submission included."""
    seconds: Annotated[float, Field(gt=0)] = 30.0
    tokens: Annotated[int, Field(ge=1)] = 4096
    """Completion tokens over all turns."""
    cost: Annotated[float, Field(ge=0)] = 1.0
    """US dollars; 0 for local policies."""


class Brief(Record):
    """Everything that an agent may see, and nothing else."""

    goal: str
    """Literals that an agent has to reproduce stand in backticks."""
    environment: Environment
    tools: tuple[ToolSpec, ...]
    artifacts: tuple[RelativePath, ...]
    """The files that the agent leaves behind to be graded."""
    budget: Budget


class Grader(Record):
    """How an artifact is judged, in a sandbox that the agent never entered."""

    program: Name
    """A program in flywheel/graders/, run isolated in the second sandbox."""
    version: str
    """Digest of that program's text."""
    checks: Annotated[tuple[Name, ...], Field(min_length=1)]
    """The done-condition: the checks that must all hold. A reward is 1 if they do, else 0."""
    expected: tuple[File, ...]


class MutantKind(StrEnum):
    """What was done to a right solution to make it wrong."""

    RULE_LEFT_OUT = "rule-left-out"
    RULE_SWAPPED = "rule-swapped"
    """The wrong neighbour: keep the first duplicate where the last is asked for."""
    COMMAND_DROPPED = "command-dropped"


class Mutant(Record):
    """A wrong solution that a good grader must fail."""

    name: Name
    kind: MutantKind
    rule: Name | None
    """The live rule that it gets wrong."""
    script: Script


class Sealed(Record):
    """What no agent may see: how it is graded, and how it is solved."""

    grader: Grader
    reference: Script
    mutants: tuple[Mutant, ...]


class SourceKind(StrEnum):
    """Where a task comes from."""

    SEED = "seed"
    """The founding pool, made before the first cycle."""
    COVERAGE = "coverage"
    """Proposed to cover rule combinations, without a hypothesis."""
    HYPOTHESIS = "hypothesis"
    """Proposed because a hypothesis asks for it."""
    EVALUATION = "evaluation"
    """Proposed for dev."""
    HOLDOUT = "holdout"
    """Proposed for the holdout; the source's uri names the generation."""
    IMPORTED = "imported"


class Source(Record):
    """Provenance of a task."""

    kind: SourceKind
    uri: str
    licence: str
    parent: str | None = None
    """The `task_id` that it was derived from."""
    hypothesis: str | None = None


class TaskManifest(Record):
    """A task: brief, sealed part, and where it comes from."""

    family: Name
    family_version: str
    rules: tuple[Name, ...]
    """The live rules, sorted: each changes the right answer on this seed."""
    seed: Count
    operands: tuple[str, ...]
    """The literals that a solution has to name (files, columns, keys, values), sorted."""
    brief: Brief
    sealed: Sealed
    source: Source

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def task_id(self) -> str:
        """Environment + tools + done-condition + grader: a paraphrase keeps it."""
        brief = self.brief
        return content_id(
            "task", brief.environment, brief.tools, brief.artifacts, self.sealed.grader
        )

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def version_id(self) -> str:
        """Every byte of the manifest."""
        return content_id("tv", self)

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def prompt_hash(self) -> str:
        """The goal's words, whatever their case and spacing."""
        return content_id("prompt", " ".join(self.brief.goal.casefold().split()))


class CheckKind(StrEnum):
    """What screening tried."""

    BOOTS = "boots"
    INITIAL_STATE_FAILS = "initial-state-fails"
    REFERENCE_PASSES = "reference-passes"
    REFERENCE_REPEATS = "reference-repeats"
    MUTANTS_FAIL = "mutants-fail"


class ScreenVerdict(StrEnum):
    """What screening concluded."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNSCREENED = "unscreened"
    """An infrastructure fault kept a check from finishing: nothing is known about the task."""


class ScreenCheck(Record):
    """One check with its evidence."""

    kind: CheckKind
    passed: bool | None
    """None: could not be run."""
    evidence: str


class ScreenReport(Record):
    """A receipt: what was executed against one task version, and what came of it."""

    version_id: str
    task_id: str
    environment_digest: str
    harness_version: str
    grader_version: str
    """A changed environment, harness or grader voids the receipt."""
    checks: tuple[ScreenCheck, ...]
    mutants: Count
    mutants_killed: Count
    survivors: tuple[Name, ...]
    verdict: ScreenVerdict
    reason: Name
    """`accepted`, or the code of the first check that failed."""
    trust: Literal["generated", "imported"]
    seconds: Seconds
