"""Where untrusted work runs: one Protocol, two backends (bubblewrap, Docker).

A sandbox is single-use. It holds a workspace (its working directory, empty at first), a set of
programs (Python files with a `main(argv) -> int`, loaded once and forked per call) and nothing
else of ours: what an agent must not see is never put in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from flywheel.sandbox.layers import Searched
from schemas.config import SandboxKind
from schemas.file import File
from schemas.task import WORKDIR, Environment

BOOT_SECONDS = 60.0
"""Allowed on top of the work's own seconds before a sandbox is killed from outside."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a sandbox may use, whoever is inside."""

    memory_mb: int = 512
    workspace_mb: int = 64
    processes: int = 64
    output_bytes: int = 16_384
    """Per call: head and tail are kept, the middle is dropped and counted."""
    artifact_bytes: int = 1_048_576
    """Largest file that `get` returns; most that `tree` returns in all."""
    tree_files: int = 2_000
    """Most entries that `tree` returns."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What to start."""

    programs: Mapping[str, str]
    """Name → Python source. Never hidden material in an agent's sandbox."""
    deadline: float
    """Seconds from start after which the sandbox is killed, whatever it does."""
    labels: Mapping[str, str]
    """`run` and `attempt`: what the reaper goes by."""
    image: str | None = None
    limits: Limits = field(default_factory=Limits)
    workdir: str = WORKDIR
    """Absolute path of the workspace, empty at first, whatever the image has there."""
    folders: tuple[str, ...] = ()
    """Further writable folders (absolute), each as large as the workspace and empty at first.

    `put`, `call`, `get` and `tree` take absolute paths below them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of the fixed ones, or in place of them."""


def spec_for(
    environment: Environment,
    programs: Mapping[str, str],
    deadline: float,
    labels: Mapping[str, str],
) -> SandboxSpec:
    """Return the sandbox that a task's environment asks for, its files not yet in it."""
    return SandboxSpec(
        programs=programs,
        deadline=deadline,
        labels=labels,
        image=environment.image,
        workdir=environment.workdir,
        folders=environment.folders,
        environment=environment.variables,
    )


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one call left behind."""

    exit_code: int
    """Negative: killed by that signal."""
    output: bytes
    """Standard output and error, interleaved, cut to `output_bytes`."""
    dropped: int
    """Bytes cut from the middle."""
    seconds: float
    timed_out: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """What stands below a folder."""

    files: tuple[File, ...]
    """Regular files with their modes, paths relative to the folder, sorted."""
    refused: tuple[str, ...]
    """`path: reason`, for links, devices, files that are too large or too many."""


class ArtifactRefused(Exception):
    """An artifact that is not returned: absent, too large, a link, a device. The agent's doing."""


class Sandbox(Protocol):
    """A started sandbox. Every method raises SandboxError when the boundary fails."""

    def put(self, files: Iterable[File], folder: str = ".", *, read_only: bool = False) -> None:
        """Write files with their modes below `folder` in the workspace."""

    def call(self, argv: Sequence[str], timeout: float, folder: str = ".") -> ExecResult:
        """Run a program by name (or an absolute path) in `folder`.

        It and all that it started is killed after `timeout` seconds.
        """

    def get(self, path: str) -> bytes:
        """Return a regular file of the workspace; raise ArtifactRefused where it is none."""

    def tree(self, folder: str) -> Tree:
        """Return all that stands below a folder; raise ArtifactRefused where it is none."""


OpenSandbox = Callable[[SandboxSpec], AbstractContextManager[Sandbox]]


class Backend(Protocol):
    """A way to start sandboxes."""

    @property
    def name(self) -> SandboxKind:
        """`bubblewrap` or `docker`."""

    @property
    def digest(self) -> str:
        """What every sandbox of this backend is made of: interpreter or image, worker."""

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """Start a sandbox; leaving the context removes it, also after a failure."""

    def search_image(self, image: str, needles: Mapping[str, bytes]) -> Searched:
        """Return where the layers of an image hold a needle; raise SandboxError as `open`."""

    def reap(self) -> int:
        """Remove the sandboxes whose process on this host is gone; return how many."""
