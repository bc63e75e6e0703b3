"""Where untrusted work runs: one Protocol, two backends (bubblewrap, Docker).

A sandbox is single-use. It holds a workspace (its working directory, empty at first), a set of
programs (Python files with a `main(argv) -> int`, loaded once and forked per call) and nothing
else of ours: what an agent must not see is never put in.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from schemas.config import SandboxKind
from schemas.task import File


@dataclass(frozen=True, slots=True)
class Limits:
    """What a sandbox may use, whoever is inside."""

    memory_mb: int = 512
    workspace_mb: int = 64
    processes: int = 64
    output_bytes: int = 16_384
    """Per call: head and tail are kept, the middle is dropped and counted."""
    artifact_bytes: int = 1_048_576
    """Largest file that `get` returns."""


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


class ArtifactRefused(Exception):
    """An artifact that is not returned: absent, too large, a link, a device. The agent's doing."""


class Sandbox(Protocol):
    """A started sandbox. Every method raises SandboxError when the boundary fails."""

    def put(self, files: Iterable[File], folder: str = ".", *, read_only: bool = False) -> None:
        """Write files below `folder` in the workspace."""

    def call(self, argv: Sequence[str], timeout: float, folder: str = ".") -> ExecResult:
        """Run a program by name (or an absolute path) in `folder`.

        It and all that it started is killed after `timeout` seconds.
        """

    def get(self, path: str) -> bytes:
        """Return a regular file of the workspace; raise ArtifactRefused where it is none."""


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

    def reap(self) -> int:
        """Remove the sandboxes whose process on this host is gone; return how many."""
