"""A messy folder → a new one, sorted into subfolders.

Goal: Copy all files below `reef`, hidden ones too, with their subfolders to the new folder `oak`;
`reef` must not change. Of files with the same content keep in `oak` the one whose path is first.
Then move all files from subfolders directly into `oak`; of files with the same name keep the one
whose path was first. Last, move each file into a subfolder of `oak` named after the extension,
without the dot. Paths are in the order of character codes; contents stay as they are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.folders import TREE_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

Entry = tuple[str, str]
"""Path below the folder, and content."""
LEAST = 3
"""Files that the rules must leave."""


@dataclass(frozen=True)
class Layout:
    """A folder, the new folder, and the line that marks files."""

    source: str
    output: str
    mark: str
    entries: tuple[Entry, ...]


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Layout:
    """Draw folders until the rules leave a few files, some of them from subfolders."""
    cases = iter(lambda: _draw(rng, lexicon), None)
    return next(case for case in cases if _is_left(_kept(case, rules)))


def _is_left(entries: list[Entry]) -> bool:
    return len(entries) >= LEAST and any("/" in path for path, _ in entries)


def _draw(rng: Random, lexicon: Lexicon) -> Layout:
    """Draw 21 to 24 files: single ones, pairs of the same name, pairs of the same content."""
    source, output, mark, *words = lexicon.words(rng, 10)
    folders, words = words[:3], words[3:]
    names, contents = _names(rng, words), _contents(rng, mark, words)
    entries: list[Entry] = []
    for _ in range(rng.randrange(5, 9)):
        folder = rng.choice(["", *(f"{name}/" for name in folders)])
        entries.append((folder + _varied(rng, next(names)), next(contents)))
    for _ in range(4):
        one, other = rng.sample(folders, 2)
        name, shared = next(names), next(contents)
        entries += [(f"{one}/{name}", next(contents))]
        entries += [(f"{other}/{rng.choice([name, name.capitalize()])}", next(contents))]
        entries += [(f"{one}/{_varied(rng, next(names))}", shared)]
        entries += [(f"{other}/{_varied(rng, next(names))}", shared)]
    rng.shuffle(entries)
    return Layout(source=source, output=output, mark=mark, entries=tuple(entries))


def _names(rng: Random, words: list[str]) -> Iterator[str]:
    """Yield names that differ also without their capitals: word, date, extension."""
    year = rng.randrange(2015, 2026)
    for day in rng.sample(range(1, 29), 20):
        month = rng.randrange(1, 4)
        yield f"{rng.choice(words)}-{year}-0{month}-{day:02d}.{rng.choice(['csv', 'log', 'txt'])}"


def _varied(rng: Random, name: str) -> str:
    """Return the name, at times hidden or with a capital."""
    return rng.choice([name, name, f".{name}", name.capitalize()])


def _contents(rng: Random, mark: str, words: list[str]) -> Iterator[str]:
    """Yield different texts; the mark is their first line, a later one, or not there."""
    for number in count(rng.randrange(100, 800)):
        text = f"{rng.choice(words)} {number}\n"
        yield rng.choice([f"{mark}\n{text}", f"{mark}\n{text}", f"{text}{mark}\n", text])


def inputs(case: Layout) -> tuple[File, ...]:
    """Return the files of the messy folder."""
    entries = sorted(case.entries)
    return tuple(File(path=f"{case.source}/{path}", content=text) for path, text in entries)


_BY = {"by-word": "by-extension", "by-month": "by-extension", "number-later": "drop-later"}
"""Rule → what a goal says without it."""
_MOVES = ("drop-later", "number-later", "by-extension", "by-word", "by-month")
_FLAT = "Then move all files from subfolders directly into {output}"
_FLAT_TOO = "Then bring all files of {output} out of subfolders directly into it"
_GROUP = "Last, move each file into a subfolder of {output} named after"
_GROUP_TOO = "Last, group the files of {output} into subfolders named after"
_SENTENCES = {
    "skip-hidden": (
        "Remove the files of {output} whose names begin with a dot.",
        "Files whose names begin with a dot do not stay in {output}.",
    ),
    "first-line-says": (
        "In {output} keep only files whose first line is {mark}.",
        "Files stay in {output} only if their first line is {mark}.",
    ),
    "any-line-says": (
        "In {output} keep only files that have a line {mark} anywhere.",
        "Files stay in {output} only if one of their lines is {mark}.",
    ),
    "keep-shortest": (
        "Of files with the same content keep in {output} the one with the shortest file name, at "
        "ties the one whose path is first.",
        "Where files have the same content only the one with the shortest file name stays in "
        "{output}, at ties the one whose path is first.",
    ),
    "keep-first": (
        "Of files with the same content keep in {output} the one whose path is first.",
        "Where files have the same content only the one whose path is first stays in {output}.",
    ),
    "lower-case": (
        "Change capitals in the file names of {output} to small letters.",
        "File names in {output} get small letters in place of capitals.",
    ),
    **{
        rule: (f"{_FLAT}; {clash}.", f"{_FLAT_TOO}; {clash}.")
        for rule, clash in {
            "drop-later": "of files with the same name keep the one whose path was first",
            "number-later": "of files with the same name the one whose path was first keeps it, "
            "the next get -2, -3 and so on before the extension",
        }.items()
    },
    **{
        rule: (f"{_GROUP} {after}.", f"{_GROUP_TOO} {after}.")
        for rule, after in {
            "by-extension": "the extension, without the dot",
            "by-word": "the part of the file name before the first hyphen",
            "by-month": "year and month in the file name, as YYYY-MM",
        }.items()
    },
}


def goal(case: Layout, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the copy, each rule in the order of application, the moves, and what stays."""
    output, mark = f"`{case.output}`", f"`{case.mark}`"
    unsaid = set(_BY.values()) - {_BY[rule] for rule in rules & _BY.keys()}
    said = say(_SENTENCES, rules | unsaid, rng, ("paths", "contents"), output=output, mark=mark)
    moves = [said.pop(move) for move in _MOVES if move in said]
    opening = rng.choice(("Copy all files below", "Copy each file below"))
    return (
        Requirement(
            sentence=f"{opening} `{case.source}`, hidden ones too, with their subfolders to the "
            f"new folder {output}; `{case.source}` must not change.",
            checks=("input-unchanged", "paths"),
        ),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *said.values(),
        *(m.model_copy(update={"rule": None}) if m.rule in unsaid else m for m in moves),
        Requirement(
            sentence="Paths are in the order of character codes; contents stay as they are.",
            checks=("contents",),
        ),
    )


def reference(case: Layout, rules: Rules) -> Script:
    """Copy, apply the rules in order, flatten, group."""
    folder = {"folder": case.output}
    marked = {**folder, "line": case.mark}
    steps = {
        "skip-hidden": ToolCall(tool="drop-hidden", arguments=folder),
        "first-line-says": ToolCall(tool="keep-marked", arguments={**marked, "where": "first"}),
        "any-line-says": ToolCall(tool="keep-marked", arguments={**marked, "where": "any"}),
        "keep-shortest": ToolCall(tool="drop-copies", arguments={**folder, "keep": "shortest"}),
        "keep-first": ToolCall(tool="drop-copies", arguments={**folder, "keep": "first"}),
        "lower-case": ToolCall(tool="lower-names", arguments=folder),
    }
    taken = "number" if "number-later" in rules else "drop"
    by = next((rule for rule in ("by-word", "by-month") if rule in rules), "by-extension")
    return (
        ToolCall(tool="copy-tree", arguments={"folder": case.source, "to": case.output}),
        *(call for rule, call in steps.items() if rule in rules),
        ToolCall(tool="flatten", arguments={**folder, "taken": taken}),
        ToolCall(tool="group-files", arguments={**folder, "by": by.removeprefix("by-")}),
    )


def alternative(case: Layout, rules: Rules) -> Script:
    """Solve it in one pass by a program of its own."""
    arguments = {
        "source": case.source,
        "output": case.output,
        "mark": case.mark,
        "rules": sorted(rules),
    }
    return by_python("layout", arguments)


def _kept(case: Layout, rules: Rules) -> list[Entry]:
    """Return the files that the rules leave, by path, without the tools."""
    kept = sorted(case.entries)
    if "skip-hidden" in rules:
        kept = [(path, text) for path, text in kept if not _name(path).startswith(".")]
    if "first-line-says" in rules:
        kept = [(path, text) for path, text in kept if text.startswith(f"{case.mark}\n")]
    if "any-line-says" in rules:
        kept = [(path, text) for path, text in kept if f"\n{case.mark}\n" in f"\n{text}"]
    if "keep-shortest" in rules:
        ranked = sorted(kept, key=lambda entry: (len(_name(entry[0])), entry[0]))
        kept = sorted(_first_of_each(ranked))
    if "keep-first" in rules:
        kept = _first_of_each(kept)
    if "lower-case" in rules:
        kept = sorted((path.lower(), text) for path, text in kept)
    return kept


def _first_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """Return the first entry of each content."""
    firsts: dict[str, Entry] = {}
    for entry in entries:
        firsts.setdefault(entry[1], entry)
    return list(firsts.values())


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def target(case: Layout, rules: Rules) -> tuple[File, ...]:
    """Work out where each file ends up, without the tools."""
    namesakes: dict[str, list[str]] = defaultdict(list)
    for path, text in _kept(case, rules):
        namesakes[_name(path)].append(text)
    files = []
    for name, texts in namesakes.items():
        stem, dot, extension = name.rpartition(".")
        for number, text in enumerate(texts, 1):
            if number > 1 and "number-later" not in rules:
                break
            final = name if number == 1 else f"{stem}-{number}{dot}{extension}"
            files.append(File(path=f"{case.output}/{_group(name, rules)}/{final}", content=text))
    return tuple(sorted(files, key=lambda file: file.path))


def _group(name: str, rules: Rules) -> str:
    word, year, month, _ = name.split("-")
    if "by-word" in rules:
        return word
    return f"{year}-{month}" if "by-month" in rules else name.split(".")[-1]


def checks(rules: Rules) -> tuple[str, ...]:
    """Return the same for all rules."""
    return ("input-unchanged", "paths", "contents")


FAMILY = Family(
    name="layout",
    tools=pick(TREE_TOOLS, *(tool.name for tool in TREE_TOOLS)),
    rules={
        "skip-hidden": Axis.SCOPE,
        "first-line-says": Axis.SCOPE,
        "any-line-says": Axis.SCOPE,
        "keep-shortest": Axis.DUPLICATES,
        "keep-first": Axis.DUPLICATES,
        "lower-case": Axis.OUTPUT,
        "number-later": Axis.DUPLICATES,
        "by-word": Axis.OUTPUT,
        "by-month": Axis.DATES,
    },
    neighbours={
        "first-line-says": "any-line-says",
        "any-line-says": "first-line-says",
        "keep-shortest": "keep-first",
        "keep-first": "keep-shortest",
        "by-word": "by-month",
        "by-month": "by-word",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (f"{case.output}/",),
    protected=lambda case: tuple(file.path for file in inputs(case)),
    checks=checks,
    grader="files",
)
