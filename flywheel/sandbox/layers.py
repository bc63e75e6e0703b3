"""The layers of an image as the engine saves them: a tar of tars, also of files deleted since."""

import tarfile
from collections.abc import Iterable, Iterator, Mapping
from tempfile import SpooledTemporaryFile

IN_MEMORY = 32 * 1024 * 1024
MOST_BYTES = 4 * 1024 * 1024
"""Larger files are not searched."""


def search_layers(saved: Iterable[bytes], needles: Mapping[str, bytes]) -> Iterator[str]:
    """Yield `layer N: PATH holds NAME` for every file of every layer that holds a needle.

    Args:
        saved: an image in the format of `docker save`, in chunks.
        needles: name → bytes to look for.
    """
    with SpooledTemporaryFile(IN_MEMORY) as whole:
        for chunk in saved:
            whole.write(chunk)
        whole.seek(0)
        with tarfile.open(fileobj=whole) as image:
            layers = [member for member in image if member.isfile()]
            for number, member in enumerate(layers):
                content = image.extractfile(member)
                if content is None:
                    continue
                try:
                    with tarfile.open(fileobj=content) as layer:
                        yield from _search(f"layer {number}", layer, needles)
                except tarfile.ReadError:
                    continue  # the image's own metadata


def _search(where: str, layer: tarfile.TarFile, needles: Mapping[str, bytes]) -> Iterator[str]:
    for member in layer:
        if not member.isfile() or member.size > MOST_BYTES:
            continue
        content = layer.extractfile(member)
        data = content.read() if content else b""
        for name, needle in needles.items():
            if needle in data:
                yield f"{where}: {member.name!r} holds {name}"
