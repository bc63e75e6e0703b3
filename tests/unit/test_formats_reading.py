"""Reading what somebody else wrote, hostile as it may be."""

import contextlib
import gzip
import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.formats.archives import read_archive
from flywheel.formats.collection import Bounds, Collection, FormatError, shown
from flywheel.formats.documents import read_json, read_toml, read_yaml, text_at
from flywheel.formats.reading import read_files, write_files
from schemas.file import File

SMALL = Bounds(files=20, file_bytes=1000, bytes=3000, depth=4)


def tar_of(*members: tarfile.TarInfo, data: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def zip_of(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return packed.getvalue()


def read_packed(tmp_path: Path, name: str, data: bytes, bounds: Bounds = SMALL) -> dict[str, File]:
    (tmp_path / name).write_bytes(data)
    return read_files(tmp_path / name, bounds)


def test_a_folder_becomes_its_files_with_their_modes(tmp_path: Path) -> None:
    write_files(
        {
            "a/run.sh": File(path="a/run.sh", content="#!/bin/sh\n", mode=0o755),
            "b.bin": File.of("b.bin", b"\xff\0"),
        },
        tmp_path / "task",
    )
    files = read_files(tmp_path / "task")
    assert files["a/run.sh"].mode == 0o755
    assert files["b.bin"].data() == b"\xff\0"
    assert set(files) == {"a/run.sh", "b.bin"}


@pytest.mark.parametrize("name", ["t.tar", "t.tar.gz", "t.tgz", "t.zip"])
def test_an_archive_reads_like_its_folder_without_the_outer_one(tmp_path: Path, name: str) -> None:
    if name == "t.zip":
        data = zip_of(("task/", b""), ("task/a.txt", b"hi"), ("task/b/c.txt", b"hi"))
    else:
        data = tar_of(member("task/a.txt"), member("task/b/c.txt"), data=b"hi")
        data = data if name == "t.tar" else gzip.compress(data)
    files = read_packed(tmp_path, name, data)
    assert {path: file.data() for path, file in files.items()} == {"a.txt": b"hi", "b/c.txt": b"hi"}
    assert files["b/c.txt"].path == "b/c.txt"


def link(folder: Path) -> None:
    (folder / "x").symlink_to("/etc/passwd")


def folder_link(folder: Path) -> None:
    (folder / "x").symlink_to("/etc")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "x")


def control_character(folder: Path) -> None:
    (folder / "x\x1b[2J").write_text("")


def no_text(folder: Path) -> None:
    (folder / os.fsdecode(b"x\xff")).write_text("")


def large_file(folder: Path) -> None:
    (folder / "x").write_bytes(b"x" * 1001)


def large_folder(folder: Path) -> None:
    for number in range(4):
        (folder / f"x{number}").write_bytes(b"x" * 1000)


def sparse_file(folder: Path) -> None:
    with (folder / "x").open("wb") as stream:
        stream.truncate(10**12)


def many_files(folder: Path) -> None:
    for number in range(21):
        (folder / str(number)).write_text("")


def many_folders(folder: Path) -> None:
    for number in range(21):
        (folder / str(number)).mkdir()


def deep(folder: Path) -> None:
    (folder / "a/b/c/d/e").mkdir(parents=True)


@pytest.mark.parametrize(
    "spoil",
    [
        *(link, folder_link, pipe, control_character, no_text, large_file, large_folder),
        *(sparse_file, many_files, many_folders, deep),
    ],
)
def test_a_folder_with_anything_but_few_small_plain_files_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path)
    with pytest.raises(FormatError) as caught:
        read_files(tmp_path, SMALL)
    assert str(caught.value).isprintable()
    assert caught.value.reason


@pytest.mark.parametrize(
    "entry",
    [
        member("/etc/passwd"),
        member("../x"),
        member("a/../../x"),
        member("x", tarfile.SYMTYPE, "/etc/passwd"),
        member("x", tarfile.LNKTYPE, "a"),
        member("x", tarfile.CHRTYPE),
        member("x", tarfile.FIFOTYPE),
        member("x\x07"),
        member("a/b/c/d/e"),
        member("../d", tarfile.DIRTYPE),
    ],
    ids=lambda entry: f"{entry.name!r}-{entry.type!r}",
)
def test_an_archive_entry_that_is_no_plain_file_below_it_is_refused(
    tmp_path: Path, entry: tarfile.TarInfo
) -> None:
    with pytest.raises(FormatError):
        read_packed(tmp_path, "t.tar", tar_of(member("a"), entry))


def zip_link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("x")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize("entry", [zip_link(), "/x", "../x", "x\n", "a/b/c/d/e"], ids=str)
def test_a_zip_entry_that_is_no_plain_file_below_it_is_refused(
    tmp_path: Path, entry: str | zipfile.ZipInfo
) -> None:
    with pytest.raises(FormatError):
        read_packed(tmp_path, "t.zip", zip_of(("a", b""), (entry, b"/etc/passwd")))


def test_bombs_are_refused_by_what_they_unpack_to(tmp_path: Path) -> None:
    zeros = b"\0" * 5_000_000
    with pytest.raises(FormatError, match="larger"):
        read_packed(tmp_path, "t.zip", zip_of(("a", zeros)))
    lying = zip_of(("a", zeros)).replace(len(zeros).to_bytes(4, "little"), b"\x05\0\0\0")
    with pytest.raises(FormatError):
        read_packed(tmp_path, "lying.zip", lying)
    with pytest.raises(FormatError, match="unpacks to more"):
        read_packed(tmp_path, "t.tar.gz", gzip.compress(tar_of(member("a"), data=zeros)))
    with pytest.raises(FormatError, match="more than 20"):
        read_packed(tmp_path, "m.zip", zip_of(*((f"f{n}", b"") for n in range(21))))


def test_a_file_that_grows_while_it_is_read_is_refused() -> None:
    with pytest.raises(FormatError, match="larger"):
        Collection("t", SMALL).add("a", 0o644, 5, lambda most: b"x" * most)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a")])
def test_two_entries_at_one_place_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    with pytest.raises(FormatError, match="there twice"):
        read_packed(tmp_path, "t.tar", tar_of(*map(member, names)))


def test_a_broken_header_does_not_end_an_archive_quietly(tmp_path: Path) -> None:
    whole = bytearray(tar_of(member("a"), member("b"), data=b"hi"))
    whole[1024 + 150] ^= 0xFF
    with pytest.raises(FormatError, match="broken archive"):
        read_packed(tmp_path, "t.tar", bytes(whole))


@settings(max_examples=150, deadline=2000)
@given(st.data())
def test_a_damaged_archive_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([".tar", ".tar.gz", ".zip"]))
    whole = (
        zip_of(("a", b"hello"), ("b/c", b"x" * 50))
        if kind == ".zip"
        else tar_of(member("a"), member("b/c"), data=b"hello")
    )
    packed = bytearray(gzip.compress(whole) if kind == ".tar.gz" else whole)
    for _ in range(data.draw(st.integers(1, 6))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))

    class InMemory:
        name = f"t{kind}"

        def open(self, mode: str) -> io.BytesIO:
            return io.BytesIO(bytes(packed[: data.draw(st.integers(1, len(packed)))]))

    try:
        files = read_archive(InMemory(), Collection("t", SMALL))  # type: ignore[arg-type]
    except FormatError:
        return
    assert all(len(file.data()) <= SMALL.file_bytes for file in files.values())


def test_broken_toml_is_reported_with_its_line() -> None:
    with pytest.raises(FormatError, match=r"task.toml: broken TOML: .*line 2"):
        read_toml("a = 1\nb = = 2\n", "task.toml")
    with pytest.raises(FormatError, match="levels"):
        read_toml(".".join("a" * 60) + " = 1", "task.toml")
    with pytest.raises(FormatError):
        read_toml("a = " + "[" * 5000, "task.toml")


def test_yaml_is_plain_values() -> None:
    text = "when: 2026-01-02\nyes: 'no'\nn: 3\nlist: &x [a, 1.5, null]\nagain: *x\n"
    assert read_yaml(text, "t.yaml") == {
        "when": "2026-01-02",
        "yes": "no",
        "n": 3,
        "list": ["a", 1.5, None],
        "again": ["a", 1.5, None],
    }


def alias_bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (alias_bomb(), "values"),
        ("a: &a [*a]", "an alias of what holds it"),
        ("[" * 60 + "]" * 60, "levels"),
        ("[" * 100_000, "nesting|levels"),
        ("a: 1\nb: 2\na: 3\n", "line 1.*twice"),
        ("a: !!python/object/apply:os.system ['true']", "a tag"),
        ("a: !!timestamp x", "a tag"),
        ("? [1, 2]\n: x\n", "twice, or is no text"),
        ("a: [1,\n b: {\n", "line"),
        ("a: 1\n---\nb: 2\n", "broken YAML"),
        ("a: " + "9" * 5000, "broken YAML"),
        ("a: \x07", "broken YAML"),
    ],
    ids=range(12),
)
def test_yaml_that_is_more_than_plain_values_is_refused(text: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read_yaml(text, "t.yaml")


@settings(max_examples=200)
@given(st.text(st.sampled_from(list("&*!?-:[]{},#|>'\"%@` \n\tab01~=<.\\x")), max_size=60))
def test_any_text_is_read_as_yaml_or_refused(text: str) -> None:
    with contextlib.suppress(FormatError):
        json.dumps(read_yaml(text, "t.yaml"))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, "{"])
def test_json_with_a_key_twice_or_no_number_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="broken JSON"):
        read_json(text, "t.json")


def test_text_is_asked_for_by_name() -> None:
    with pytest.raises(FormatError, match=r"goal\.md: missing"):
        text_at({}, "goal.md")
    with pytest.raises(FormatError, match="not UTF-8"):
        text_at({"goal.md": File.of("goal.md", b"\xff")}, "goal.md")


@given(st.text())
def test_what_is_shown_is_one_printable_line_of_bounded_length(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text * 100)) <= 301


def test_writing_never_touches_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(Exception, match="not empty"):
        write_files({}, tmp_path)
