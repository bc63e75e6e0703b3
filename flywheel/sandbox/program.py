"""A call, from inside a sandbox: what a process that was forked for it does until its end."""

import _signal  # type: ignore[import-not-found]
import os
import resource
import sys

from flywheel.sandbox.workspace import open_folder, parts_of

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

NO_PROGRAM = 127


def become(
    argv: list[str],
    folder: str,
    output: int,
    limits: list[tuple[int, int]],
    programs: "Mapping[str, Callable[[list[str]], int | None]]",
) -> "NoReturn":
    """Turn this process into the program `argv[0]`, writing to the descriptor `output`.

    `limits` are pairs of a resource and its most.
    """
    exit_code = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        for kind, most in limits:
            resource.setrlimit(kind, (most, most))
        exit_code = _run(argv, folder, programs)
    except SystemExit as stop:
        exit_code = _exit_code(stop)
    except BaseException as problem:  # noqa: BLE001 - the program's own failure: report it
        _report(problem)
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(exit_code & 0xFF)


def _run(
    argv: list[str], folder: str, programs: "Mapping[str, Callable[[list[str]], int | None]]"
) -> int:
    name = argv[0] if argv else ""
    try:
        opened = open_folder(parts_of(folder))
        os.fchdir(opened)
        os.close(opened)
    except OSError as problem:
        return _refuse(f"can't enter folder {folder}: {problem.strerror}")
    if name in programs:
        sys.argv = argv
        return programs[name](argv[1:]) or 0
    if not name.startswith("/"):
        return _refuse(f"{name or 'an empty command'}: no such program")
    try:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
        os.execv(name, argv)
    except (OSError, ValueError) as problem:
        return _refuse(f"{name}: {problem}")


def _refuse(message: str) -> int:
    sys.stderr.write(message + "\n")
    return NO_PROGRAM


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _report(problem: BaseException) -> None:
    """Print the traceback from the program's first frame on, as if it had been run alone."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    sys.excepthook(type(problem), problem.with_traceback(trace), trace)
