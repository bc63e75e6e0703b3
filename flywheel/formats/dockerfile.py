"""Reduces a Dockerfile to what it leaves in the working directory, where that can be known.

Instructions that only place files of the build context, set variables, make folders or name the
working directory can be followed without a build. At the first one that can't, the rest is still
read for its files, and the recipe says what the problem is.

Source: https://docs.docker.com/reference/dockerfile/
"""

import fnmatch
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from flywheel.formats.collection import Files, FormatError
from flywheel.formats.documents import text_at
from schemas.file import File

DOCKERFILE = "environment/Dockerfile"
CONTEXT = "environment/"
WITHOUT_EFFECT = frozenset({"CMD", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL", "USER"})
"""On the files and the shell of a sandbox, which runs unprivileged and has its own command."""
PACKED = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
"""What ADD unpacks."""
MAX_INSTRUCTIONS = 300
KEPT = ".keep"
"""An empty file that stands for an empty folder."""


@dataclass
class Recipe:
    """What a Dockerfile makes."""

    base: str = ""
    """The reference after FROM, as written."""
    workdir: str = "/"
    placed: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Absolute path → the context's file that is copied there, and its mode."""
    folders: set[str] = field(default_factory=lambda: {"/"})
    variables: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """The first instruction that needs a build; empty: there is none."""

    def files_below(self, workdir: str, context: Files) -> tuple[File, ...]:
        """Return the files placed below `workdir`, sorted; empty folders hold a `.keep`."""
        found = {}
        for path, (source, mode) in self.placed.items():
            if (inside := _below(path, workdir)) is not None:
                found[inside] = File.of(inside, context[source].data(), mode)
        for folder in self.folders:
            inside = _below(folder, workdir)
            if inside and not any(path.startswith(f"{inside}/") for path in found):
                found[f"{inside}/{KEPT}"] = File(path=f"{inside}/{KEPT}", content="")
        return tuple(found[path] for path in sorted(found))

    def origins(self, workdir: str) -> dict[str, str]:
        """Return the context's files that stand below `workdir`: path → path there."""
        inside = {source: _below(path, workdir) for path, (source, _) in self.placed.items()}
        return {source: path for source, path in inside.items() if path}

    def elsewhere(self, workdir: str) -> str:
        """Return something that is made outside `workdir`, empty where there is nothing."""
        above = {str(parent) for parent in PurePosixPath(workdir).parents} | {workdir}
        made = [*self.placed, *(self.folders - above)]
        return next((path for path in made if _below(path, workdir) is None), "")


def read_dockerfile(files: Files) -> Recipe:
    """Follow `environment/Dockerfile` over the files beside it, which are its context.

    Raises:
        FormatError: it is no text, or names no base.
    """
    recipe = Recipe()
    for number, (word, rest) in enumerate(_instructions(text_at(files, DOCKERFILE))):
        if number == MAX_INSTRUCTIONS:
            raise FormatError(DOCKERFILE, "", f"more than {number} instructions: use an image")
        try:
            _follow(recipe, word, rest, files)
        except _NeedsBuild as problem:
            recipe.problem = recipe.problem or f"{word} {str(problem) or rest}"
    if not recipe.base:
        raise FormatError(DOCKERFILE, "FROM", "missing: name a base image")
    if f"{CONTEXT}.dockerignore" in files:
        recipe.problem = recipe.problem or ".dockerignore"
    return recipe


class _NeedsBuild(Exception):
    """An instruction whose outcome can't be known without a build."""


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield instruction and arguments, continued lines joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\[ \t]*\n", " ", "\n".join(lines))
    for line in joined.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word.upper(), rest.strip()


def _follow(recipe: Recipe, word: str, rest: str, files: Files) -> None:
    if word == "FROM":
        _start(recipe, rest)
    elif word == "WORKDIR":
        recipe.workdir = _absolute(recipe, _literal(rest.strip("\"'")))
        recipe.folders.add(recipe.workdir)
    elif word in ("COPY", "ADD"):
        _copy(recipe, word, rest, files)
    elif word == "ENV":
        _set(recipe, rest)
    elif word == "RUN":
        _make_folders(recipe, rest)
    elif word not in WITHOUT_EFFECT:
        raise _NeedsBuild


def _start(recipe: Recipe, rest: str) -> None:
    words = [word for word in rest.split() if not word.startswith("--")]
    again, recipe.base = bool(recipe.base), words[0] if words else ""
    if again or "$" in rest:
        raise _NeedsBuild


def _copy(recipe: Recipe, word: str, rest: str, files: Files) -> None:
    flags, words = _arguments(rest)
    if flags.keys() - {"chmod", "chown"} or len(words) < 2 or "<<" in rest:
        raise _NeedsBuild
    *sources, last = map(_literal, words)
    target = _absolute(recipe, last)
    into = (
        last == "." or last.endswith(("/", "/.")) or len(sources) > 1 or _is_folder(recipe, target)
    )
    for source in sources:
        if word == "ADD" and (source.endswith(PACKED) or "://" in source or "@" in source):
            raise _NeedsBuild
        for path, below in _matches(source, files):
            place = f"{target}/{below}" if below else target
            if not below and into:
                place = f"{target}/{PurePosixPath(path).name}"
            mode = int(flags["chmod"], 8) & 0o777 if "chmod" in flags else files[path].mode
            recipe.placed[str(PurePosixPath(place))] = (path, mode)


def _arguments(rest: str) -> tuple[dict[str, str], list[str]]:
    """Split the arguments of COPY or ADD into flags and words."""
    flags = {}
    while match := re.match(r"--([a-z]+)=(\S+)\s+", rest):
        flags[match[1]] = match[2]
        rest = rest[match.end() :]
    if flags.get("chmod", "0").strip("01234567"):
        raise _NeedsBuild
    try:
        words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except ValueError:
        raise _NeedsBuild from None
    if not all(isinstance(word, str) for word in words):
        raise _NeedsBuild
    return flags, words


def _matches(source: str, files: Files) -> list[tuple[str, str]]:
    """Return the context's files that a source names: path, and path below a named folder."""
    pattern = str(PurePosixPath(source.lstrip("/"))).removeprefix("./")
    found = []
    for path in files:
        inside = path.removeprefix(CONTEXT)
        if inside == path:
            continue
        depth = 0 if pattern == "." else pattern.count("/") + 1
        head, tail = inside.split("/")[:depth], inside.split("/")[depth:]
        if pattern == "." or fnmatch.fnmatchcase("/".join(head), pattern):
            found.append((path, "/".join(tail)))
    if not found:
        raise _NeedsBuild(f"{source}: nothing of that name in {CONTEXT}")
    return found


def _set(recipe: Recipe, rest: str) -> None:
    try:
        words = shlex.split(rest)
    except ValueError:
        raise _NeedsBuild from None
    if words and "=" not in words[0]:
        words = [f"{words[0]}={rest.partition(' ')[2].strip()}"]
    recipe.variables |= dict(_literal(word).split("=", 1) for word in words if "=" in word)


def _make_folders(recipe: Recipe, rest: str) -> None:
    for command in rest.split("&&"):
        try:
            words = shlex.split(_literal(command))
        except ValueError:
            raise _NeedsBuild from None
        plain = all(re.fullmatch(r"[\w./-]+", word) for word in words)
        if words[:1] != ["mkdir"] or not plain:
            raise _NeedsBuild
        made = [word for word in words[1:] if word != "-p"]
        if any(word.startswith("-") for word in made):
            raise _NeedsBuild
        recipe.folders |= {_absolute(recipe, word) for word in made}


def _literal(text: str) -> str:
    if "$" in text or "`" in text:
        raise _NeedsBuild
    return text


def _absolute(recipe: Recipe, path: str) -> str:
    joined = PurePosixPath(recipe.workdir) / path
    if ".." in joined.parts:
        raise _NeedsBuild
    return str(joined)


def _is_folder(recipe: Recipe, path: str) -> bool:
    made: Mapping[str, object] = recipe.placed
    return path in recipe.folders or any(name.startswith(f"{path}/") for name in made)


def _below(path: str, folder: str) -> str | None:
    """Return `path` relative to `folder`; empty for the folder itself, None outside."""
    pure = PurePosixPath(path)
    if not pure.is_relative_to(folder):
        return None
    inside = str(pure.relative_to(folder))
    return "" if inside == "." else inside
