"""A small file below a workspace, and the paths that such files may have."""

import base64
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from schemas.base import Record

MAX_FILE_BYTES = 4 * 1024 * 1024
FILE_MODE = 0o644
MAX_PATH = 255
"""Characters."""


def _safe_path(path: str) -> str:
    """Accept a relative path that stays below the workspace and prints as one line."""
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts or path.endswith("/"):
        raise ValueError(f"path {path!r} must be relative and must not contain '..'")
    if len(path) > MAX_PATH or not path.isprintable():
        raise ValueError(f"path {path!r} must be at most {MAX_PATH} printable characters")
    return path


RelativePath = Annotated[str, AfterValidator(_safe_path)]


def is_folder(artifact: str) -> bool:
    """Tell whether an artifact is a folder with all below it: `out/`, or `./` for everything."""
    return artifact.endswith("/")


def _safe_artifact(path: str) -> str:
    return path if path == "./" else _safe_path(path.removesuffix("/")) and path


ArtifactPath = Annotated[str, AfterValidator(_safe_artifact)]
"""A file, or a folder (it ends with a slash) with every regular file below it and their modes."""


class File(Record):
    """A small file below the workspace."""

    path: RelativePath
    content: str
    """The text itself, or base64 where `encoding` says so."""
    encoding: Literal["utf-8", "base64"] = "utf-8"
    mode: Annotated[int, Field(ge=0, le=0o777)] = FILE_MODE
    """Permission bits."""

    @classmethod
    def of(cls, path: str, data: bytes, mode: int = FILE_MODE) -> "File":
        """Wrap `data`, as text where it is valid UTF-8 without NUL bytes, else as base64."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            encoded = base64.b64encode(data).decode("ascii")
            return cls(path=path, content=encoded, encoding="base64", mode=mode)
        return cls(path=path, content=text, mode=mode)

    def data(self) -> bytes:
        """Return the file's bytes."""
        if self.encoding == "base64":
            return base64.b64decode(self.content, validate=True)
        return self.content.encode("utf-8")

    @model_validator(mode="after")
    def _small_and_readable(self) -> "File":
        if len(self.content) > MAX_FILE_BYTES * 4 // 3 + 4:
            raise ValueError(f"{self.path}: larger than {MAX_FILE_BYTES} bytes")
        try:
            self.data()
        except ValueError as problem:  # binascii.Error and UnicodeEncodeError are two
            raise ValueError(f"{self.path}: content is no {self.encoding}: {problem}") from None
        return self
