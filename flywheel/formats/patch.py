"""Patches as git writes them: the files that they touch, and the call that applies one."""

import re
import shlex
from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError

from flywheel.formats.collection import FormatError
from schemas.file import RelativePath
from schemas.tool import Script, ToolCall

MAX_COMMAND_BYTES = 120_000
"""Linux takes at most 128 KiB in one argument, and bash gets a call as one."""
REMOVED = "0"
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_LINK_MODES = ("120000", "160000")
_PATH = TypeAdapter[str](RelativePath)


def touched(patch: str, source: str, field: str) -> dict[str, str]:
    """Return the files that a patch touches, by path below the top folder.

    Args:
        patch: in git's format or as plain unified diff, with one leading folder (`-p1`).
        source: the file or task that it comes from, for messages.
        field: what it is there, for messages.

    Returns:
        Path → the first digits of the git blob that the file becomes: zeros where it is removed,
        nothing where the patch doesn't say.

    Raises:
        FormatError: a path that leaves the tree or lies in `.git`, a symbolic link, a submodule.
    """
    files: dict[str, str] = {}
    for blob, path in _named(patch, source, field):
        problem = _problem(path)
        if problem:
            raise FormatError(source, field, f"{path!r}: {problem}")
        if set(files.get(path, "")) != {REMOVED}:
            files[path] = blob
    return files


def _named(patch: str, source: str, field: str) -> Iterator[tuple[str, str]]:
    """Yield the blob and the path of each mention of a file in the headers."""
    blob = both = ""
    for line in _headers(patch):
        word, _, rest = line.partition(" ")
        if line.startswith("diff --git "):
            blob, both = "", _same(rest[6:])
        elif word == "index":
            blob = rest.partition("..")[2].split(" ")[0]
        elif line.startswith(("rename from ", "copy from ")):
            yield (REMOVED if word == "rename" else ""), _plain(rest[5:])
        elif line.startswith(("rename to ", "copy to ")):
            yield "", _plain(rest[3:])
        elif word in ("---", "+++") and rest and not rest.startswith("/dev/null"):
            yield blob, _plain(rest.split("\t")[0]).partition("/")[2]
        elif " mode " in line and line.endswith(_LINK_MODES):
            raise FormatError(source, field, "a symbolic link or submodule: leave it out")
        if both and word in ("diff", "index"):
            yield blob, both


def _headers(patch: str) -> Iterator[str]:
    """Yield the lines outside hunks: inside one, `--- a/x` may be a removed line."""
    old = new = 0
    for line in patch.split("\n"):
        if old > 0 or new > 0:
            old -= not line.startswith(("+", "\\"))
            new -= not line.startswith(("-", "\\"))
        elif found := _HUNK.match(line):
            old, new = (int(count or 1) for count in found.groups())
        else:
            yield line


def _same(names: str) -> str:
    """Return the path of `a/PATH b/PATH`; nothing where the two differ or can't be told apart."""
    half = len(names) // 2
    old, new = _plain(names[:half]), _plain(names[half + 1 :])
    path = old.partition("/")[2]
    return path if path and path == new.partition("/")[2] else ""


def _plain(name: str) -> str:
    """Undo git's quoting of unusual names."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    try:
        escaped = name[1:-1].encode("ascii", "backslashreplace").decode("unicode_escape")
        return escaped.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return name


def _problem(path: str) -> str:
    try:
        _PATH.validate_python(path)
    except ValidationError as error:
        return error.errors(include_url=False)[0]["msg"]
    return "lies in .git" if ".git" in path.casefold().split("/") else ""


def applying(patch: str, source: str, field: str) -> Script:
    """Return the script of one `bash` call that applies a patch to the current folder.

    Raises:
        FormatError: it touches nothing, holds a NUL, or is too large for one call.
    """
    command = f"{shlex.join(['printf', '%s', patch])} | git apply --whitespace=nowarn -"
    if not touched(patch, source, field):
        raise FormatError(source, field, "no diff: give a patch in git's format")
    if "\0" in command or len(command.encode()) > MAX_COMMAND_BYTES:
        reason = f"a NUL, or more than {MAX_COMMAND_BYTES} bytes: one call can't apply it"
        raise FormatError(source, field, reason)
    return (ToolCall(tool="bash", arguments={"command": command}),)


def applied_by(script: Script) -> str:
    """Return the patch that a script of `applying` applies.

    Raises:
        FormatError: it is another kind of script.
    """
    words = shlex.split(script[0].arguments.get("command", "")) if len(script) == 1 else []
    if words[:2] != ["printf", "%s"] or words[3:5] != ["|", "git"]:
        raise FormatError("sealed.reference", "", "does not apply one patch")
    return words[2]
