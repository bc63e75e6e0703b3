"""`task.toml` of a Harbor task: schema 1.4 and the fields of 1.0 to 1.3 that it replaced.

Source: Harbor 0.26, `models/task/config.py`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from flywheel.formats.collection import FormatError, shown
from flywheel.formats.documents import read_toml

CONFIG = "task.toml"
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
PHASE_SECONDS = 600.0
"""Harbor's default for the verifier; used for the agent too, which has none."""
_PHASE = ("timeout_sec", "user", "network_mode", "allowed_hosts")
_ENVIRONMENT = (
    *("build_timeout_sec", "docker_image", "os", "cpus", "memory_mb", "storage_mb", "gpus"),
    *("gpu_types", "tpu", "mcp_servers", "env", "skills_dir", "healthcheck", "workdir"),
    *("network_mode", "allowed_hosts", "allow_internet", "memory", "storage"),
)
FIELDS: Mapping[str, tuple[str, ...]] = {
    "": (
        *("schema_version", "version", "task", "metadata", "verifier", "agent", "environment"),
        *("solution", "source", "multi_step_reward_strategy", "steps", "artifacts"),
    ),
    "task": ("name", "version", "description", "authors", "keywords"),
    "agent": _PHASE,
    "verifier": (*_PHASE, "env", "environment_mode", "environment", "collect"),
    "verifier.environment": _ENVIRONMENT,
    "environment": _ENVIRONMENT,
    "solution": ("env",),
}
"""Table → its fields."""
UNSUPPORTED = (
    *("steps", "verifier.collect", "verifier.env"),
    *("verifier.environment.docker_image", "verifier.environment.mcp_servers"),
    *("environment.gpus", "environment.gpu_types", "environment.tpu"),
    *("environment.mcp_servers", "environment.skills_dir", "environment.healthcheck"),
)
"""Fields that ask for something that no sandbox here has."""
HOMES = frozenset(
    {
        *("schema_version", "version", "task.name", "agent.timeout_sec", "verifier.timeout_sec"),
        *("environment.workdir", "environment.docker_image", "environment.env", "solution.env"),
        *("metadata.license", "metadata.licence"),
    }
)
"""Fields that a manifest has a place of its own for."""


@dataclass(frozen=True)
class HarborConfig:
    """What `task.toml` says that a manifest has a place for."""

    schema_version: str
    name: str
    licence: str
    agent_seconds: float
    verifier_seconds: float
    image: str | None
    workdir: str | None
    variables: Mapping[str, str]
    solution_variables: Mapping[str, str]
    egress: tuple[str, ...]
    separate: bool
    """The verifier has an environment of its own."""
    artifacts: tuple[str, ...]
    """Paths in the agent's environment."""
    homeless: Mapping[str, str]
    """Dotted field → its value as JSON, for fields without a place."""


def read_config(text: str, folder: str) -> HarborConfig:
    """Read `task.toml`; `folder` names a task that does not name itself.

    Raises:
        FormatError: broken TOML, a field of the wrong type, a misspelt or an unsupported one.
    """
    config = _Config(read_toml(text, CONFIG))
    config.check_names()
    config.check_supported()
    version = config.text("schema_version") or config.text("version") or VERSIONS[-1]
    if version not in VERSIONS:
        raise config.refusal("schema_version", f"{version} unsupported: use {VERSIONS[-1]}")
    mode = config.text("verifier.environment_mode")
    return HarborConfig(
        schema_version=version,
        name=shown(config.text("task.name") or folder, 128),
        licence=shown(config.text("metadata.license") or config.text("metadata.licence"), 128)
        or "unknown",
        agent_seconds=config.seconds("agent.timeout_sec"),
        verifier_seconds=config.seconds("verifier.timeout_sec"),
        image=config.text("environment.docker_image") or None,
        workdir=config.text("environment.workdir") or None,
        variables=config.texts("environment.env"),
        solution_variables=config.texts("solution.env"),
        egress=config.strings("environment.allowed_hosts"),
        separate=mode == "separate" or (not mode and bool(config.get("verifier.environment"))),
        artifacts=config.artifacts(),
        homeless=dict(config.homeless()),
    )


class _Config:
    """Typed access by dotted names."""

    def __init__(self, document: dict[str, object]) -> None:
        self._document = document

    def get(self, name: str) -> object:
        """Return a field's value, None where it is absent."""
        value: object = self._document
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def text(self, name: str) -> str:
        value = self.get(name)
        if not isinstance(value, str | None):
            raise self.refusal(name, "must be a text in quotes")
        return value or ""

    def seconds(self, name: str) -> float:
        value = self.get(name)
        if value is None:
            return PHASE_SECONDS
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(name, "must be a number of seconds")
        if not 0 < value <= 86_400:
            raise self.refusal(name, "must be above 0 and at most 86400 seconds")
        return float(value)

    def strings(self, name: str) -> tuple[str, ...]:
        value = self.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refusal(name, "must be a list of texts")
        return tuple(value)

    def texts(self, name: str) -> dict[str, str]:
        """Return a table of texts; one that takes its values from the host is refused."""
        value = self.get(name) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.refusal(name, "must be a table of texts")
        for key, text in value.items():
            if "${" in text:
                raise self.refusal(f"{name}.{key}", "unsupported: write the value itself")
        return value

    def artifacts(self) -> tuple[str, ...]:
        entries = self.get("artifacts") or []
        if not isinstance(entries, list):
            raise self.refusal("artifacts", "must be a list of paths")
        return tuple(self._artifact(f"artifacts.{n}", entry) for n, entry in enumerate(entries))

    def _artifact(self, name: str, entry: object) -> str:
        source = entry.get("source") if isinstance(entry, dict) else entry
        if not isinstance(source, str):
            raise self.refusal(name, "must be a path, or a table with a source")
        if isinstance(entry, dict) and entry.get("service", "main") != "main":
            raise self.refusal(f"{name}.service", "unsupported: only the main service is run")
        return source

    def check_names(self) -> None:
        """Refuse a field that is a known one misspelt: it would be ignored without a word."""
        for table, known in FIELDS.items():
            value = self.get(table) if table else self._document
            if value is not None and not isinstance(value, dict):
                raise self.refusal(table, "must be a table")
            for name in (value or {}).keys() - set(known):
                if close := get_close_matches(name, known, 1, 0.8):
                    raise self.refusal(
                        f"{table}.{name}".strip("."), f"unknown; is {close[0]} meant?"
                    )
        if not isinstance(self.get("metadata") or {}, dict):
            raise self.refusal("metadata", "must be a table")

    def check_supported(self) -> None:
        for name in UNSUPPORTED:
            if self.get(name):
                raise self.refusal(name, "unsupported: remove it, if the task can do without")
        for name in ("environment.os", "verifier.environment.os"):
            if self.text(name).lower() not in ("", "linux"):
                raise self.refusal(name, "unsupported: only linux runs here")

    def homeless(self) -> Iterator[tuple[str, str]]:
        """Yield the fields that a manifest has no place for."""
        yield from _flat(self._document, "")

    def refusal(self, name: str, reason: str) -> FormatError:
        return FormatError(CONFIG, name, reason)


def _flat(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name in HOMES:
            continue
        if isinstance(value, dict) and value:
            yield from _flat(cast(Mapping[str, object], value), f"{name}.")
        else:
            yield name, json.dumps(value, default=str, ensure_ascii=False)
