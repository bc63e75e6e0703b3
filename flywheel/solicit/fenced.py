"""Files out of a model's answer: text between fences in, files or a refusal out.

    ~~~~ tests/test.sh
    …
    ~~~~

A line of four tildes and a path opens a file, a line of four tildes closes it; what stands
outside is not read. A model wrote this: sizes, paths and characters are checked before anything is
kept, and nothing is executed.
"""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

from schemas.file import File

FENCE = "~~~~"
MAX_ANSWER = 1024 * 1024
"""Characters of an answer."""
MAX_FILES = 64
MAX_FILE = 256 * 1024
"""Characters of a file."""
MAX_DEPTH = 8
MAX_EVIDENCE = 200
REQUIRED = ("task.toml", "instruction.md", "solution/solve.sh", "tests/test.sh")
FOLDERS = ("environment", "solution", "tests")
PART = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._+@=][A-Za-z0-9._+@=-]{0,63}")
"""A component of a path: no space, no option, nothing that a shell or a Dockerfile expands."""
PLAIN = frozenset("\n\t")
UNSEEN = ("Cc", "Cf", "Cs")
"""Unicode categories of characters that can't be seen: they fool a terminal or a reader."""


class Unusable(Exception):
    """An answer that is no task folder: a code and the evidence."""

    def __init__(self, code: str, evidence: str) -> None:
        self.code = code
        self.evidence = evidence.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
        super().__init__(f"{code}: {self.evidence}")


def parse_files(answer: str) -> tuple[File, ...]:
    """Return the files of a Harbor task folder, in the order in which they were written.

    Raises:
        Unusable: `too-large`, `control-characters`, `bad-path`, `nested-fence`, `unclosed-file`,
            `too-many-files`, `duplicate-path`, `stray-file` or `missing-file`.
    """
    if len(answer) > MAX_ANSWER:
        raise Unusable("too-large", f"{len(answer)} characters; at most {MAX_ANSWER}")
    _check_characters(answer)
    files: dict[str, File] = {}
    for path, content in _blocks(answer):
        if path in files:
            raise Unusable("duplicate-path", path)
        if len(files) == MAX_FILES:
            raise Unusable("too-many-files", f"more than {MAX_FILES}")
        files[path] = _file(path, content)
    _check_folder(files)
    return tuple(files.values())


def _blocks(answer: str) -> Iterable[tuple[str, str]]:
    """Yield path and content of each fenced file."""
    path, lines = "", list[str]()
    for line in answer.split("\n"):
        fenced = line.startswith(FENCE)
        name = line.removeprefix(FENCE).strip() if fenced else ""
        if not path and fenced:
            if not name:
                raise Unusable("bad-path", "a fence without a path")
            path, lines = name, []
        elif path and fenced:
            if name:
                raise Unusable("nested-fence", f"{name} opens before {path} is closed")
            yield path, "".join(f"{text}\n" for text in lines)
            path = ""
        elif path:
            lines.append(line)
    if path:
        raise Unusable("unclosed-file", path)


def _file(path: str, content: str) -> File:
    """Check one file."""
    parts = path.split("/")
    if len(parts) > MAX_DEPTH or not all(PART.fullmatch(part) for part in parts):
        raise Unusable("bad-path", path)
    if any(part.casefold() == ".git" for part in parts):
        raise Unusable("stray-file", f"{path}: a repository brings code that runs by itself")
    if path not in REQUIRED and (len(parts) < 2 or parts[0] not in FOLDERS):
        raise Unusable("stray-file", f"{path} is not below {', '.join(FOLDERS)}")
    if len(content) > MAX_FILE:
        raise Unusable("too-large", f"{path}: more than {MAX_FILE} characters")
    return File(path=path, content=content)


def _check_characters(answer: str) -> None:
    for position, character in enumerate(answer):
        if character not in PLAIN and unicodedata.category(character) in UNSEEN:
            raise Unusable("control-characters", f"U+{ord(character):04X} at {position}")


def _check_folder(files: dict[str, File]) -> None:
    """Tell whether these files make a folder, and a task folder at that."""
    taken = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    for path in files:
        if path in taken:
            raise Unusable("bad-path", f"{path} is a file and a folder")
    for path in REQUIRED:
        if path not in files:
            raise Unusable("missing-file", path)
    if not any(path.startswith("environment/") for path in files):
        raise Unusable("missing-file", "environment/Dockerfile")
