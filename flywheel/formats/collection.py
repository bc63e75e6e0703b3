"""The files of one task as they are read, counted against bounds and checked name by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from flywheel.errors import ManifestError
from schemas.file import MAX_FILE_BYTES, File

Files = Mapping[str, File]
"""Path below the folder, with slashes → the file."""


class FormatError(ManifestError):
    """A task that can't be read: which file, which field, and what to change."""

    def __init__(self, path: str, field: str, reason: str) -> None:
        super().__init__(": ".join(shown(part) for part in (path, field, reason) if part))
        self.path, self.field, self.reason = shown(path), shown(field), shown(reason)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one task may be made of."""

    files: int = 2_000
    """Entries, folders included."""
    file_bytes: int = MAX_FILE_BYTES
    bytes: int = 32 * 1024 * 1024
    """Of all files together, unpacked."""
    depth: int = 16
    """Folders above a file."""


BOUNDS = Bounds()


@dataclass
class Collection:
    """The files read so far, counted against the bounds."""

    source: str
    bounds: Bounds
    files: dict[str, File] = field(default_factory=dict)
    _entries: int = 0
    _bytes: int = 0
    _folders: set[str] = field(default_factory=set)

    def count(self) -> None:
        """Count one entry of whatever kind."""
        self._entries += 1
        if self._entries > self.bounds.files:
            raise self.refusal(
                "", f"more than {self.bounds.files} files and folders: leave out what it can spare"
            )

    def name(self, path: str) -> str:
        """Return `path` in its normal form, or refuse it."""
        pure = PurePosixPath(path)
        if not path.isprintable():
            raise self.refusal(path, "control characters in a file name: rename it")
        if pure.is_absolute() or ".." in pure.parts:
            raise self.refusal(path, "leaves the folder: use a relative path without '..'")
        if len(pure.parts) > self.bounds.depth or len(str(pure)) > 255:
            raise self.refusal(path, f"more than {self.bounds.depth} folders or 255 characters")
        return str(pure)

    def add(self, path: str, mode: int, size: int, read: Callable[[int], bytes]) -> None:
        """Read one file of `size` bytes by `read(at most)`; a size that was a lie is refused."""
        name = self.name(path)
        self._claim(name)
        room = min(self.bounds.file_bytes, self.bounds.bytes - self._bytes)
        if size > room:
            raise self._too_large(name)
        data = read(room + 1)
        if len(data) > room:
            raise self._too_large(name)
        self._bytes += len(data)
        self.files[name] = File.of(name, data, mode & 0o777)

    def refusal(self, path: str, reason: str) -> FormatError:
        """Return the error about one entry."""
        return FormatError(self.source, path, reason)

    def _claim(self, name: str) -> None:
        above = {str(parent) for parent in PurePosixPath(name).parents}
        if name in self.files or name in self._folders or above & self.files.keys():
            raise self.refusal(name, "there twice: keep one of the two")
        self._folders |= above

    def _too_large(self, name: str) -> FormatError:
        return self.refusal(
            name,
            f"larger than {self.bounds.file_bytes} bytes, or the folder larger than "
            f"{self.bounds.bytes}: leave it out or shrink it",
        )


def shown(text: str, limit: int = 300) -> str:
    """Return hostile text as one printable line of bounded length."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return line if len(line) <= limit else f"{line[:limit]}…"
