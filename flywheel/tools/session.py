"""What services outside the sandbox have in common: one session an attempt, one deadline a call."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

from flywheel.errors import SandboxError
from flywheel.tools.host import Answer
from schemas.attempt import InfraStage

Session = TypeVar("Session")
MAX_EVIDENCE = 300


class SharedSession(Generic[Session]):
    """A service's session, shared by its tools that are open in one thread at the same time.

    An attempt runs in one thread and opens its tools inside one another, so the first one of a
    service opens the session and, being the last to be closed, closes it: what one tool did the
    others know, and no other attempt does.
    """

    def __init__(self, open_session: Callable[[], AbstractContextManager[Session]]) -> None:
        self._open = open_session
        self._local = threading.local()

    @contextmanager
    def __call__(self) -> Iterator[Session]:
        """Yield this thread's session."""
        current: Session | None = getattr(self._local, "session", None)
        if current is not None:
            yield current
            return
        with self._open() as session:
            self._local.session = session
            try:
                yield session
            finally:
                del self._local.session


def fault(program: str, code: str, evidence: str, *, retryable: bool = True) -> SandboxError:
    """Return the infrastructure fault of a tool that could not be reached, or broke."""
    shown = evidence.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
    return SandboxError(InfraStage.TOOL, code, f"{program}: {shown}", retryable=retryable)


def timed_out(program: str, seconds: float, timeout: float) -> Answer:
    """Return the answer of a call that took all of the `seconds` that the attempt had left.

    Raises:
        SandboxError: `tool-timeout`, where the attempt had time to spare and the tool, which has
            to answer within `timeout` seconds, did not.
    """
    if timeout < seconds:
        raise fault(program, "tool-timeout", f"no answer within {timeout:g} s")
    return Answer(f"no answer within {seconds:.1f} s", failed=True)
