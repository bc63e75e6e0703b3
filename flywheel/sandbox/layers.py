"""The layers of an image as the engine saves them: a tar of tars, also of files deleted since."""

import json
import lzma
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

IN_MEMORY = 32 * 1024 * 1024
MOST_BYTES = 64 * 1024 * 1024
"""Larger files are not searched, and said so."""
MANIFEST = "manifest.json"
_UNREADABLE = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, KeyError)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search of an image's layers came to."""

    findings: tuple[str, ...] = ()
    """`layer N: PATH holds NAME`, for every file of every layer that holds a needle."""
    unsearched: tuple[str, ...] = ()
    """What could not be searched, with the reason: no finding there says nothing."""


def search_layers(saved: Iterable[bytes], needles: Mapping[str, bytes]) -> Searched:
    """Search every file of every layer, those that a later layer deletes included.

    Args:
        saved: an image in the format of `docker save`, in chunks.
        needles: name → bytes to look for.

    Source: https://github.com/moby/docker-image-spec/blob/main/spec.md
    """
    findings, unsearched = list[str](), list[str]()
    with SpooledTemporaryFile(IN_MEMORY) as whole:
        for chunk in saved:
            whole.write(chunk)
        whole.seek(0)
        try:
            with tarfile.open(fileobj=whole) as image:
                for number, name in enumerate(_layers(image)):
                    where = f"layer {number}"
                    try:
                        _search(where, image, name, needles, findings, unsearched)
                    except _UNREADABLE as problem:
                        reason = str(problem).partition("\n")[0][:80]
                        unsearched.append(f"{where}: can't be read as tar: {reason}")
        except (tarfile.TarError, _NoManifest) as problem:
            unsearched.append(f"the image can't be read: {problem}")
    return Searched(tuple(findings), tuple(unsearched))


class _NoManifest(Exception):
    """The image does not say what its layers are."""


def _layers(image: tarfile.TarFile) -> Iterator[str]:
    """Yield the names of the layers in the order of the image's manifest, each once."""
    try:
        content = image.extractfile(MANIFEST)
        entries = json.load(content) if content else []
        names = [str(name) for entry in entries for name in entry["Layers"]]
    except (KeyError, TypeError, ValueError) as problem:
        raise _NoManifest(f"{MANIFEST} names no layers") from problem
    if not names:
        raise _NoManifest(f"{MANIFEST} names no layers")
    yield from dict.fromkeys(names)


def _search(
    where: str,
    image: tarfile.TarFile,
    name: str,
    needles: Mapping[str, bytes],
    findings: list[str],
    unsearched: list[str],
) -> None:
    """Search one layer; raise one of `_UNREADABLE` where it can't be read to its end."""
    content = image.extractfile(name)
    if content is None:
        raise tarfile.ReadError(f"{name!r} is no file")
    with tarfile.open(fileobj=content) as layer:
        for member in layer:
            if not member.isfile():
                continue
            if member.size > MOST_BYTES:
                unsearched.append(f"{where}: {member.name!r} is larger than {MOST_BYTES} bytes")
                continue
            stream = layer.extractfile(member)
            data = stream.read() if stream else b""
            held = (title for title, needle in needles.items() if needle in data)
            findings += [f"{where}: {member.name!r} holds {title}" for title in held]
