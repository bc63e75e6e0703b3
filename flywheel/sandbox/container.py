"""Sandboxes by Docker: an image, a memory cgroup and a seccomp filter; some 0.3 s a start.

The worker is the container's main process, spoken to over an attached socket: no exec, no bind
mount, no log. Without network, capabilities and new privileges, on a read-only root file system,
as user 65534. The only module that imports the Docker SDK.

What this does not protect against: a bug in the kernel or in the container runtime, and whoever
else may talk to the engine.
"""

import io
import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import LogConfig

import docker
from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Sandbox, SandboxSpec
from flywheel.sandbox.launch import (
    ENVIRONMENT,
    worker_command,
    worker_digest,
    writable_folders,
)
from flywheel.sandbox.layers import Searched, search_layers
from flywheel.sandbox.multiplexed import Demultiplexed
from flywheel.sandbox.owner import is_orphan, owner_of
from flywheel.sandbox.protocol import Deadline, Death, WorkerSandbox
from schemas.attempt import InfraStage
from schemas.base import content_id
from schemas.config import SandboxKind

IMAGE = "flywheel-sandbox:bookworm"
BUILD = "sudo docker/sandbox/build.sh (or docker build -t flywheel-sandbox:bookworm docker/sandbox)"
OVERHEAD_MB = 64
"""Memory of a container beyond its calls' and its files'."""
ENGINE_SECONDS = 30
"""Longest wait for one answer of the engine."""
GRACE = 2.0
"""Seconds that a container gets to end before it is asked how it died."""
OWNER = "flywheel.host-pid"
PROC = Path("/proc")
LOGGER = logging.getLogger(__name__)


class Docker:
    """The backend; one object serves any number of sandboxes and threads.

    Raises ConfigError where no engine answers or the default image does not exist.
    """

    name: SandboxKind = "docker"

    def __init__(self) -> None:
        try:
            self._client = docker.from_env(timeout=ENGINE_SECONDS)
            self._image_id = str(self._client.images.get(IMAGE).id)
        except ImageNotFound:
            raise ConfigError(f"sandbox 'docker': no image {IMAGE}; build it: {BUILD}") from None
        except (DockerException, requests.RequestException) as problem:
            raise ConfigError(
                f"sandbox 'docker': no Docker engine answers ({problem}); start it, set "
                "DOCKER_HOST, or use sandbox 'bubblewrap'"
            ) from None
        self._command = worker_command("python3")
        # The engine starts no more containers a second when more are asked of it at once.
        self._starts = threading.BoundedSemaphore(os.cpu_count() or 1)

    @cached_property
    def digest(self) -> str:
        """Identity of default image and worker; a task's own image is part of its environment."""
        return content_id("env", self.name, self._image_id, worker_digest())

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        """Start a sandbox; leaving the context removes it, also after a failure."""
        with self._starts, _faults(spec.image):
            container = self._create(spec)
        try:
            with _faults(spec.image):
                stream = _attach(container)
            with (
                stream,
                Deadline(spec.deadline, lambda: _stop(stream, container)) as deadline,
            ):
                replies = Demultiplexed(stream)
                box = WorkerSandbox(
                    io.BufferedReader(replies),
                    stream.sendall,
                    spec,
                    deadline,
                    lambda: _examine(container, replies.errors),
                )
                with self._starts, _faults(spec.image):
                    container.start()
                    box.start(processes=0)  # the container's own limit counts them
                try:
                    yield box
                finally:
                    _hang_up(stream)  # an engine with an open stream takes ten seconds to kill
        finally:
            _remove(container)

    def search_image(self, image: str, needles: Mapping[str, bytes]) -> Searched:
        """Return where the layers of an image hold a needle, files deleted since included.

        Raises SandboxError where there is no such image, or the engine fails.
        """
        with _faults(image):
            return search_layers(self._client.images.get(image).save(), needles)

    def reap(self) -> int:
        """Remove the sandboxes whose process on this host is gone.

        Raises SandboxError where the engine can't be asked.
        """
        removed = 0
        with _faults(None):
            for container in self._client.containers.list(
                all=True, filters={"label": OWNER}, ignore_removed=True
            ):
                if is_orphan(container.labels.get(OWNER, "")):
                    _remove(container)
                    removed += 1
        return removed

    def _create(self, spec: SandboxSpec) -> Container:
        limits, folders = spec.limits, writable_folders(spec)
        memory = f"{limits.memory_mb + len(folders) * limits.workspace_mb + OVERHEAD_MB}m"
        # An owner, because runc may put the mount point's own mode in place of this one.
        owner = "uid=65534,gid=65534,mode=1777"
        mount = f"size={limits.workspace_mb}m,{owner},exec,nosuid,nodev"
        return self._client.containers.create(
            spec.image or IMAGE,
            entrypoint=self._command,
            command=[],
            environment={**ENVIRONMENT, **spec.environment},
            labels={f"flywheel.{key}": value for key, value in spec.labels.items()}
            | {OWNER: owner_of(os.getpid())},
            stdin_open=True,
            working_dir=spec.workdir,
            hostname="sandbox",
            user="65534:65534",
            network_mode="none",
            ipc_mode="none",
            init=False,  # the worker must be process 1: nothing inside can kill it then
            read_only=True,
            tmpfs=dict.fromkeys(folders, mount),
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=limits.processes + 1,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=1_000_000_000,
            log_config=LogConfig(type="none"),
        )


@contextmanager
def _faults(wanted: str | None) -> Iterator[None]:
    """Turn what the engine's client raises into a SandboxError with its stage."""
    try:
        yield
    except ImageNotFound as problem:
        image = wanted or IMAGE
        remedy = BUILD if image == IMAGE else f"docker pull {image}"
        raise SandboxError(
            InfraStage.IMAGE, "image-missing", f"{image}: {remedy}", retryable=False
        ) from problem
    except APIError as problem:
        raise SandboxError(InfraStage.BOOT, "boot-failed", str(problem)) from problem
    except (DockerException, requests.RequestException) as problem:
        raise SandboxError(InfraStage.ENGINE, "engine-unreachable", str(problem)) from problem


def _attach(container: Container) -> socket.socket:
    """Return a socket of our own to the container's streams: closing it is up to us alone."""
    every = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    with container.attach_socket(params=every) as attached:
        stream = socket.socket(fileno=os.dup(attached.fileno()))
    stream.settimeout(None)
    return stream


def _hang_up(stream: socket.socket) -> None:
    with suppress(OSError):  # it may have been closed already, from either end
        stream.shutdown(socket.SHUT_RDWR)


def _stop(stream: socket.socket, container: Container) -> None:
    _hang_up(stream)
    with suppress(DockerException, requests.RequestException):  # removal follows in any case
        container.kill()


def _remove(container: Container) -> None:
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except (DockerException, requests.RequestException) as problem:
        # Not raised: the attempt's own outcome matters more, and the reaper comes by again.
        LOGGER.warning("container %s was not removed: %s", container.short_id, problem)


def _examine(container: Container, errors: bytes) -> Death:
    try:
        with suppress(requests.RequestException):  # still running
            container.wait(timeout=GRACE)
        container.reload()
    except (DockerException, requests.RequestException) as problem:
        return Death(f"the engine can't say why: {problem}")
    state = container.attrs["State"]
    said = errors.decode(errors="replace").strip()
    evidence = f"container {state['Status']}, exit code {state['ExitCode']}: {said}"
    return Death(evidence, out_of_memory=bool(state["OOMKilled"]))
