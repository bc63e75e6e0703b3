"""A Harbor solution as the script of a policy: calls of `bash`.

A lone `solve.sh` is the call itself. Where there are further files, or it asks for its own place,
the call first writes them all to /solution, or to a folder below /tmp where there is none.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from flywheel.formats.collection import FormatError
from flywheel.formats.documents import text_of
from flywheel.tools import BASH_TOOL
from schemas.file import File
from schemas.tool import Script, ToolCall

SOLVE = "solve.sh"
MAX_COMMAND = 100_000
"""Bytes of one call; Linux takes 131,072 in one argument."""
_ASKS_WHERE = re.compile(r"\$0|\$\{0|BASH_SOURCE|/solution\b")
_WRITES = ("printf", "%s", ">>")
_FOLDER = "home=/solution; [ -w /solution ] || home=/tmp/solution"


def reference_of(solution: Sequence[File], variables: Mapping[str, str]) -> Script:
    """Return calls that solve the task; more than one only where a single one is too long.

    Args:
        solution: the files of `solution/`, by their paths there.
        variables: set for `solve.sh`.

    Raises:
        FormatError: there is no `solve.sh`, or a variable has no proper name.
    """
    solve = next((file for file in solution if file.path == SOLVE), None)
    if solve is None:
        raise FormatError(f"solution/{SOLVE}", "", "missing: add the reference solution")
    exports = "".join(_export(name, value) for name, value in variables.items())
    text = text_of(solve.model_copy(update={"path": f"solution/{SOLVE}"}))
    alone = len(solution) == 1 and not _ASKS_WHERE.search(text)
    if alone and len(text.encode()) <= MAX_COMMAND and not exports:
        return (_bash(text),)
    lines = [line for file in solution for line in _written(file)]
    run = f'{exports}bash "$home/{SOLVE}"'
    return tuple(_bash(command) for command in _calls([*lines, run]))


def folders_for(script: Script) -> tuple[str, ...]:
    """Return the folders that a reference wants to find, as Harbor would have made them."""
    return ("/solution",) if script[0].arguments["command"].startswith(_FOLDER) else ()


def texts_of(command: str) -> list[str]:
    """Return the texts of a call that `reference_of` made: the files that it writes, or itself.

    Long files come in pieces, and those that are no text not at all.
    """
    if not command.startswith(_FOLDER):
        return [command]
    try:
        words = shlex.split(command)
    except ValueError:  # somebody else's
        return [command]
    written = zip(words, words[1:], words[2:], words[3:], strict=False)
    return [text for first, form, text, then in written if (first, form, then) == _WRITES]


def _bash(command: str) -> ToolCall:
    return ToolCall(tool=BASH_TOOL.name, arguments={"command": command})


def _export(name: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or "\0" in value:
        raise FormatError("task.toml", f"solution.env.{name}", "not a variable: rename it")
    return f"export {name}={shlex.quote(value)}\n"


def _written(file: File) -> Iterator[str]:
    """Yield command lines that write a file, each well below the length of a call."""
    place = f'"$home"/{shlex.quote(file.path)}'
    above = PurePosixPath(file.path).parent
    yield f'mkdir -p "$home"/{shlex.quote(str(above))} && : > {place}'
    decode = " | base64 -d" if file.encoding == "base64" else ""
    step = MAX_COMMAND // 8  # a quote becomes five characters, a character up to four bytes
    for start in range(0, len(file.content), step):
        yield f"printf %s {shlex.quote(file.content[start : start + step])}{decode} >> {place}"
    yield f"chmod {file.mode:o} {place}"


def _calls(lines: Iterable[str]) -> Iterator[str]:
    """Join command lines to as few calls as hold them."""
    call = _FOLDER
    for line in lines:
        if len(call.encode()) + len(line.encode()) > MAX_COMMAND and call != _FOLDER:
            yield call
            call = _FOLDER
        call += f"\n{line}"
    yield call
