"""What can be said of a task without running it: pinned, described, files named, nothing leaked."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter

from flywheel.formats.collection import shown
from flywheel.formats.harbor import BASE
from flywheel.sandbox.layers import Searched
from flywheel.screen.secrets import Secret, secrets_made, secrets_of
from schemas.file import File, is_folder
from schemas.screening import CheckKind, ScreenCheck
from schemas.task import TaskManifest

_EXTENSIONS = (
    "bz2|cfg|conf|csv|dat|db|env|gz|html|ini|js|json|jsonl|log|md|pdf|png|py|sh|sql|sqlite|tar|toml|"
    "ts|tsv|txt|xml|yaml|yml|zip"
)
_NAMED = re.compile(rf"`([\w./-]+\.(?:{_EXTENSIONS}))`")
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_MOST = 4_000_000
"""Bytes that a git object is inflated to, at most."""


SearchImage = Callable[[str, Mapping[str, bytes]], Searched]
"""Image, name → bytes → where its layers hold them, and what was not searched."""


def lint(task: TaskManifest, search_image: SearchImage) -> list[ScreenCheck]:
    """Return the checks that run nothing of the task's, cheapest first.

    Raises:
        SandboxError: the task's image can't be read.
    """
    checks = []
    for kind, check in (
        (CheckKind.PINNED, _pinned),
        (CheckKind.DESCRIBED, _described),
        (CheckKind.FILES_NAMED, _files_named),
        (CheckKind.NO_LEAK, partial(_no_leak, search_image=search_image)),
    ):
        began = perf_counter()
        passed, evidence = check(task)
        seconds = perf_counter() - began
        checks.append(ScreenCheck(kind=kind, passed=passed, evidence=evidence, seconds=seconds))
    return checks


Finding = tuple[bool | None, str]


def _pinned(task: TaskManifest) -> Finding:
    environment = task.brief.environment
    if environment.image is not None and not _DIGEST.search(environment.image):
        return False, f"environment.image {environment.image} has no digest: use name@sha256:…"
    if environment.egress:
        return False, f"no recorded responses for egress to {', '.join(environment.egress)}"
    if BASE in task.outside:
        here = environment.image or "the shared base image"
        return None, f"runs on {here} in place of {shown(task.outside[BASE], 200)}"
    return True, environment.image or "the shared base image, no network"


def _described(task: TaskManifest) -> Finding:
    """Compare the goal's sentences with the checks, both ways."""
    requirements, checks = task.sealed.requirements, task.sealed.grader.checks
    if not requirements:
        return None, "nobody has said which check each sentence of the goal has"
    if " ".join(item.sentence for item in requirements) != task.brief.goal:
        return False, "the tagged sentences are not the goal"
    named = {check for item in requirements for check in item.checks}
    ruled = {item.rule for item in requirements if item.rule and item.checks}
    faults = [
        *(f"check {check} has no sentence" for check in checks if check not in named),
        *(f"no check {check}, which a sentence names" for check in sorted(named - set(checks))),
        *(f"rule {rule} has no sentence with a check" for rule in task.rules if rule not in ruled),
    ]
    said = f"{len(requirements)} sentences, {len(checks)} checks"
    return not faults, "; ".join(faults) or said


def _files_named(task: TaskManifest) -> Finding:
    """Look for the files that the goal names."""
    brief = task.brief
    named = {name.removeprefix("./") for name in _NAMED.findall(brief.goal)}
    if not named:
        return True, "the goal names no file"
    if brief.environment.image is not None:
        return None, "files of an image are not listed"
    there = {file.path for file in brief.environment.files}
    folders = [path.removeprefix("./") for path in brief.artifacts if is_folder(path)]
    made = set(brief.artifacts) | set(task.operands)
    unknown = [
        name
        for name in sorted(name.removeprefix(f"{brief.environment.workdir}/") for name in named)
        if name not in there | made
        and not any(path.endswith(f"/{name}") for path in there)
        and not any(name.startswith(folder) for folder in folders)
    ]
    return not unknown, f"not there and not to be made: {', '.join(unknown)}" if unknown else (
        f"{len(named)} named"
    )


def _no_leak(task: TaskManifest, search_image: SearchImage) -> Finding:
    """Search all that an agent can read for the right answer, its hashes and the solution."""
    return _searched(task, list(secrets_of(task)), search_image)


def leaks(
    task: TaskManifest, artifacts: Iterable[File], search_image: SearchImage
) -> ScreenCheck | None:
    """Search all that an agent can read for what the reference made; None: it is nowhere.

    Args:
        task: the task.
        artifacts: what stood there after the reference had run.
        search_image: searches the layers of the task's own image.

    Raises:
        SandboxError: the task's image can't be read.
    """
    began = perf_counter()
    made = list(secrets_made(task, artifacts_written(task, artifacts)))
    passed, evidence = _searched(task, made, search_image)
    if passed is not False:
        return None
    seconds = perf_counter() - began
    return ScreenCheck(
        kind=CheckKind.NO_LEAK, passed=False, evidence=evidence[:2000], seconds=seconds
    )


def _searched(task: TaskManifest, secrets: Sequence[Secret], search_image: SearchImage) -> Finding:
    texts = list(_readable(task))
    for secret in secrets:
        for path, place, text in texts:
            if secret.needle in text and not secret.allowed(path, text):
                return False, f"{place} holds {secret.name}"
    said, image = f"{len(texts)} texts searched", task.brief.environment.image
    if image is None or not _DIGEST.search(image):
        return True, said
    anywhere = {secret.name: secret.needle for secret in secrets if secret.in_layers}
    searched = search_image(image, anywhere)
    if searched.findings:
        return False, "; ".join(searched.findings)
    if searched.unsearched:
        return None, f"{said}; not searched: {'; '.join(searched.unsearched)}"[:2000]
    return True, f"{said}, and every layer of the image"


def _readable(task: TaskManifest) -> Iterator[tuple[str, str, bytes]]:
    """Yield path (empty: no file), what it is called, and its bytes."""
    brief = task.brief
    yield "", "the goal", brief.goal.encode()
    for tool in brief.tools:
        yield "", f"tool {tool.name}", tool.model_dump_json().encode()
    for file in brief.environment.files:
        yield file.path, file.path, file.data()
        if "/objects/" in f"/{file.path}":
            yield "", f"{file.path} (git object)", _inflated(file.data())


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, _MOST)
    except zlib.error:
        return b""


def artifacts_written(task: TaskManifest, artifacts: Iterable[File]) -> tuple[File, ...]:
    """Return the artifacts that differ from the initial state: what a solution made."""
    initial = {file.path: file for file in task.brief.environment.files}
    return tuple(file for file in artifacts if initial.get(file.path) != file)
