"""What no agent may find: the right answer, hidden tests, the solution, what the solution makes.

Some of it stands where an agent can read it by right: a file that is to be moved, a table of which
a row is asked for. Each secret says where.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from flywheel.formats.harbor_solution import texts_of
from schemas.file import File, is_folder
from schemas.task import TaskManifest

LEAST = 12
"""Characters from which on a text is long enough not to turn up by chance."""
LEAST_OF_A_LINE = 24
LINES = 3
"""Longest lines of a solution that are searched for."""
_BOILERPLATE = re.compile(
    r"#|import |from |set -|export |source |\. |echo |cd |exit|if __name__|"
    r"apt|curl |wget |pip|uv|python3? -m pip|diff |index |--- |\+\+\+ |@@ "
)
_PROGRAM = (".sh", ".py", ".js", ".ts", ".rb", ".go", ".rs", ".java")

Allowed = Callable[[str, bytes], bool]
"""Path in the environment (empty: elsewhere), and all its bytes → whether it may hold a secret."""


def _nowhere(path: str, text: bytes) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Secret:
    """A needle, and where it is no leak."""

    name: str
    needle: bytes
    allowed: Allowed = _nowhere
    in_layers: bool = True
    """Whether it is a leak wherever a layer of an image holds it."""


def secrets_of(task: TaskManifest) -> Iterator[Secret]:
    """Yield what the sealed half of a task holds."""
    for file in task.sealed.grader.expected:
        yield from _expected(task, file)
    if task.sealed.grader.program == "harbor":
        yield from _lines_of_tests(task)
    yield from _solution(task)


def secrets_made(task: TaskManifest, made: Iterable[File]) -> Iterator[Secret]:
    """Yield what the reference made; the goal and the reference say where it is taken from."""
    goal, commands = task.brief.goal, "\n".join(_commands(task))
    for file in made:
        data = file.data()

        def taken_from(path: str, text: bytes, data: bytes = data, own: str = file.path) -> bool:
            part = text.strip() != data.strip()
            return bool(path) and (
                path == own
                or _is_named(path, goal, own)
                or (part and _is_named(path, commands, own))
            )

        yield from _forms(f"what the reference makes: {file.path}", data, taken_from)


def _expected(task: TaskManifest, file: File) -> Iterator[Secret]:
    """Yield the forms of an expected file, unless it is repaired in place or left as it was."""
    name, data = f"the expected {file.path}", file.data()
    if task.sealed.grader.program not in ("files", "tests"):
        yield from _forms(name, data, _nowhere)
        return
    files = task.brief.environment.files
    copies = [known.path for known in files if known.data() == data]
    repaired = any(known.path == file.path for known in files)
    if repaired or (copies and all(_is_given(path, task, file.path) for path in copies)):
        return  # what is wrong with it may be a mark too many; or it is moved, or left alone

    def given(path: str, text: bytes) -> bool:
        return text == data and _is_given(path, task, file.path)

    yield from _forms(name, data, given)


def _is_given(path: str, task: TaskManifest, made: str) -> bool:
    """Tell whether a file of the environment is what the goal is about: to be moved, or kept."""
    everything = task.sealed.grader.program == "tests"  # as a rule, of a whole repository
    folders = tuple(a for a in task.brief.artifacts if is_folder(a) and a != "./")
    below = everything or path.startswith(folders)
    return bool(path) and (below or _is_named(path, task.brief.goal, made))


def _is_named(path: str, text: str, made: str) -> bool:
    """Tell whether a text names a file, by its path or its name, or a folder above it.

    Its name says nothing where the file to be made, at `made`, has the same one.
    """
    *above, name = PurePosixPath(path).parts
    called = path if name == PurePosixPath(made).name else name
    if "." in name and re.search(rf"(?<![\w.-]){re.escape(called)}(?![\w-]|\.\w)", text):
        return True
    parts = above if "." in name else [*above, name]
    folders = (re.escape(part) for part in parts)
    return any(
        re.search(
            rf"[`/]{folder}/?(?![\w/-]|\.\w)|(?<![\w-]){folder}(/(?![\w.])|/\*| folder)", text
        )
        for folder in folders
    )


def _lines_of_tests(task: TaskManifest) -> Iterator[Secret]:
    """Yield the longest line of each program among a verifier's files."""
    for file in task.sealed.grader.expected:
        text = file.data().decode(errors="ignore")
        if file.path.endswith(_PROGRAM) or text.startswith("#!"):
            for line in _longest([text], task.brief.goal, 1):
                yield Secret(f"a line of the hidden {file.path}", line.encode())


def _solution(task: TaskManifest) -> Iterator[Secret]:
    """Yield the reference's texts, and its longest lines but where they are to be put."""
    commands = _commands(task)
    texts = [text.strip() for command in commands for text in texts_of(command)]
    for text in texts:
        if len(text) >= 2 * LEAST:
            yield Secret("the reference's command", text.encode())
    mentioned = "\n".join(commands)

    def rewritten(path: str, text: bytes) -> bool:
        return bool(path) and PurePosixPath(path).name in mentioned

    for line in _longest(texts, task.brief.goal, LINES):
        yield Secret("a line of the reference", line.encode(), rewritten, in_layers=False)


def _commands(task: TaskManifest) -> list[str]:
    return [call.arguments.get("command", "") for call in task.sealed.reference]


def _longest(texts: Iterable[str], goal: str, count: int) -> list[str]:
    """Return the longest lines that only their author would write; of a patch, those added."""
    found = dict[str, None]()
    for text in texts:
        patch = re.search(r"^@@ ", text, re.MULTILINE)
        for line in text.splitlines():
            if patch and not line.startswith("+"):
                continue
            own = (line[1:] if patch else line).strip()
            if len(own) >= LEAST_OF_A_LINE and own not in goal and not _BOILERPLATE.match(own):
                found[own] = None
    return sorted(found, key=len, reverse=True)[:count]


def _forms(name: str, data: bytes, allowed: Allowed) -> Iterator[Secret]:
    """Yield a text as it is, encoded and hashed."""
    if len(data.strip()) < LEAST:
        return
    yield Secret(name, data.strip(), allowed)
    yield Secret(f"{name} in base64", base64.b64encode(data.strip()), allowed)
    for algorithm in ("md5", "sha1", "sha256"):
        for form, how in ((data, ""), (data.strip(), ", blanks at its ends left out")):
            found = hashlib.new(algorithm, form).hexdigest().encode()
            yield Secret(f"the {algorithm} of {name}{how}", found, allowed)
