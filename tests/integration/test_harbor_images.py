"""An exported task in the images that Harbor would build from it."""

import json
import subprocess
from pathlib import Path

import pytest

from flywheel.formats.harbor_export import write_harbor
from tests.real_tasks import real_task

IMAGE = "flywheel-sandbox:bookworm"


@pytest.mark.docker
def test_an_exported_task_runs_in_the_images_that_harbor_would_build(tmp_path: Path) -> None:
    task = real_task("keep-last", "half-even")
    folder = tmp_path / "task"
    write_harbor(task, folder, IMAGE)

    def docker(*words: str) -> str:
        done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    agent = docker("build", "-q", str(folder / "environment")).strip()
    verifier = docker("build", "-q", str(folder / "tests")).strip()
    try:
        paths = [f"/workspace/{path}" for path in task.brief.artifacts]
        script = f"bash /solution/solve.sh >&2 && cd / && tar c {' '.join(paths)} | base64 -w0"
        mount = f"{folder}/solution:/solution:ro"
        packed = docker("run", "--rm", "--network=none", "-v", mount, agent, "bash", "-c", script)
        unpack = f"echo {packed} | base64 -d | tar x -C /"
        script = f"{unpack} && /tests/test.sh && cat /logs/verifier/reward.json"
        said = docker("run", "--rm", "--network=none", verifier, "bash", "-c", script)
        assert json.loads(said)["reward"] == 1
    finally:
        docker("rmi", "-f", agent, verifier)
