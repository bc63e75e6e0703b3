"""Searching the layers of an image in the form in which an engine saves it."""

import gzip
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from flywheel.sandbox import Backend, layers
from flywheel.sandbox.layers import Searched, search_layers

NEEDLES = {"the answer": b"forty-two"}


def tar_of(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def image_of(*blobs: bytes) -> bytes:
    """An image as `docker save` writes it: metadata, and a blob for each layer."""
    names = [f"blobs/sha256/{number:064x}" for number in range(len(blobs))]
    manifest = [{"Config": "config.json", "RepoTags": None, "Layers": names}]
    files = {"oci-layout": b"{}", "config.json": b"{}", **dict(zip(names, blobs, strict=True))}
    return tar_of(files | {"manifest.json": json.dumps(manifest).encode()})


def searched(*blobs: bytes) -> Searched:
    saved = image_of(*blobs)
    chunks = (saved[at : at + 1000] for at in range(0, len(saved), 1000))
    return search_layers(chunks, NEEDLES)


def test_an_image_without_secrets_is_searched_whole() -> None:
    assert searched(tar_of({"etc/hosts": b"localhost"}), tar_of({})) == Searched((), ())


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_needle_is_found_in_its_layer_whatever_its_packing(pack: type[bytes]) -> None:
    found = searched(tar_of({"a": b""}), pack(tar_of({"app/x": b"it is forty-two."})))
    assert found == Searched(("layer 1: 'app/x' holds the answer",), ())


def test_a_file_that_a_later_layer_deletes_is_searched_all_the_same() -> None:
    found = searched(tar_of({"app/x": b"forty-two"}), tar_of({"app/.wh.x": b""}))
    assert found.findings == ("layer 0: 'app/x' holds the answer",)


@pytest.mark.parametrize(
    "blob",
    [
        b"\x28\xb5\x2f\xfd" + b"forty-two in zstd" * 100,
        gzip.compress(tar_of({"x": b"y" * 5000}))[:-20],
        tar_of({"x": b"y" * 5000})[:2000],
        b"",
    ],
    ids=["zstd", "gzip cut off", "tar cut off", "empty"],
)
def test_a_layer_that_cannot_be_read_is_counted_and_the_others_are_searched(blob: bytes) -> None:
    found = searched(blob, tar_of({"x": b"forty-two"}))
    assert found.findings == ("layer 1: 'x' holds the answer",)
    (unsearched,) = found.unsearched
    assert unsearched.startswith("layer 0: can't be read as tar")


def test_a_file_over_the_limit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_BYTES", 100)
    found = searched(tar_of({"big": b"forty-two" * 20, "small": b"forty-two"}))
    assert found.findings == ("layer 0: 'small' holds the answer",)
    assert found.unsearched == ("layer 0: 'big' is larger than 100 bytes",)


def test_a_layer_that_is_named_and_not_there_is_counted() -> None:
    manifest = json.dumps([{"Layers": ["gone.tar"]}]).encode()
    found = search_layers([tar_of({"manifest.json": manifest})], NEEDLES)
    assert len(found.unsearched) == 1


@pytest.mark.parametrize(
    "saved",
    [
        b"no tar at all",
        tar_of({"x": b"forty-two"}),
        tar_of({"manifest.json": b"["}),
        tar_of({"manifest.json": b"{}"}),
        tar_of({"manifest.json": b'[{"Layers": 1}]'}),
    ],
)
def test_an_image_that_names_no_layers_was_not_searched(saved: bytes) -> None:
    found = search_layers([saved], NEEDLES)
    assert found.findings == ()
    assert [text.startswith("the image can't be read") for text in found.unsearched] == [True]


@pytest.mark.docker
def test_a_real_image_is_searched_in_all_its_layers(
    docker_backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("it is forty-two", "utf-8")
    (tmp_path / "gone.txt").write_text("forty-two, deleted later", "utf-8")
    (tmp_path / "Dockerfile").write_text(
        "FROM scratch\nCOPY secret.txt /app/secret.txt\nCOPY gone.txt /app/gone.txt\n", "utf-8"
    )
    build = ["docker", "build", "-q", str(tmp_path)]
    image = subprocess.run(build, capture_output=True, text=True, check=True).stdout.strip()
    try:
        found = docker_backend.search_image(image, NEEDLES)
    finally:
        subprocess.run(["docker", "rmi", "-f", image], capture_output=True, check=True)
    assert found.unsearched == ()
    assert found.findings == (
        "layer 0: 'app/secret.txt' holds the answer",
        "layer 1: 'app/gone.txt' holds the answer",
    )
