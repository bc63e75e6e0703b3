"""A Prefect server for one run, where none is configured: it ends with the process it serves.

Prefect's own temporary server outlives a `kill -9` of its parent and gives up after seconds on a
first start, when it has to make its database. This one watches a pipe to its parent, and is waited
for as long as it needs, while the parent imports and prepares.
"""

import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from flywheel.errors import ConfigError

PATIENCE = 300.0
"""Seconds that a first start may take on a slow machine."""
BRIEFLY = 15.0
"""Seconds that a server which should be there already gets to answer."""
PRIVATE = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
QUIET = {"PREFECT_LOGGING_LEVEL": "CRITICAL", "PREFECT_LOGGING_TO_API_ENABLED": "false"}
"""Nobody reads the log of a server that ends with its run; errors reach the terminal anyway."""
SERVER = {"PREFECT_SERVER_UI_ENABLED": "false", "PREFECT__SERVER_EPHEMERAL": "1"}
"""No pages and no schedules: a server that is there for one run."""


class Server:
    """A server that is starting, or one that was there before."""

    def __init__(
        self, url: str, process: "subprocess.Popen[bytes] | None" = None, log: Path | None = None
    ) -> None:
        self.url = url
        self.process = process
        self.log = log
        self.waited = 0.0
        """Seconds that were spent on waiting alone."""

    def wait(self) -> None:
        """Return once the server answers.

        Raises:
            ConfigError: it ended, or did not answer in time.
        """
        began = monotonic()
        while not self._answers():
            if self.process is not None and self.process.poll() is not None:
                raise ConfigError(
                    f"the Prefect server ended with code {self.process.returncode}: see {self.log}"
                )
            if monotonic() - began > (PATIENCE if self.process else BRIEFLY):
                raise ConfigError(
                    f"no Prefect server answers at {self.url}: start one, or unset PREFECT_API_URL"
                )
            sleep(0.05)
        self.waited = monotonic() - began

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """Use the server that PREFECT_API_URL names, or start one that keeps its database in `home`.

    Sets the environment that Prefect reads, so enter it before Prefect is imported.
    """
    for name, value in PRIVATE.items():
        os.environ.setdefault(name, value)
    if "PREFECT_API_URL" in os.environ:
        yield Server(os.environ["PREFECT_API_URL"])
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    port = _free_port()
    url = f"http://127.0.0.1:{port}/api"
    folder = (home / "prefect").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PREFECT_HOME"] = str(folder)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.server", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **SERVER},
            start_new_session=True,  # Ctrl-C is for the run, which still needs its server
        )
    os.environ["PREFECT_API_URL"] = url
    try:
        yield Server(url, process, folder / "server.log")
    finally:
        os.environ.pop("PREFECT_API_URL", None)
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until standard input closes."""
    import uvicorn
    from prefect.server.api.server import create_app

    threading.Thread(target=_end_with_parent, daemon=True).start()
    uvicorn.run(
        create_app, factory=True, host="127.0.0.1", port=int(sys.argv[1]), log_level="error"
    )


if __name__ == "__main__":
    main()
