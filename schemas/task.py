"""A task: an executable asset. What an agent may see and what it may not are two types."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, computed_field, model_validator

from schemas.base import Count, Name, Probability, Record, content_id
from schemas.file import ArtifactPath, File, RelativePath
from schemas.tool import Script, ToolSpec

WORKDIR = "/workspace"


class Repository(Record):
    """Where a software task's files come from."""

    url: str
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


def _safe_workdir(path: str) -> str:
    pure = PurePosixPath(path)
    if not pure.is_absolute() or len(pure.parts) < 2 or ".." in pure.parts or str(pure) != path:
        raise ValueError(f"environment: {path!r} must be an absolute folder below /")
    return path


class Environment(Record):
    """The initial state of a workspace."""

    files: tuple[File, ...]
    image: str | None = None
    """`name@sha256:…`; None: the shared base image. A tag alone is refused at screening."""
    workdir: Annotated[str, AfterValidator(_safe_workdir)] = WORKDIR
    """Where an agent finds the files, and itself."""
    folders: tuple[Annotated[str, AfterValidator(_safe_workdir)], ...] = ()
    """Further folders (absolute) that exist, are empty, and may be written to."""
    repository: Repository | None = None
    egress: tuple[str, ...] = ()
    """Hosts that may be reached; empty: no network."""
    variables: Mapping[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)], str
    ] = {}
    """Set for every command, on top of the sandbox's own."""

    @model_validator(mode="after")
    def _unique(self) -> "Environment":
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
    artifacts: tuple[ArtifactPath, ...]
    """What the agent leaves behind to be graded."""
    budget: Budget


class Exercise(Record):
    """A hidden run of a program that the agent delivers, on inputs that it has not seen.

    It runs in a sandbox that holds what the agent left behind and `files`, and no answer. Its
    output is graded as the artifact `exercises/NAME.txt`.
    """

    name: Name
    files: tuple[File, ...]
    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """A command line with an absolute path, run in the workspace."""

    @property
    def output(self) -> str:
        """The artifact that its output becomes."""
        return f"exercises/{self.name}.txt"

    @model_validator(mode="after")
    def _stays_below(self) -> "Exercise":
        if ".." in self.name:
            raise ValueError(f"exercise.name {self.name!r} must not contain '..'")
        return self


class Instrument(Record):
    """A grader that is a model: how often it errs was measured, and is never assumed."""

    model: str
    prompt_hash: str
    false_accept: Probability
    false_reject: Probability
    measured_on: Count
    """Labelled attempts behind the two rates."""


class Grader(Record):
    """How an artifact is judged, in a sandbox that the agent never entered."""

    program: Name
    """A grader program, run isolated in the second sandbox."""
    version: str
    """Digest of that program's text."""
    checks: Annotated[tuple[Name, ...], Field(min_length=1)]
    """The done-condition: the checks that must all hold. A reward is 1 if they do, else 0."""
    expected: tuple[File, ...]
    """Right answers, or hidden tests: whatever the program compares with."""
    protected: tuple[RelativePath, ...] = ()
    """Files of the environment that must be left as they were."""
    exercises: tuple[Exercise, ...] = ()
    seconds: Annotated[float, Field(gt=0)] = 20.0
    """For one set of artifacts."""
    instrument: Instrument | None = None


class MutantKind(StrEnum):
    """What was done to a right solution to make it wrong."""

    RULE_LEFT_OUT = "rule-left-out"
    RULE_SWAPPED = "rule-swapped"
    """The wrong neighbour: keep the first duplicate where the last is asked for."""


class Mutant(Record):
    """A wrong solution that a good grader must fail. Those without a rule are made by screening."""

    name: Name
    kind: MutantKind
    rule: Name
    """The live rule that it gets wrong."""
    script: Script


class Requirement(Record):
    """One sentence of the goal, and the checks that fail where it is not met."""

    sentence: str
    checks: tuple[Name, ...] = ()
    """Empty: it asks for nothing."""
    rule: Name | None = None


class ScriptedUser(Record):
    """A simulated user who knows what the goal leaves out, and tells when asked."""

    answers: Mapping[Name, str]
    """Topic → answer."""
    after: Mapping[Name, Name] = {}
    """Topic → the topic that must have been asked about before."""


class Sealed(Record):
    """What no agent may see: how it is graded, and how it is solved."""

    grader: Grader
    reference: Script
    alternatives: tuple[Script, ...] = ()
    """Other right solutions; besides the task's tools they may use `bash`."""
    mutants: tuple[Mutant, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    """The goal, sentence by sentence; empty: nobody has said what its sentences ask for."""
    user: ScriptedUser | None = None


class Capability(StrEnum):
    """What an agent has to be able to do."""

    TOOL_DOCS = "reading-tool-docs"
    TOOL_CHOICE = "choosing-tools"
    DEPENDENCY = "cross-tool-dependency"
    CLARIFICATION = "clarification"
    LONG_HORIZON = "long-horizon"
    RECOVERY = "recovery-from-failure"


class Features(Record):
    """What may make a task hard, known from how it was made."""

    depth: Count
    """Longest chain of calls that each need the one before."""
    missing: Count
    """Facts that the goal leaves out."""
    rounds: Count
    """Fewest observations that have to be read before the last call can be chosen."""
    live_rules: Count
    capabilities: tuple[Capability, ...]
    thing: str = ""
    """The business object that it was worded for; empty: the family's own."""


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
    PROPOSED = "proposed"
    """By a model: no trust comes with it."""


UNTRUSTED = frozenset({SourceKind.IMPORTED, SourceKind.PROPOSED})
"""Sources whose tasks nobody here vouches for; each brings a grader of its own."""


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
    features: Features | None
    """None: not known, as for an imported task."""
    source: Source
    outside: Mapping[str, str] = {}
    """Fields of an imported format that have no home here, kept for the way back."""

    def with_source(self, source: Source) -> "TaskManifest":
        """Return the same task from another source, with identities of its own."""
        # Not `model_copy`: it would keep the identities that were worked out before.
        fields = {name: getattr(self, name) for name in TaskManifest.model_fields}
        return TaskManifest.model_validate({**fields, "source": source})

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
