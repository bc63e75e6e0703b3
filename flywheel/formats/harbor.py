"""Harbor task folders in: `task.toml`, `instruction.md`, `environment/`, `solution/`, `tests/`.

What agent and grader share is the working directory: a task whose verifier looks elsewhere, or
needs a second service, is refused here or fails screening. Every byte of the folder survives in
the manifest, so that `flywheel.formats.harbor_export` can write the same folder again.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from flywheel.formats.collection import Files, FormatError, shown
from flywheel.formats.dockerfile import CONTEXT, DOCKERFILE, Recipe, read_dockerfile
from flywheel.formats.documents import read_yaml, text_at, text_of
from flywheel.formats.harbor_config import CONFIG, HarborConfig, read_config
from flywheel.formats.harbor_solution import folders_for, reference_of
from flywheel.formats.manifest import manifest_of
from flywheel.formats.reading import read_files, reported
from flywheel.graders import grader_version
from flywheel.tools import BASH_TOOL, SUBMIT_TOOL
from schemas.file import File
from schemas.task import (
    Brief,
    Budget,
    Environment,
    Grader,
    Sealed,
    Source,
    SourceKind,
    TaskManifest,
)

INSTRUCTION, SOLUTION, TESTS, COMPOSE = "instruction.md", "solution/", "tests/", "docker-compose"
NATIVE, SUMS = "flywheel/", "flywheel/SHA256SUMS"
"""Where an exported task carries its manifest, and what the folder was when it was exported."""
ORIGINAL = "harbor:"
"""Key prefix in `outside` of a file of the folder; `task.toml:` is that of a homeless field."""
BASE = "base"
"""Key in `outside` of the image that the folder names, where another one stands in for it."""
KNOWN_BASES: Mapping[str, str | None] = {"debian:*": None, "python:*": None, "ubuntu:*": None}
"""Base image (a pattern) → the image that stands in for it; None: the shared base image."""
RESERVED = frozenset({"/tests", "/logs", "/solution", "/grading"})
STEPS, TOKENS, COST = 50, 65_536, 1.0
"""Budget of an imported task in what Harbor does not limit."""
_CANARY = re.compile(r"(<!--.*canary.*-->|#.*canary.*)", re.IGNORECASE)
_IMAGE = re.compile(r"[\w][\w./:@-]*")
_PLAIN_COMPOSE = frozenset({"build", "image", "init", "stop_grace_period", "network_mode"})


def is_harbor(path: Path) -> bool:
    """Tell whether `path` looks like a Harbor task folder."""
    return (path / CONFIG).is_file()


def read_harbor(path: Path, bases: Mapping[str, str | None] = KNOWN_BASES) -> TaskManifest:
    """Read a Harbor task folder, or an archive of one.

    Args:
        path: the folder.
        bases: base image (a pattern of fnmatch) → the image that stands in for it.

    Raises:
        FormatError: it can't be read, or asks for what no sandbox here has.
    """
    return harbor_of(read_files(path), shown(path.name.partition(".tar")[0], 128), bases)


def harbor_of(files: Files, name: str, bases: Mapping[str, str | None]) -> TaskManifest:
    """Return the task of a Harbor folder's files; `name` is the folder's.

    Raises:
        FormatError: as `read_harbor`.
    """
    if SUMS in files:
        return _exported(files)
    config = read_config(text_at(files, CONFIG), name)
    _refuse_unsupported(files, config)
    canary, goal = _split_canary(text_at(files, INSTRUCTION))
    reference = reference_of(_below(files, SOLUTION), config.solution_variables)
    recipe = read_dockerfile(files) if DOCKERFILE in files else Recipe(problem="no Dockerfile")
    named = config.image or recipe.base
    environment = _environment(recipe, files, config, bases, folders_for(reference))
    with reported(CONFIG):
        return TaskManifest(
            family="harbor",
            family_version=f"harbor@{config.schema_version}",
            rules=(),
            seed=0,
            operands=(),
            brief=Brief(
                goal=goal,
                environment=environment,
                tools=(BASH_TOOL, SUBMIT_TOOL),
                artifacts=("./",),
                budget=Budget(steps=STEPS, seconds=config.agent_seconds, tokens=TOKENS, cost=COST),
            ),
            sealed=Sealed(
                grader=Grader(
                    program="harbor",
                    version=grader_version("harbor"),
                    checks=("reward",),
                    expected=_below(files, TESTS),
                    seconds=config.verifier_seconds,
                ),
                reference=reference,
            ),
            features=None,
            source=Source(kind=SourceKind.IMPORTED, uri=config.name, licence=config.licence),
            outside={
                **_outside(files, config, canary, recipe.origins(environment.workdir)),
                **({} if environment.image == named else {BASE: named}),
            },
        )


def _exported(files: Files) -> TaskManifest:
    """Return the manifest that an exported folder carries, unless the folder was changed."""
    own = {path: file for path, file in files.items() if path != SUMS}
    if sums(own) != text_of(files[SUMS]):
        reason = f"the folder was changed since it was exported: remove {NATIVE} to read it as is"
        raise FormatError(SUMS, "", reason)
    carried = {path.removeprefix(NATIVE): f for path, f in own.items() if path.startswith(NATIVE)}
    return manifest_of(carried)


def sums(files: Files) -> str:
    """Return the files' digests, in the form of the command sha256sum."""
    lines = (f"{hashlib.sha256(files[path].data()).hexdigest()}  {path}\n" for path in files)
    return "".join(sorted(lines, key=lambda line: line[64:]))


def _refuse_unsupported(files: Files, config: HarborConfig) -> None:
    if f"{TESTS}test.sh" not in files:
        raise FormatError(f"{TESTS}test.sh", "", "missing: add the verifier")
    for path, file in files.items():
        if path == "trajectory.json" or path.startswith("steps/"):
            raise FormatError(path, "", "unsupported: only single-step tasks without history run")
        if path in (f"{TESTS}Dockerfile", f"{TESTS}docker-compose.yaml"):
            raise FormatError(path, "", "unsupported: the verifier runs in the task's own image")
        if path.startswith(f"{CONTEXT}{COMPOSE}"):
            _refuse_services(path, file)


def _refuse_services(path: str, file: File) -> None:
    document = read_yaml(text_of(file), path)
    services = document.get("services") if isinstance(document, dict) else None
    main = services.get("main") if isinstance(services, dict) else None
    alone = isinstance(services, dict) and services.keys() <= {"main"}
    if not alone or not isinstance(main, dict) or main.keys() - _PLAIN_COMPOSE:
        fix = f"only the service main with {sorted(_PLAIN_COMPOSE)} is run"
        raise FormatError(path, "services", f"unsupported: {fix}")


def _environment(
    recipe: Recipe,
    files: Files,
    config: HarborConfig,
    bases: Mapping[str, str | None],
    folders: tuple[str, ...],
) -> Environment:
    """Return the environment, with the files that the recipe places in it."""
    workdir = config.workdir or recipe.workdir
    if workdir in ("/", ""):
        fix = "unknown: set it, or WORKDIR in the Dockerfile, to a folder below /"
        raise FormatError(CONFIG, "environment.workdir", fix)
    if {str(path) for path in (PurePosixPath(workdir), *PurePosixPath(workdir).parents)} & RESERVED:
        raise FormatError(CONFIG, "environment.workdir", f"{workdir} is reserved: rename it")
    if config.separate:
        for artifact in config.artifacts:
            if not PurePosixPath(workdir, artifact).is_relative_to(workdir):
                fix = f"{artifact} lies outside {workdir}: have it written there"
                raise FormatError(CONFIG, "artifacts", f"unsupported: {fix}")
    with reported(DOCKERFILE, "environment"):
        return Environment(
            files=recipe.files_below(workdir, files),
            image=_image(recipe, workdir, config, bases),
            workdir=workdir,
            folders=folders,
            egress=config.egress,
            variables=recipe.variables | dict(config.variables),
        )


def _image(
    recipe: Recipe, workdir: str, config: HarborConfig, bases: Mapping[str, str | None]
) -> str | None:
    """Return the image: a known base's stand-in where files are all that was added to it."""
    outside = recipe.elsewhere(workdir)
    problem = recipe.problem or (f"{outside} is outside {workdir}" if outside else "")
    known = [pattern for pattern in bases if fnmatchcase(recipe.base, pattern)]
    if known and not problem:
        return bases[known[0]]
    image = config.image or recipe.base
    if problem and not config.image:
        fix = f"needs a build ({problem}): build it and set environment.docker_image"
        raise FormatError(DOCKERFILE, "", fix)
    if not _IMAGE.fullmatch(image):
        raise FormatError(CONFIG, "environment.docker_image", f"{image} names no image")
    return image


def _below(files: Files, folder: str) -> tuple[File, ...]:
    """Return the files below a folder under their paths there, sorted."""
    inside = {path.removeprefix(folder): f for path, f in files.items() if path.startswith(folder)}
    return tuple(inside[path].model_copy(update={"path": path}) for path in sorted(inside))


def _split_canary(text: str) -> tuple[str, str]:
    """Split off the lines that mark a benchmark's data; an agent does not see them."""
    lines = text.splitlines(keepends=True)
    count = 0
    while count < len(lines) and _CANARY.fullmatch(lines[count].strip()):
        count += 1
    while 0 < count < len(lines) and not lines[count].strip():
        count += 1
    return "".join(lines[:count]), "".join(lines[count:])


def _outside(
    files: Files, config: HarborConfig, canary: str, sources: Mapping[str, str]
) -> dict[str, str]:
    """Return what the manifest has no place for: fields, and files or where their text stands."""
    kept = {f"{CONFIG}:{name}": value for name, value in config.homeless.items()}
    for path in sorted(files):
        file = files[path]
        entry: dict[str, str | int] = {"mode": file.mode}
        if path == INSTRUCTION:
            entry |= {"in": "goal", "before": canary}
        elif path in sources:
            entry |= {"in": "environment", "path": sources[path]}
        elif path.startswith(TESTS):
            entry |= {"in": "expected", "path": path.removeprefix(TESTS)}
        else:
            entry |= {"content": file.content, "encoding": file.encoding}
        kept[f"{ORIGINAL}{path}"] = json.dumps(entry, ensure_ascii=False)
    return kept
