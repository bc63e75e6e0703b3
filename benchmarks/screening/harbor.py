"""Harbor's side: folders with one solution each, images built beforehand, jobs and their rewards.

Agent and verifier run in separate containers without network: the exported compose files say
`network_mode: none`, since Harbor's own `no-network` needs images from a registry.
"""

import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from flywheel.errors import ConfigError
from flywheel.formats.harbor_export import harbor_files
from flywheel.formats.reading import write_files
from flywheel.sandbox.container import IMAGE
from flywheel.tools import BASH_TOOL
from schemas.file import File
from schemas.task import Brief, Sealed, TaskManifest
from schemas.tool import Script

VERSION = re.compile(r"^0\.26\.\d+$")
_ENVIRONMENT = "\n[environment]\n"
_PREBUILT = """
[verifier.environment]
network_mode = "public"
docker_image = "{verifier}"

[environment]
docker_image = "{agent}"
"""


@dataclass(frozen=True, slots=True)
class Images:
    """Tags of what was built for one task."""

    agent: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Job:
    """What came of a job."""

    seconds: float
    """From its first trial's start to its last one's end, by Harbor's own clock: without the
    start of the command itself."""
    rewards: Mapping[str, float | str]
    """Folder's name → its reward, or why there is none."""


@dataclass(frozen=True, slots=True)
class Harbor:
    """A command line that runs Harbor, and a folder that it and the engine see alike."""

    command: str
    folder: Path

    def check(self) -> str:
        """Return the version; raise ConfigError where there is no Harbor 0.26, or no folder."""
        if not self.folder.is_dir():
            raise ConfigError(f"--folder {self.folder}: no such folder; make it first")
        said = self._run("--version").strip()
        if not VERSION.fullmatch(said):
            raise ConfigError(f"--harbor {self.command}: version {said!r}; install harbor==0.26.0")
        return said

    def run_job(self, tasks: Path, agent: str, concurrent: int) -> Job:
        """Run an agent of Harbor's own on each task folder in `tasks`.

        Raises:
            ConfigError: Harbor gave up, or did not run each task once.
        """
        jobs, name = tasks.with_name(f"{tasks.name}-jobs"), f"{agent}-{concurrent}"
        options = ["-a", agent, "-n", str(concurrent), "-o", str(jobs), "--job-name", name]
        self._run("run", "-p", str(tasks), *options, "-y", "-q")
        whole = json.loads((jobs / name / "result.json").read_text("utf-8"))
        trials = [
            json.loads(path.read_text("utf-8")) for path in (jobs / name).glob("*/result.json")
        ]
        rewards = {Path(trial["task_id"]["path"]).name: _reward(trial) for trial in trials}
        missing = {path.name for path in tasks.iterdir()} - rewards.keys()
        if missing or len(trials) != len(rewards):
            raise ConfigError(f"Harbor ran {len(trials)} trials; none of {sorted(missing)}")
        began, ended = (datetime.fromisoformat(whole[f"{end}ed_at"]) for end in ("start", "finish"))
        return Job((ended - began).total_seconds(), rewards)

    def _run(self, *words: str) -> str:
        try:
            done = subprocess.run(
                [*shlex.split(self.command), *words],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "HARBOR_TELEMETRY": "0"},
            )
        except OSError as problem:
            raise ConfigError(f"--harbor {self.command}: {problem}") from None
        if done.returncode != 0:
            said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise ConfigError(f"--harbor {self.command}: exit {done.returncode}\n{said}")
        return done.stdout


def _reward(trial: Mapping[str, Mapping[str, Mapping[str, float]] | None]) -> float | str:
    verified, problem = trial["verifier_result"], trial["exception_info"]
    if verified and verified.get("rewards"):
        return float(verified["rewards"]["reward"])
    return str(problem["exception_type"]) if problem else "no reward and no exception"


@contextmanager
def built(task: TaskManifest, folder: Path) -> Iterator[Images]:
    """Build a task's two images from its export below `folder`; remove them in the end."""
    write_files(harbor_files(task, IMAGE), folder)
    tags = {
        part: f"flywheel-benchmark-{task.version_id}:{part}" for part in ("environment", "tests")
    }
    made = []
    try:
        for part, tag in tags.items():
            _docker("build", "--quiet", "--tag", tag, str(folder / part))
            made.append(tag)
        yield Images(tags["environment"], tags["tests"])
    finally:
        if made:
            _docker("rmi", *made)


def write_solution(task: TaskManifest, script: Script, images: Images, folder: Path) -> None:
    """Write a task's folder with `script` as its solution, to be run in images that exist."""
    files = harbor_files(task, IMAGE)
    solve = harbor_files(_solved_by(task, script), IMAGE)["solution/solve.sh"]
    prebuilt = _PREBUILT.format(agent=images.agent, verifier=images.verifier)
    config = files["task.toml"].data().decode().replace(_ENVIRONMENT, prebuilt)
    if "docker_image" not in tomllib.loads(config)["environment"]:
        raise RuntimeError("task.toml: the export has no table [environment] any more")
    text = {"task.toml": File(path="task.toml", content=config), "solution/solve.sh": solve}
    write_files(files | text, folder)


def _solved_by(task: TaskManifest, script: Script) -> TaskManifest:
    """Return the task with `script` as its reference, and with the shell that it may need."""
    brief = Brief.model_validate({**dict(task.brief), "tools": (*task.brief.tools, BASH_TOOL)})
    sealed = Sealed.model_validate({**dict(task.sealed), "reference": script})
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest.model_validate({**fields, "brief": brief, "sealed": sealed})


def _docker(*words: str) -> None:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"docker {words[0]}: {done.stderr[-2000:]}")
