"""What can be said of a task without running it: pinned, described, files named, nothing leaked."""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter

from schemas.file import File, is_folder
from schemas.screening import CheckKind, ScreenCheck
from schemas.task import TaskManifest

_EXTENSIONS = (
    "bz2|cfg|conf|csv|dat|db|env|gz|html|ini|js|json|jsonl|log|md|pdf|png|py|sh|sql|sqlite|tar|toml|"
    "ts|tsv|txt|xml|yaml|yml|zip"
)
_NAMED = re.compile(rf"`([\w./-]+\.(?:{_EXTENSIONS}))`")
_LEAST = 12
"""Characters from which on a text is long enough not to turn up by chance."""
_MOST = 4_000_000
"""Bytes that a git object is inflated to, at most."""


SearchImage = Callable[[str, Mapping[str, bytes]], list[str]]
"""Image, name → bytes → where its layers hold them."""


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
    if environment.image is not None and not re.search(r"@sha256:[0-9a-f]{64}$", environment.image):
        return False, f"environment.image {environment.image} has no digest: use name@sha256:…"
    if environment.egress:
        return False, f"no recorded responses for egress to {', '.join(environment.egress)}"
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
    texts, secrets = dict(_readable(task)), dict(_secrets(task))
    for name, needle in secrets.items():
        for place, text in texts.items():
            if needle in text:
                return False, f"{place} holds {name}"
    image = task.brief.environment.image
    found = search_image(image, secrets) if image and _pinned(task)[0] else []
    said = f"{len(texts)} texts searched{', and every layer of the image' if image else ''}"
    return not found, "; ".join(found) or said


def _readable(task: TaskManifest) -> Iterator[tuple[str, bytes]]:
    brief = task.brief
    yield "the goal", brief.goal.encode()
    for tool in brief.tools:
        yield f"tool {tool.name}", tool.model_dump_json().encode()
    for file in brief.environment.files:
        yield file.path, file.data()
        if "/objects/" in f"/{file.path}":
            yield f"{file.path} (git object)", _inflated(file.data())


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, _MOST)
    except zlib.error:
        return b""


def _secrets(task: TaskManifest) -> Iterator[tuple[str, bytes]]:
    """Yield what nobody may find: answers that are not simply files left as they were."""
    files = task.brief.environment.files
    initial, paths = {file.data() for file in files}, {file.path for file in files}
    grader = task.sealed.grader
    for file in grader.expected:
        data = file.data()
        repaired = file.path in paths  # what is wrong with it may be a mark or a line too many
        if grader.program in ("files", "tests") and (data in initial or repaired):
            continue  # moved or left alone: its content was there to begin with
        yield from _forms(f"the expected {file.path}", data)
    for call in task.sealed.reference:
        text = call.arguments.get("command", "").encode()
        if len(text) >= 2 * _LEAST:
            yield "the reference's command", text.strip()


def _forms(name: str, data: bytes) -> Iterable[tuple[str, bytes]]:
    if len(data.strip()) < _LEAST:
        return
    yield name, data.strip()
    yield f"{name} in base64", base64.b64encode(data.strip())
    for algorithm in ("md5", "sha1", "sha256"):
        for form, how in ((data, ""), (data.strip(), ", blanks at its ends left out")):
            found = hashlib.new(algorithm, form).hexdigest().encode()
            yield f"the {algorithm} of {name}{how}", found


def artifacts_written(task: TaskManifest, artifacts: Iterable[File]) -> tuple[File, ...]:
    """Return the artifacts that differ from the initial state: what a solution made."""
    initial = {file.path: file for file in task.brief.environment.files}
    return tuple(file for file in artifacts if initial.get(file.path) != file)
