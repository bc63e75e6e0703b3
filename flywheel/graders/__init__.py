"""Graders: programs that run isolated in the second sandbox, which the agent never entered."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Literal

from flywheel.errors import ConfigError

GRADERS = ("compare", "database", "files", "harbor", "tests")
"""The programs that ship."""
ABSOLUTE = frozenset({"harbor", "tests"})
"""Those that use absolute paths and the task's own image: each set of artifacts needs a sandbox."""


@cache
def grader_source(name: str) -> str:
    """Return the text of a grader program.

    Raises:
        ConfigError: none of that name ships.
    """
    if name not in GRADERS:
        raise ConfigError(f"grader.program {name!r}: unknown; use one of {', '.join(GRADERS)}")
    return _text(name)


def companion_source(name: Literal["reports", "unittest_lines"]) -> str:
    """Return the text of a program that travels among the hidden files of the grader `tests`."""
    return _text(name)


def _text(name: str) -> str:
    return (files(__package__) / f"{name}.py").read_text("utf-8")


def grader_version(name: str) -> str:
    """Return `name@…`, a digest of the program's text."""
    return f"{name}@{hashlib.sha256(grader_source(name).encode()).hexdigest()[:12]}"
