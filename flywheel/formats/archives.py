"""Task folders in archives, read in memory: sizes are checked as declared and as they come out."""

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from flywheel.formats.collection import Collection
from schemas.file import FILE_MODE, File

ZIP, TAR, TAR_GZ = ".zip", ".tar", (".tar.gz", ".tgz")
TAR_BLOCKS = 4 * 512
"""Headers and padding that a tar file may spend on one entry."""
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)
"""What the readers of the standard library raise on broken or locked archives."""


def is_archive(name: str) -> bool:
    """Tell by its name whether a file is an archive that can be read."""
    return name.endswith((ZIP, TAR, *TAR_GZ))


def read_archive(path: Path, collection: Collection) -> dict[str, File]:
    """Return the files of an archive; a single folder around all of them is taken off.

    Raises:
        FormatError: an entry that is refused, or an archive that is broken.
    """
    limit = _limit(collection)
    with path.open("rb") as stream:
        packed = stream.read(limit + 1)
    if len(packed) > limit:
        raise collection.refusal("", f"an archive of more than {limit} bytes: split it")
    try:
        if path.name.endswith(ZIP):
            _read_zip(packed, collection)
        else:
            _read_tar(packed, collection, packed_by_gzip=path.name.endswith(TAR_GZ))
    except BROKEN as problem:
        raise collection.refusal("", f"a broken archive ({problem}): pack it again") from None
    return _without_outer_folder(collection.files)


def _limit(collection: Collection) -> int:
    """Return the most bytes of an archive, packed or not, whose files are within the bounds."""
    return collection.bounds.bytes + TAR_BLOCKS * collection.bounds.files


def _read_zip(packed: bytes, collection: Collection) -> None:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for entry in archive.infolist():
            collection.count()
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if entry.is_dir():
                collection.name(entry.filename)
                continue
            if kind not in (0, stat.S_IFREG):
                raise collection.refusal(entry.filename, "a link or device: pack the file itself")
            if entry.flag_bits & 1:
                raise collection.refusal(entry.filename, "encrypted: pack it without a password")
            mode = entry.external_attr >> 16 & 0o777 or FILE_MODE
            with archive.open(entry) as stream:
                collection.add(entry.filename, mode, entry.file_size, stream.read)


class _Header(tarfile.TarInfo):
    """A header whose size can't send the reader backwards, in a circle for ever."""

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.HeaderError("a negative size")
        return -(-count // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _read_tar(packed: bytes, collection: Collection, *, packed_by_gzip: bool) -> None:
    data = _gunzip(packed, collection) if packed_by_gzip else packed
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", tarinfo=_Header) as archive:
        for entry in _entries(archive, collection):
            if entry.isdir():
                collection.name(entry.name)
                continue
            stream = archive.extractfile(entry) if entry.isreg() else None
            if stream is None:
                raise collection.refusal(entry.name, "a link or device: pack the file itself")
            collection.add(entry.name, entry.mode, entry.size, stream.read)
        if data[archive.offset :].strip(b"\0"):
            raise tarfile.ReadError(f"no header at byte {archive.offset}")


def _entries(archive: tarfile.TarFile, collection: Collection) -> Iterator[tarfile.TarInfo]:
    while (entry := archive.next()) is not None:
        collection.count()
        yield entry


def _gunzip(packed: bytes, collection: Collection) -> bytes:
    limit = _limit(collection)
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise collection.refusal("", f"unpacks to more than {limit} bytes: shrink it")
    return data


def _without_outer_folder(files: dict[str, File]) -> dict[str, File]:
    outer = {path.partition("/")[::2] for path in files}
    tops = {top for top, _ in outer}
    if len(tops) != 1 or not all(rest for _, rest in outer):
        return files
    moved = ((path.partition("/")[2], file) for path, file in files.items())
    return {path: file.model_copy(update={"path": path}) for path, file in moved}
