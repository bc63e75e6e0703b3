"""Bubblewrap keeps the sandbox's promises; frames and output keep theirs."""

import io
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Backend, SandboxSpec
from flywheel.sandbox.choose import open_backend
from flywheel.sandbox.frames import pack, unpack
from flywheel.sandbox.multiplexed import Demultiplexed
from flywheel.sandbox.output import Output
from flywheel.sandbox.protocol import Deadline, Death, WorkerSandbox
from tests.sandbox_behaviour import SandboxBehaviour, spec

fields = st.lists(st.binary(max_size=300), max_size=20)


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("bubblewrap")


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")
class TestBubblewrap(SandboxBehaviour):
    seen: ClassVar[dict[int, str]] = {}
    """Every process of a sandbox that a test of this process has looked at, with its start."""

    def left_behind(self, run: str) -> list[str]:
        self.seen.update(_sandbox_processes())
        return [str(pid) for pid, start in self.seen.items() if _start_time(pid) == start]

    def kill_from_outside(self, run: str) -> None:
        for pid in sorted(_sandbox_processes()):  # parents before the call that they run
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def test_it_is_what_auto_takes_where_it_works(self) -> None:
        assert open_backend("auto").name == "bubblewrap"

    def test_an_image_is_refused_rather_than_ignored(self, backend: Backend) -> None:
        wanted = SandboxSpec({}, 5.0, {}, image="debian:bookworm")
        with pytest.raises(SandboxError, match="image-unsupported"):
            backend.open(wanted).__enter__()


def _start_time(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
    return "gone" if fields[0] == "Z" else fields[19]


def _sandbox_processes() -> dict[int, str]:
    """Return the descendants of this process that are bubblewrap or a worker, with their start."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    family, grown = {os.getpid()}, True
    while grown:
        young = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | young, bool(young)
    found = {}
    for pid in family:
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"flywheel.sandbox.worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found[pid] = _start_time(pid)
    return found


@given(fields)
def test_what_is_packed_is_unpacked(fields: list[bytes]) -> None:
    frame = pack(*fields)
    (size,) = struct.unpack(">I", frame[:4])
    assert size == len(frame) - 4
    assert unpack(frame[4:]) == fields


@given(st.binary(max_size=200))
def test_a_body_that_unpacks_is_the_only_one_for_its_fields(body: bytes) -> None:
    try:
        fields = unpack(body)
    except ValueError:
        return
    assert pack(*fields)[4:] == body


@given(fields, st.data())
def test_a_frame_that_is_cut_off_is_refused(fields: list[bytes], data: st.DataObject) -> None:
    body = pack(*fields, b"last")[4:]
    cut = data.draw(st.integers(len(body) - 7, len(body) - 1))
    with pytest.raises(ValueError, match="cut off"):
        unpack(body[:cut])


@given(st.lists(st.binary(max_size=40)), st.integers(0, 60))
def test_output_keeps_both_ends_and_counts_the_rest(chunks: list[bytes], limit: int) -> None:
    output, whole = Output(limit), b"".join(chunks)
    for chunk in chunks:
        output.add(chunk)
    assert len(output.kept()) == min(len(whole), limit)
    assert output.dropped == len(whole) - len(output.kept())
    head, tail = limit // 2, limit - limit // 2
    expected = whole if len(whole) <= limit else whole[:head] + whole[len(whole) - tail :]
    assert output.kept() == expected


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=90)), max_size=8))
def test_standard_output_is_taken_out_of_a_containers_stream(
    packets: list[tuple[int, bytes]],
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for source, data in packets:
            theirs.sendall(struct.pack(">BxxxI", source, len(data)) + data)
        theirs.shutdown(socket.SHUT_WR)
        stream = Demultiplexed(ours)
        assert io.BufferedReader(stream).read() == b"".join(d for s, d in packets if s == 1)
        assert stream.errors == b"".join(d for s, d in packets if s == 2)


def replied(reply: bytes) -> WorkerSandbox:
    """A sandbox whose worker has said this and died."""
    return WorkerSandbox(
        io.BytesIO(reply),
        io.BytesIO().write,
        spec(),
        Deadline(60.0, lambda: None),
        lambda: Death("as examined"),
    )


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\5\0\0\0\xff!",
        pack(),
        pack(b"ok"),
        pack(b"ok", b"0", b"x", b"0.1", b"0", b""),
        pack(b"error", b"11", b"fork failed"),
    ],
)
def test_a_reply_that_makes_no_sense_is_a_lost_worker(reply: bytes) -> None:
    box = replied(reply)
    with pytest.raises(SandboxError, match=r"tool/worker-lost: .*as examined"):
        box.call(["true"], 1.0)


@pytest.mark.parametrize(
    "reply",
    [
        pack(b"ok"),
        pack(b"ok", b"x"),
        pack(b"ok", b"1", b"a", b"420"),
        pack(b"ok", b"1", b"a", b"rw", b""),
        pack(b"ok", b"0", b"a"),
        pack(b"what"),
    ],
)
def test_a_tree_that_makes_no_sense_is_a_lost_worker(reply: bytes) -> None:
    box = replied(reply)
    with pytest.raises(SandboxError, match=r"tool/worker-lost: .*as examined"):
        box.tree("out")


def test_what_a_worker_calls_a_file_and_we_do_not_is_refused_like_any_other() -> None:
    named = [b"../a", b"/etc/passwd", b"\xff", b"a\x1b[2J", "\U0001fabf\ue000".encode()]
    fields = [field for name in named for field in (name, b"420", b"x")]
    tree = replied(pack(b"ok", b"6", b"good", b"420", b"x", *fields)).tree("out")
    assert [file.path for file in tree.files] == ["good"]
    assert len(tree.refused) == len(named)
    assert all(refusal.isprintable() for refusal in tree.refused)


def test_a_backend_that_is_not_there_says_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")
    with pytest.raises(ConfigError, match="DOCKER_HOST, or use sandbox 'bubblewrap'"):
        open_backend("docker")


STARTING = """
import os, subprocess, sys, time
from flywheel.sandbox.bubblewrap import _binary, _marked
blocked = int(sys.argv[1])
info, told = os.pipe()
command = [*_marked([_binary()]), "--unshare-all", "--unshare-user", "--die-with-parent"]
command += ["--ro-bind", "/", "/", "--userns-block-fd", str(blocked), "--info-fd", str(told)]
subprocess.Popen([*command, "/bin/true"], executable=_binary(), pass_fds=(blocked, told))
os.read(info, 1)
print("starting", flush=True)
time.sleep(60)
"""
"""Stops where a sandbox waits for its starter."""


def _torn(owner: int) -> list[str]:
    """Processes of sandboxes that process `owner` was starting or had started."""
    mark = f" {owner} "
    return [
        name
        for entry in Path("/proc").glob("[0-9]*")
        if (name := _command_name(entry)).startswith("bwrap of ") and mark in name
    ]


def _command_name(entry: Path) -> str:
    with suppress(OSError):
        return (entry / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    return ""


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap needs Linux")
def test_what_was_starting_when_its_owner_was_killed_is_reaped_and_nothing_in_use_is(
    backend: Backend,
) -> None:
    """A sandbox that has not started yet does not die with its owner by itself."""
    blocked, release = os.pipe()
    command = [sys.executable, "-c", STARTING, str(blocked)]
    with backend.open(spec("in-use")) as mine:
        with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(blocked,)) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"starting\n"
            owner.kill()
        time.sleep(0.3)
        assert len(_torn(owner.pid)) == 1
        assert backend.reap() >= 1
        time.sleep(0.1)
        assert _torn(owner.pid) == []
        assert mine.call(["/bin/true"], 5.0).exit_code == 0
    os.close(blocked)
    os.close(release)
