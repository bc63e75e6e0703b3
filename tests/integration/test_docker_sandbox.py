"""Docker keeps the sandbox's promises, and its own: removal by owner, and honest faults."""

import subprocess
import sys

import pytest
from docker.models.containers import Container

import docker
from flywheel.errors import ConfigError, SandboxError
from flywheel.sandbox import Backend, Limits, SandboxSpec
from flywheel.sandbox.choose import open_backend
from schemas.attempt import InfraStage
from tests.sandbox_behaviour import ABANDONED, PROJECT, SandboxBehaviour, own, python, spec

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def backend() -> Backend:
    try:
        return open_backend("docker")
    except ConfigError as problem:
        pytest.skip(str(problem))


class TestDocker(SandboxBehaviour):
    def left_behind(self, run: str) -> list[str]:
        return [container.short_id for container in _containers(run)]

    def kill_from_outside(self, run: str) -> None:
        for container in _containers(run):
            container.kill()

    def test_the_reaper_takes_orphans_and_no_sandbox_in_use(self, backend: Backend) -> None:
        for run in ("reaped", "other"):
            command = [sys.executable, "-c", ABANDONED, "docker", own(run)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as owner:
                assert owner.stdout is not None
                assert owner.stdout.readline() == b"open\n"
                owner.kill()
        with backend.open(spec("reaped")) as mine:
            assert len(self.left_behind("reaped")) == 2
            assert backend.reap() >= 2
            assert len(self.left_behind("reaped")) == 1
            assert python(mine, "print(1)").output == b"1\n"
            assert self.left_behind("other") == []

    def test_a_missing_image_says_how_to_get_it(self, backend: Backend) -> None:
        wanted = SandboxSpec({}, 20.0, {"run": "image"}, image="no-such-image:1")
        with pytest.raises(SandboxError, match="docker pull no-such-image:1") as caught:
            backend.open(wanted).__enter__()
        assert caught.value.status.stage is InfraStage.IMAGE
        assert caught.value.status.code == "image-missing"
        assert not caught.value.status.retryable

    def test_calls_that_use_up_the_containers_memory_die_and_the_worker_lives(
        self, backend: Backend
    ) -> None:
        greedy = (
            "for _ in range(6):\n"
            "    if os.fork() == 0: break\n"
            "x = bytearray(100 << 20)\n"
            "for at in range(0, len(x), 4096): x[at] = 1\n"
            "import time; time.sleep(2)\n"
        )
        limits = Limits(memory_mb=128, workspace_mb=8)
        with backend.open(spec("greedy", limits=limits)) as box:
            python(box, greedy)
            assert python(box, "print(1)").output == b"1\n"


def _containers(run: str) -> list[Container]:
    client = docker.from_env()
    try:
        found: list[Container] = client.containers.list(
            all=True, filters={"label": f"flywheel.run={own(run)}"}
        )
        return found
    finally:
        client.close()
