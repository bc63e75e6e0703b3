"""How a command ends: well, with one line that says what was wrong, or interrupted."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from flywheel.errors import FlywheelError

INTERRUPTED = "interrupted: what is done is kept; the same command goes on from here"


def printable(error: Exception) -> str:
    """Return an error as one safe line: its evidence may hold what an agent wrote."""
    return one_line(f"{type(error).__name__}: {error}")


def one_line(text: str, most: int | None = None) -> str:
    """Return text of unknown hands as one safe line of at most so many characters."""
    return "".join(mark if mark.isprintable() else " " for mark in text)[:most]


@contextmanager
def plain_errors() -> Iterator[None]:
    """End the command with one line where something was wrong with what was asked for.

    After Ctrl-C that line says so, whatever libraries make of the interruption on its way here.
    """
    interrupted = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, note) if _in_main_thread() else None
    try:
        yield
    except FlywheelError as error:
        sys.exit(INTERRUPTED if interrupted.is_set() else printable(error))
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if interrupted.is_set():
            sys.exit(INTERRUPTED)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
