"""A manifest that has got damaged → the same manifest, repaired.

Goal: The manifest `oak.txt` has a line for each file below `reef`: its SHA-256 hash in small hex
digits, its size in bytes and its path, with one space between. Repair `oak.txt`; no other file may
change. Where the hash or the size of a line is not that of its file put the right ones. Last,
sort the lines by path in the order of character codes.

In reverse: each rule is a damage done to a manifest that was right. Every line has its own damage,
and damages whose repair would depend on one another never go together.
"""

import hashlib
from dataclasses import dataclass
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.folders import MANIFEST_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

Line = tuple[str, str, str]
"""Hash, size, path."""


@dataclass(frozen=True)
class Checksums:
    """A folder, its manifest, and what was done to which line."""

    manifest: str
    folder: str
    prefix: str
    """In front of the paths that have one."""
    contents: tuple[tuple[str, str], ...]
    """Path and text of each file."""
    stale: tuple[str, ...]
    """Paths whose line is from before a change."""
    missing: str
    absent: str
    """A path without a file."""
    repeated: tuple[str, ...]
    capitals: tuple[str, ...]
    prefixed: tuple[str, ...]
    order: tuple[str, ...]
    """All paths twice, shuffled: where the first and the second line of each stands."""
    damage: Rules
    """What was done to the manifest."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Checksums:
    """Draw eleven files, two of them in a subfolder, and a line or more for each damage."""
    manifest, folder, below, prefix, *words = lexicon.words(rng, 16)
    paths = [
        f"{folder}/{below}/{word}.csv" if number % 6 == 0 else f"{folder}/{word}.csv"
        for number, word in enumerate(words)
    ]
    files, absent = paths[1:], paths[0]
    rng.shuffle(files)
    order = paths * 2
    rng.shuffle(order)
    return Checksums(
        manifest=f"{manifest}.txt",
        folder=folder,
        prefix=f"/{prefix}/",
        contents=tuple((path, _text(rng, words)) for path in sorted(files)),
        stale=tuple(files[:2]),
        missing=files[2],
        absent=absent,
        repeated=tuple(files[3:5]),
        capitals=tuple(files[5:8]),
        prefixed=tuple(files[8:11]),
        order=tuple(order),
        damage=rules,
    )


def _text(rng: Random, words: list[str]) -> str:
    lines = range(rng.randrange(1, 5))
    return "".join(f"{rng.choice(words)},{rng.randrange(1000, 10_000)}\n" for _ in lines)


def inputs(case: Checksums) -> tuple[File, ...]:
    """Return the files and the damaged manifest."""
    waiting = {path: _lines_of(case, path, frozenset()) for path in case.order}
    lines = [waiting[path].pop(0) for path in case.order if waiting[path]]
    files = (File(path=path, content=text) for path, text in case.contents)
    return (*files, _written(case, lines, case.damage))


def _written(case: Checksums, lines: list[Line], damage: Rules) -> File:
    end = "\r\n" if "crlf" in damage else "\n"
    return File(path=case.manifest, content="".join(" ".join(line) + end for line in lines))


def _line(text: str, path: str) -> Line:
    data = text.encode()
    return hashlib.sha256(data).hexdigest(), str(len(data)), path


def _lines_of(case: Checksums, path: str, rules: Rules) -> list[Line]:
    """Return a path's lines where the damage that `rules` name has been repaired."""
    left = case.damage - rules
    text = dict(case.contents).get(path)
    if text is None:
        return [_line("gone\n", path)] if "absent-file" in left else []
    right, old = _line(text, path), _line(f"{text}old\n", path)
    if path == case.missing and "missing-line" in left:
        return []
    if path in case.stale and "stale-hash" in left:
        return [] if "drop-stale" in rules else [old]
    if path in case.capitals and "upper-hash" in left:
        return [(right[0].upper(), *right[1:])]
    if path in case.prefixed and "absolute-path" in left:
        shown = path.split("/")[-1] if "bare-name" in rules else case.prefix + path
        return [(*right[:2], shown)]
    if path in case.repeated and "keep-last" in case.damage:
        return _kept([old, right], rules)
    if path in case.repeated and "keep-first" in case.damage:
        return _kept([right, old], rules)
    return [right]


def _kept(lines: list[Line], rules: Rules) -> list[Line]:
    if "keep-last" in rules:
        return lines[-1:]
    return lines[:1] if "keep-first" in rules else lines


_SENTENCES = {
    "absolute-path": (
        "Cut {prefix} off the paths that begin with it.",
        "Paths that begin with {prefix} lose that beginning.",
    ),
    "keep-last": (
        "Of lines with the same path keep the last.",
        "Where a path is repeated its last line counts: remove the others.",
    ),
    "keep-first": (
        "Of lines with the same path keep the first.",
        "Where a path is repeated its first line counts: remove the others.",
    ),
    "upper-hash": (
        "Change capitals in hashes to small letters.",
        "Hashes get small letters in place of capitals.",
    ),
    "missing-line": (
        "Add a line for each file that has none.",
        "A file without a line gets one.",
    ),
    "absent-file": (
        "Remove the lines of files that do not exist.",
        "Lines without a file have to go.",
    ),
    "stale-hash": (
        "Where hash or size, capitals aside, are not those of the file put the right ones.",
        "Correct hash and size of lines where they, capitals aside, are not those of the file.",
    ),
    "crlf": (
        "End every line, also the last, with a line feed alone (LF).",
        "Every line, also the last, has to end in LF without CR.",
    ),
}
_REPEATS = frozenset({"keep-first", "keep-last"})


def goal(case: Checksums, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State what a manifest is, each rule in the order of application, and the order of lines."""
    manifest = f"`{case.manifest}`"
    said = say(_SENTENCES, rules, rng, ("contents",), prefix=f"`{case.prefix}`")
    ending = said.pop("crlf", None)
    opening = rng.choice(("A line of the manifest", "Each line in the manifest"))
    tied = (
        "" if _REPEATS & (case.damage - rules) == set() else "; lines of one path keep their order"
    )
    return (
        Requirement(
            sentence=f"{opening} {manifest} has the SHA-256 hash (hex, small letters) of a file "
            f"below `{case.folder}`, its size in bytes and its path, with single spaces between."
        ),
        Requirement(
            sentence="Repair it where it is; the files are right and must not change.",
            checks=("input-unchanged", "exists"),
        ),
        Requirement(sentence="Do only what follows, in this order.", checks=("contents",)),
        *said.values(),
        Requirement(
            sentence=f"Sort the lines of {manifest} by path in the order of character codes{tied}.",
            checks=("contents",),
        ),
        *([ending.model_copy(update={"checks": ("bytes",)})] if ending else []),
    )


def reference(case: Checksums, rules: Rules) -> Script:
    """Read, repair rule by rule, sort, write."""
    one, other = case.stale
    steps = {
        "absolute-path": (_call("cut-prefix", prefix=case.prefix, keep="path"),),
        "bare-name": (_call("cut-prefix", prefix=case.prefix, keep="name"),),
        "keep-last": (_call("drop-repeats", keep="last"),),
        "keep-first": (_call("drop-repeats", keep="first"),),
        "upper-hash": (_call("lower-hashes"),),
        "missing-line": (_call("add-entry", path=case.missing),),
        "absent-file": (_call("drop-entry", path=case.absent),),
        "stale-hash": (_call("update-entry", path=one), _call("update-entry", path=other)),
        "drop-stale": (_call("drop-entry", path=one), _call("drop-entry", path=other)),
    }
    ends = "lf" if "crlf" in rules else "kept"
    return (
        _call("read-manifest", file=case.manifest, folder=case.folder),
        *(call for rule, calls in steps.items() if rule in rules for call in calls),
        _call("sort-entries"),
        _call("write-manifest", file=case.manifest, ends=ends),
    )


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def alternative(case: Checksums, rules: Rules) -> Script:
    """Repair it by a program of its own."""
    arguments = {
        "manifest": case.manifest,
        "folder": case.folder,
        "prefix": case.prefix,
        "rules": sorted(rules),
    }
    return by_python("checksums", arguments)


def target(case: Checksums, rules: Rules) -> tuple[File, ...]:
    """Work out the manifest with what the rules name repaired, and nothing else."""
    lines = [line for path in sorted(set(case.order)) for line in _lines_of(case, path, rules)]
    lines.sort(key=lambda line: line[2])
    return (_written(case, lines, case.damage - rules),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Line ends count only where a rule asks for them."""
    base = ("input-unchanged", "exists", "contents")
    return (*base, "bytes") if "crlf" in rules else base


_LOOKED_UP = frozenset({"missing-line", "absent-file", "stale-hash"})
"""Which path they are about is not in the goal."""

FAMILY = Family(
    name="checksums",
    tools=pick(MANIFEST_TOOLS, *(tool.name for tool in MANIFEST_TOOLS)),
    rules={
        "absolute-path": Axis.REPAIR,
        "keep-last": Axis.DUPLICATES,
        "keep-first": Axis.DUPLICATES,
        "upper-hash": Axis.REPAIR,
        "missing-line": Axis.REPAIR,
        "absent-file": Axis.REPAIR,
        "stale-hash": Axis.REPAIR,
        "crlf": Axis.REPAIR,
    },
    neighbours={
        "absolute-path": "bare-name",
        "keep-last": "keep-first",
        "keep-first": "keep-last",
        "stale-hash": "drop-stale",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.manifest,),
    protected=lambda case: tuple(path for path, _ in case.contents),
    checks=checks,
    grader="files",
    rounds=lambda case, rules: int(bool(rules & _LOOKED_UP)),
    clashes=frozenset(
        frozenset(pair)
        for pair in (
            ("absolute-path", "missing-line"),
            ("absolute-path", "absent-file"),
            ("stale-hash", "keep-last"),
            ("stale-hash", "keep-first"),
        )
    ),
)
