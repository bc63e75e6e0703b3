"""What every sandbox promises, whatever the backend: each test attacks one property."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import flywheel
from flywheel.errors import SandboxError
from flywheel.sandbox import (
    ArtifactRefused,
    Backend,
    ExecResult,
    Limits,
    Sandbox,
    SandboxSpec,
    Tree,
)
from schemas.attempt import InfraStage
from schemas.file import File

PROJECT = Path(flywheel.__file__).parents[1]
PYTHON = "import os, sys\ndef main(argv):\n    exec(argv[0], {'os': os, 'sys': sys})\n"
PROGRAMS = {
    "python": PYTHON,
    "exit-3": "def main(argv):\n    print(argv)\n    return 3\n",
    "broken": "def main(argv):\n    raise ValueError('no such column')\n",
    "quit": "import sys\ndef main(argv):\n    sys.exit(argv[0])\n",
    "rows": (
        "import csv\ndef main(argv):\n"
        "    print(len(list(csv.reader(open('in.csv')))))\n"
        "    import calendar\n"
        "    print(calendar.__file__.startswith('/workspace'))\n"
    ),
}
ABANDONED = """
import sys
from flywheel.sandbox import SandboxSpec
from flywheel.sandbox.choose import open_backend
program = "import time\\ndef main(argv):\\n    print('in')\\n    time.sleep(600)\\n"
spec = SandboxSpec({"sleep": program}, 600.0, {"run": sys.argv[2], "attempt": "a"})
with open_backend(sys.argv[1]).open(spec) as box:
    print("open", flush=True)
    box.call(["sleep"], 600.0)
"""


OTHER_CLOCK = {
    "LD_PRELOAD": "/usr/$LIB/faketime/libfaketime.so.1",
    "FAKETIME": "+400d",
    "DONT_FAKE_MONOTONIC": "1",
}
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def own(run: str) -> str:
    """Return a run's name that no other test process uses."""
    return f"{run}-{os.getpid()}"


def spec(run: str = "test", deadline: float = 60.0, limits: Limits | None = None) -> SandboxSpec:
    return SandboxSpec(
        PROGRAMS, deadline, {"run": own(run), "attempt": "a"}, limits=limits or Limits()
    )


def python(box: Sandbox, source: str, timeout: float = 10.0) -> ExecResult:
    return box.call(["python", source], timeout)


def said(box: Sandbox, source: str) -> str:
    result = python(box, source)
    assert result.exit_code == 0, result.output.decode()
    return result.output.decode().strip()


def modes(tree: Tree) -> dict[str, str]:
    return {file.path: f"{file.mode:o}" for file in tree.files}


class SandboxBehaviour:
    """Subclasses bring the fixture `backend` and the two methods below."""

    def left_behind(self, run: str) -> list[str]:
        """Return what still exists of the sandboxes of `run`."""
        raise NotImplementedError

    def kill_from_outside(self, run: str) -> None:
        """End the worker of the one sandbox of `run` as an administrator would."""
        raise NotImplementedError

    @pytest.fixture
    def box(self, backend: Backend) -> Iterator[Sandbox]:
        with backend.open(spec()) as box:
            yield box

    def test_a_program_gets_its_arguments_and_its_exit_code_comes_back(self, box: Sandbox) -> None:
        result = box.call(["exit-3", "a", "b c"], 5.0)
        assert (result.exit_code, result.output) == (3, b"['a', 'b c']\n")
        assert not result.timed_out

    def test_an_absolute_path_is_executed(self, box: Sandbox) -> None:
        assert box.call(["/bin/echo", "hello"], 5.0).output == b"hello\n"

    def test_a_name_that_is_no_program_exits_127_and_says_so(self, box: Sandbox) -> None:
        for argv in (["nothing"], ["./script"], [], ["/no/such/file"]):
            result = box.call(argv, 5.0)
            assert result.exit_code == 127
            assert b"o such" in result.output

    def test_an_exception_exits_1_and_shows_the_programs_frames_only(self, box: Sandbox) -> None:
        result = box.call(["broken"], 5.0)
        assert result.exit_code == 1
        assert result.output.decode() == (
            "Traceback (most recent call last):\n"
            '  File "broken.py", line 2, in main\n'
            "ValueError: no such column\n"
        )

    def test_system_exit_is_honoured(self, box: Sandbox) -> None:
        result = box.call(["quit", "bad input"], 5.0)
        assert (result.exit_code, result.output) == (1, b"bad input\n")
        assert python(box, "sys.exit(4)").exit_code == 4
        assert python(box, "sys.exit()").exit_code == 0

    def test_death_by_a_signal_is_a_negative_exit_code(self, box: Sandbox) -> None:
        result = python(box, "os.kill(os.getpid(), 9)")
        assert (result.exit_code, result.timed_out) == (-signal.SIGKILL, False)

    def test_arguments_that_no_command_line_can_carry_are_a_failed_call(self, box: Sandbox) -> None:
        assert box.call(["/bin/echo", "a\0b"], 5.0).exit_code == 127
        assert box.call(["exit-3", "\ud800"], 5.0).exit_code == 3

    def test_a_program_that_does_not_load_is_named(self, backend: Backend) -> None:
        broken = SandboxSpec({"bad": "import nowhere"}, 20.0, {"run": "test", "attempt": "a"})
        with pytest.raises(SandboxError, match="program bad: ModuleNotFoundError") as caught:
            backend.open(broken).__enter__()
        assert caught.value.status.stage is InfraStage.BOOT
        assert not caught.value.status.retryable

    def test_a_program_sees_the_files_put_into_its_workspace_and_no_others(
        self, box: Sandbox
    ) -> None:
        assert said(box, "print(os.getcwd(), os.listdir())") == "/workspace []"
        box.put([File.of("a/b.txt", b"x"), File.of("c", b"\x00\xff")])
        assert said(box, "print(sorted(os.listdir()), os.listdir('a'))") == "['a', 'c'] ['b.txt']"
        assert box.get("c") == b"\x00\xff"

    def test_a_call_runs_in_the_folder_it_names(self, box: Sandbox) -> None:
        box.put([File.of("in.txt", b"x")], folder="copy/one")
        result = box.call(["python", "print(os.listdir())"], 5.0, folder="copy/one")
        assert result.output == b"['in.txt']\n"
        assert box.call(["python", "pass"], 5.0, folder="copy/two").exit_code == 127

    def test_host_files_and_installed_packages_are_invisible(self, box: Sandbox) -> None:
        hidden = [PROJECT / "schemas", PROJECT / "flywheel", Path.home() / ".profile"]
        hidden += [Path(pytest.__file__), Path("/root/.profile")]
        for path in map(str, hidden):
            assert said(box, f"print(os.path.exists({path!r}))") == "False", path
        assert python(box, "open('/etc/shadow')").exit_code == 1
        assert python(box, "import pydantic").exit_code == 1

    def test_the_network_is_unreachable(self, box: Sandbox) -> None:
        attempt = "import socket\nprint(socket.socket().connect_ex(('1.1.1.1', 53)))"
        assert said(box, attempt) == str(errno.ENETUNREACH)
        assert said(box, "import socket\nprint([n for _, n in socket.if_nameindex()])") == "['lo']"

    def test_a_program_has_an_unprivileged_user_and_no_capabilities(self, box: Sandbox) -> None:
        assert said(box, "print(os.getuid(), os.getgid(), os.getgroups())") in (
            "65534 65534 []",
            "65534 65534 [65534]",
        )
        status = said(box, "print(open('/proc/self/status').read())")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert (int(fields["CapEff"], 16), fields["NoNewPrivs"]) == (0, "1")
        assert python(box, "os.setuid(0)").exit_code == 1

    def test_a_program_can_write_to_its_workspace_and_tmp_only(self, box: Sandbox) -> None:
        attempt = (
            "mounts = [line.split()[4] for line in open('/proc/self/mountinfo')]\n"
            "for path in mounts + ['/usr/bin', '/etc', '/opt', '/home', '/dev/shm', '/var/tmp']:\n"
            "    try: open(path + '/mine', 'w'); print(path)\n"
            "    except OSError: pass\n"
        )
        assert sorted(said(box, attempt).split()) == ["/tmp", "/workspace"]

    def test_environment_and_hashes_are_the_same_everywhere(self, box: Sandbox) -> None:
        names = "('LC_ALL', 'TZ', 'PYTHONHASHSEED', 'HOME')"
        assert said(box, f"print([os.environ.get(n) for n in {names}])") == (
            "['C.UTF-8', 'UTC', '0', '/tmp']"
        )
        assert said(box, "print(hash('a'))") == "4644417185603328019"

    def test_a_module_in_the_workspace_does_not_shadow_a_programs_imports(
        self, box: Sandbox
    ) -> None:
        mine = b"raise SystemExit('shadowed')"
        box.put([File.of(name, mine) for name in ("csv.py", "calendar.py", "encodings.py")])
        box.put([File.of("in.csv", b"a,b\n1,2\n")])
        result = box.call(["rows"], 5.0)
        assert (result.exit_code, result.output) == (0, b"2\nFalse\n")

    def test_a_timeout_kills_everything_that_the_call_started(self, box: Sandbox) -> None:
        stubborn = (
            "import signal, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "for _ in range(3):\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        if os.fork() == 0: time.sleep(600)\n"
            "        time.sleep(600)\n"
            "print('started')\n"
            "time.sleep(600)\n"
        )
        started = time.monotonic()
        result = python(box, stubborn, timeout=0.5)
        assert result.timed_out
        assert result.output == b"started\n"
        assert time.monotonic() - started < 5
        assert self.processes(box) == 2

    def test_a_call_leaves_no_process_behind(self, box: Sandbox) -> None:
        daemon = "import time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
        assert python(box, daemon).exit_code == 0
        assert self.processes(box) == 2

    def processes(self, box: Sandbox) -> int:
        """Return how many processes a call sees: the worker and itself, if all is well."""
        return int(said(box, "print(sum(name.isdigit() for name in os.listdir('/proc')))"))

    def test_a_flood_of_output_is_cut_in_the_middle_and_counted(self, box: Sandbox) -> None:
        flood = "print('head')\nfor _ in range(5000): print('x' * 999)\nprint('tail')"
        result = python(box, flood)
        assert len(result.output) == Limits().output_bytes
        assert result.dropped == 5 + 5_000_000 + 5 - Limits().output_bytes
        assert result.output.startswith(b"head\nx")
        assert result.output.endswith(b"x\ntail\n")
        assert said(box, "print(1)") == "1"

    def test_endless_output_ends_at_the_timeout(self, box: Sandbox) -> None:
        result = python(box, "while True: os.write(1, b'y' * 65536)", timeout=0.5)
        assert result.timed_out
        assert result.dropped > 0
        assert said(box, "print(1)") == "1"

    def test_a_fork_bomb_is_contained(self, box: Sandbox) -> None:
        bomb = (
            "import time\n"
            "for count in range(10_000):\n"
            "    try: child = os.fork()\n"
            "    except BlockingIOError: break\n"
            "    if child == 0: time.sleep(600)\n"
            "print(count)\n"
        )
        assert int(said(box, bomb)) < Limits().processes
        endless = "while True:\n    try: os.fork()\n    except BlockingIOError: pass"
        assert python(box, endless, timeout=1.0).timed_out
        assert self.processes(box) == 2

    def test_a_program_that_wants_too_much_memory_fails_alone(self, box: Sandbox) -> None:
        result = python(box, "x = bytearray(2 << 30)")
        assert result.exit_code == 1
        assert b"MemoryError" in result.output
        assert said(box, "print(1)") == "1"

    def test_a_full_workspace_is_the_programs_error(self, box: Sandbox) -> None:
        fill = (
            "try:\n"
            "    for number in range(100):\n"
            "        with open(str(number), 'wb') as file: file.write(bytes(1 << 20))\n"
            "except OSError as problem: print(number, problem.errno)\n"
        )
        written, code = map(int, said(box, fill).split())
        assert code == errno.ENOSPC
        assert written <= Limits().workspace_mb
        with pytest.raises(SandboxError, match="disk/workspace-full"):
            box.put([File.of("more", bytes(2 << 20))])
        assert said(box, "os.unlink('0'); print(1)") == "1"

    @pytest.mark.parametrize(
        ("made_by", "reason"),
        [
            ("os.symlink('/etc/passwd', 'out')", "symbolic link"),
            ("open('x', 'w'); os.link('x', 'out')", "hard link"),
            ("os.mkfifo('out')", "not a regular file"),
            ("os.mkdir('out')", "not a regular file"),
            ("import socket; socket.socket(socket.AF_UNIX).bind('out')", "No such device"),
            ("open('out', 'w').truncate(1048577)", "too large"),
            ("open('out', 'w'); os.chmod('out', 0)", "Permission denied"),
            ("pass", "No such file"),
        ],
    )
    def test_only_regular_files_of_bounded_size_come_out(
        self, box: Sandbox, made_by: str, reason: str
    ) -> None:
        said(box, made_by)
        with pytest.raises(ArtifactRefused, match=reason):
            box.get("out")
        assert said(box, "print(1)") == "1"

    def test_a_linked_folder_is_not_followed(self, box: Sandbox) -> None:
        said(box, "os.symlink('/etc', 'etc'); os.symlink('/tmp', 'tmp')")
        with pytest.raises(ArtifactRefused, match="Not a directory"):
            box.get("etc/ld.so.cache")
        with pytest.raises(ArtifactRefused, match="Not a directory"):
            box.tree("etc")
        with pytest.raises(SandboxError, match="put-failed"):
            box.put([File.of("tmp/mine", b"x")])
        assert said(box, "print(os.listdir('/tmp'))") == "[]"

    def test_put_replaces_a_planted_link_instead_of_writing_through_it(self, box: Sandbox) -> None:
        said(box, "open('/tmp/target', 'w'); os.symlink('/tmp/target', 'in'); os.mkfifo('pipe')")
        box.put([File.of("in", b"new"), File.of("pipe", b"new")])
        assert (box.get("in"), box.get("pipe")) == (b"new", b"new")
        assert said(box, "print(os.path.getsize('/tmp/target'))") == "0"

    @pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\0b", "\ud800"])
    def test_a_path_that_leaves_the_workspace_is_refused(self, box: Sandbox, path: str) -> None:
        with pytest.raises(ArtifactRefused, match=r"leaves|no text"):
            box.get(path)
        with pytest.raises(ArtifactRefused, match=r"leaves|no text"):
            box.tree(path)
        with pytest.raises(SandboxError, match="path-refused"):
            box.put([File.of("x", b"")], folder=path)
        with pytest.raises(SandboxError, match="path-refused"):
            box.call(["exit-3"], 5.0, folder=path)

    def test_read_only_files_can_be_read_but_not_changed_or_replaced(self, box: Sandbox) -> None:
        box.put([File.of("d/a.csv", b"1")], folder="given", read_only=True)
        for change in (
            "open('given/d/a.csv', 'w')",
            "os.unlink('given/d/a.csv')",
            "open('given/d/new', 'w')",
            "open('given/new', 'w')",
            "os.rename('given/d', 'given/e')",
        ):
            assert b"PermissionError" in python(box, change).output, change
        assert said(box, "print(open('given/d/a.csv').read())") == "1"
        assert box.get("given/d/a.csv") == b"1"

    @pytest.mark.parametrize("workdir", ["/app", "/usr/src/app", "/a/b/c", "/tmp/x"])
    def test_the_workspace_is_where_the_spec_says_and_further_folders_are_writable(
        self, backend: Backend, workdir: str
    ) -> None:
        folders = ("/tests", "/logs/verifier", f"{workdir}/within")
        wanted = replace(spec(), workdir=workdir, folders=folders)
        with backend.open(wanted) as box:
            assert said(box, "print(os.getcwd(), os.listdir())") == f"{workdir} ['within']"
            for folder in (workdir, *folders):
                said(box, f"open({folder!r} + '/mine', 'w').write('x')")
            assert python(box, "open('/logs/mine', 'w')").exit_code == 1
            assert modes(box.tree(".")) == {"mine": "644", "within/mine": "644"}
            assert box.get("mine") == box.get("/logs/verifier/mine") == b"x"
            size = "s = os.statvfs({!r}); print(s.f_blocks * s.f_frsize)"
            sizes = {said(box, size.format(folder)) for folder in (workdir, *folders)}
            assert sizes == {str(Limits().workspace_mb << 20)}
            assert said(box, "print(os.environ['HOME'])") == "/tmp"

    def test_further_folders_take_files_calls_and_trees_by_absolute_path(
        self, backend: Backend
    ) -> None:
        with backend.open(replace(spec(), folders=("/tests",))) as box:
            box.put([File.of("a/t.sh", b"pwd\n", 0o750)], "/tests")
            box.put([File.of("b/key", b"1", 0o600)], "/tests", read_only=True)
            assert box.call(["/bin/sh", "t.sh"], 5.0, "/tests/a").output == b"/tests/a\n"
            assert modes(box.tree("/tests")) == {"a/t.sh": "750", "b/key": "444"}
            said(box, "open('/tests/still-open', 'w')")
            for outside in ("/tests/../etc", "/testsuite", "/"):
                with pytest.raises(SandboxError, match="path-refused"):
                    box.put([File.of("x", b"")], outside)

    @pytest.mark.parametrize(
        "folder", ["/", "/usr", "/proc/x", "/dev/shm", "app", "/a/../etc", "/a\nb", "/a//b"]
    )
    def test_a_folder_that_would_hide_what_a_sandbox_needs_is_refused(
        self, backend: Backend, folder: str
    ) -> None:
        for wanted in (replace(spec(), workdir=folder), replace(spec(), folders=(folder,))):
            with pytest.raises(SandboxError, match="folder-refused") as caught:
                backend.open(wanted).__enter__()
            assert not caught.value.status.retryable

    def test_variables_of_the_spec_reach_every_call_and_the_worker(self, backend: Backend) -> None:
        variables = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "TASK": "a b=c"}
        with backend.open(replace(spec(), environment=variables)) as box:
            assert said(box, "print(hash('a'))") == "6412522626967419924"
            shown = box.call(["/bin/sh", "-c", "echo $TASK $TZ $LC_ALL $HOME"], 5.0).output
            assert shown == b"a b=c Asia/Tokyo C.UTF-8 /tmp\n"

    def test_another_clock_reaches_everything_and_leaves_timeouts_alone(
        self, backend: Backend
    ) -> None:
        with backend.open(replace(spec(), environment=OTHER_CLOCK)) as box:
            if said(box, f"print(os.path.exists({FAKETIME!r}))") == "False":
                pytest.skip("no libfaketime here")
            ahead = time.time() + 400 * 86_400
            for told in (
                said(box, "import time; print(time.time())"),
                box.call(["/bin/date", "+%s"], 5.0).output,
            ):
                assert float(told) == pytest.approx(ahead, abs=60)
            began = time.monotonic()
            assert box.call(["/bin/sleep", "30"], 0.5).timed_out
            assert box.call(["/bin/sleep", "0.2"], 10.0).seconds == pytest.approx(0.2, abs=0.15)
            assert 0.7 <= time.monotonic() - began < 5

    def test_files_are_put_with_their_modes(self, box: Sandbox) -> None:
        wanted = {"run.sh": 0o755, "key": 0o600, "shared": 0o666, "none": 0o000}
        box.put([File.of(name, b"#!/bin/sh\necho ran\n", mode) for name, mode in wanted.items()])
        assert said(box, "print([oct(os.stat(n).st_mode) for n in sorted(os.listdir())])") == (
            "['0o100600', '0o100000', '0o100755', '0o100666']"
        )
        assert box.call(["/workspace/run.sh"], 5.0).output == b"ran\n"
        assert modes(box.tree(".")) == {name: f"{mode:o}" for name, mode in wanted.items()}

    def test_a_tree_is_all_regular_files_with_their_modes_and_reasons_for_the_rest(
        self, box: Sandbox
    ) -> None:
        said(
            box,
            "import socket\n"
            "os.makedirs('out/deep/er'); os.makedirs('out/empty')\n"
            "for path in ('b', 'deep/er/a', '.hidden', 'twice', 'e-acute-\\u00e9'):\n"
            "    open('out/' + path, 'w').write(path)\n"
            "os.chmod('out/b', 0o4751); os.mkfifo('out/pipe'); os.link('out/twice', 'out/two')\n"
            "os.symlink('/etc', 'out/etc'); os.symlink('b', 'out/link'); open('beside', 'w')\n"
            "for name in (b'line\\nbreak', b'\\xff', b'esc\\x1b[2J'): open(b'out/' + name, 'w')\n",
        )
        tree = box.tree("out/")
        assert modes(tree) == {
            ".hidden": "644",
            "b": "751",
            "deep/er/a": "644",
            "e-acute-\u00e9": "644",
        }
        assert [file.path for file in tree.files] == sorted(modes(tree))
        assert all(file.data() == file.path.encode() for file in tree.files)
        name = "its path is not at most 255 printable characters"
        assert set(tree.refused) == {
            rf"\udcff: {name}",
            rf"esc\x1b[2J: {name}",
            "etc: a symbolic link",
            rf"line\nbreak: {name}",
            "link: a symbolic link",
            "pipe: not a regular file",
            "two: a hard link: the file has 2 names",
            "twice: a hard link: the file has 2 names",
        }

    def test_a_tree_reads_what_its_owner_locked_and_locks_it_again(self, box: Sandbox) -> None:
        said(
            box,
            "os.makedirs('out/shut/in')\n"
            "for path in ('key', 'shut/in/a'): open('out/' + path, 'w').write(path)\n"
            "for path in ('key', 'shut/in/a', 'shut/in', 'shut', ''): os.chmod('out/' + path, 0)\n",
        )
        for _ in range(2):
            tree = box.tree("out")
            assert modes(tree) == {"key": "0", "shut/in/a": "0"}
            assert [file.data() for file in tree.files] == [b"key", b"shut/in/a"]
        assert b"Permission denied" in python(box, "os.listdir('out')").output

    @pytest.mark.parametrize("made_by", ["pass", "open('out', 'w')", "os.mkfifo('out')"])
    def test_a_tree_below_what_is_no_folder_is_refused(self, box: Sandbox, made_by: str) -> None:
        said(box, made_by)
        with pytest.raises(ArtifactRefused, match=r"^out: (No such file|Not a directory)"):
            box.tree("out")

    @pytest.mark.parametrize("crowd", [4, 50_000])
    def test_a_tree_ends_at_its_number_of_entries_and_keeps_the_levels_above(
        self, backend: Backend, crowd: int
    ) -> None:
        with backend.open(spec(limits=Limits(tree_files=20))) as box:
            said(
                box,
                "os.makedirs('b/in')\n"
                "for n in range(15): open(f'a{n:02}', 'w')\n"
                f"for n in range({crowd}): open(f'b/in/{{n}}', 'w')\n",
            )
            tree = box.tree(".")
            assert [file.path for file in tree.files] == [f"a{n:02}" for n in range(15)]
            assert tree.refused == ("b/in/: more than 20 entries up to here",)
            said(box, "os.unlink('b/in/0'); os.unlink('a00')")
            assert len(box.tree(".").files) == (14 + 3 if crowd == 4 else 14)

    def test_a_tree_takes_no_more_bytes_than_an_artifact_may_have(self, backend: Backend) -> None:
        with backend.open(spec(limits=Limits(artifact_bytes=1000))) as box:
            said(
                box,
                "for name, size in (('a', 600), ('b', 600), ('c', 400), ('d', 1)):\n"
                "    open(name, 'w').write('x' * size)\n",
            )
            tree = box.tree(".")
            assert [file.path for file in tree.files] == ["a", "c"]
            assert tree.refused == (
                "b: too large: 600 bytes, at most 400 are taken",
                "d: too large: 1 bytes, at most 0 are taken",
            )

    def test_a_tree_does_not_go_deeper_than_a_path_may_be_long(self, box: Sandbox) -> None:
        said(
            box,
            "open('n' * 255, 'w'); os.mkdir('out'); os.chdir('out'); open('n' * 251, 'w')\n"
            "open('n' * 252, 'w')\n"
            "for _ in range(3000): os.mkdir('d' * 49); os.chdir('d' * 49)\n"
            "open('end', 'w')\n",
        )
        tree = box.tree("out")
        assert [file.path for file in tree.files] == ["n" * 251]
        assert [refusal[:3] for refusal in tree.refused] == ["ddd", "nnn"]
        assert max(map(len, tree.refused)) < 400
        assert "n" * 255 in modes(box.tree("."))

    def test_nothing_inside_can_end_the_worker(self, box: Sandbox) -> None:
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT):
            python(box, f"os.kill(1, {int(number)})")
            assert said(box, "print(1)") == "1"
        python(box, "os.kill(-1, 9)")
        assert said(box, "print(1)") == "1"

    def test_nothing_inside_can_speak_in_the_workers_place(self, box: Sandbox) -> None:
        reach = (
            "for number in range(3, 64):\n"
            "    try: os.fstat(number)\n"
            "    except OSError: continue\n"
            "    sys.exit(f'inherited {number}')\n"
            "for number in range(64):\n"
            "    path = f'/proc/1/fd/{number}'\n"
            "    try: stream = os.open(path, os.O_WRONLY)\n"
            "    except OSError: continue\n"
            "    if not os.path.samestat(os.fstat(stream), os.stat('/dev/null')):\n"
            "        os.write(stream, b'garbage')\n"
            "        sys.exit('wrote to ' + path)\n"
            "print('shut')\n"
        )
        assert said(box, reach) == "shut"
        assert said(box, "print(1)") == "1"

    def test_two_sandboxes_do_not_see_each_other(self, backend: Backend) -> None:
        with backend.open(spec("one")) as one, backend.open(spec("two")) as two:
            one.put([File.of("secret", b"1")])
            said(one, "open('/tmp/secret', 'w')")
            assert said(two, "print(os.listdir(), os.listdir('/tmp'))") == "[] []"
            assert self.processes(two) == 2

    def test_a_worker_killed_during_a_call_is_reported_at_once(self, backend: Backend) -> None:
        with backend.open(spec("lost")) as box:
            killer = threading.Timer(0.3, self.kill_from_outside, ["lost"])
            killer.start()
            started = time.monotonic()
            with pytest.raises(SandboxError) as caught:
                python(box, "import time; time.sleep(30)", timeout=30.0)
            killer.join()
            assert time.monotonic() - started < 10
            assert (caught.value.status.stage, caught.value.status.code) == (
                InfraStage.TOOL,
                "worker-lost",
            )
            with pytest.raises(SandboxError, match="worker-lost"):
                python(box, "pass")

    def test_the_deadline_ends_the_call_in_progress(self, backend: Backend) -> None:
        started = time.monotonic()
        with backend.open(spec("late", deadline=1.5)) as box:
            with pytest.raises(SandboxError) as caught:
                python(box, "import time; time.sleep(30)", timeout=30.0)
            assert caught.value.status.stage is InfraStage.DEADLINE
            assert caught.value.status.code == "deadline"
            assert not caught.value.status.retryable
        assert time.monotonic() - started < 10
        assert self.left_behind("late") == []

    def test_a_program_that_hangs_while_it_loads_ends_at_the_deadline(
        self, backend: Backend
    ) -> None:
        hanging = SandboxSpec(
            {"bad": "while True: pass"}, 1.0, {"run": own("hangs"), "attempt": "a"}
        )
        with pytest.raises(SandboxError, match="deadline/deadline"):
            backend.open(hanging).__enter__()
        assert self.left_behind("hangs") == []

    def test_leaving_the_context_removes_everything(self, backend: Backend) -> None:
        with backend.open(spec("closed")):
            assert self.left_behind("closed") != []
        assert self.left_behind("closed") == []

        def fail() -> None:
            with backend.open(spec("closed")):
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert self.left_behind("closed") == []

    def test_nothing_outlives_a_process_that_was_killed(self, backend: Backend) -> None:
        command = [sys.executable, "-c", ABANDONED, backend.name, own("orphan")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"open\n"
            time.sleep(0.3)
            assert self.left_behind("orphan") != []
            owner.kill()
        end = time.monotonic() + 10
        while self.left_behind("orphan") and time.monotonic() < end:
            backend.reap()
            time.sleep(0.05)
        assert self.left_behind("orphan") == []

    def test_threads_can_use_a_backend_together(self, backend: Backend) -> None:
        answers: list[str] = []

        def work(number: int) -> None:
            with backend.open(spec(f"thread-{number}")) as box:
                box.put([File.of("number", str(number).encode())])
                answers.append(said(box, "print(open('number').read())"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [str(number) for number in range(6)]
