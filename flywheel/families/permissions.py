"""A tree of files with wrong permissions, and a policy → the modes that the policy gives.

Goal: A line of `oak.txt` has a pattern and an octal mode. A pattern that ends in a slash fits all
files below that folder, one that begins with a dot all files whose names end in it. Give files
below `reef` the modes of the lines that fit them, by these rules in order. Files that several
lines fit, or none, keep their modes. Rights are only taken away: a file gets what its present and
new mode have in common. Change no path, no content and no other file.
"""

from dataclasses import dataclass
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.folders import MODES_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

MODES = (0o600, 0o640, 0o644, 0o660, 0o700, 0o750, 0o755)
"""What a policy gives."""
FOUND = (*MODES, 0o400, 0o440, 0o444, 0o555, 0o664, 0o666, 0o775, 0o777)
"""What files have."""
ENDINGS = (".conf", ".key", ".log", ".sh", ".txt")
_LISTS = frozenset({"except-listed", "only-listed"})


@dataclass(frozen=True)
class Permissions:
    """A tree, a policy, and a list of files where a rule needs one."""

    policy: str
    folder: str
    listing: str
    lines: tuple[tuple[str, int], ...]
    """Pattern and mode."""
    files: tuple[File, ...]
    listed: tuple[str, ...]
    """Empty: there is no list."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Permissions:
    """Draw trees until the rules change the modes of a few files."""
    cases = iter(lambda: _draw(rules, rng, lexicon), None)
    return next(case for case in cases if len(_changes(case, rules)) > 1)


def _draw(rules: Rules, rng: Random, lexicon: Lexicon) -> Permissions:
    """Draw 20 files: most fit one line of the policy, some two, some none."""
    policy, folder, listing, *words = lexicon.words(rng, 26)
    places, names = words[:3], words[3:]
    endings = rng.sample(ENDINGS, 5)
    patterns = [f"{folder}/{places[0]}/", f"{folder}/{places[1]}/", *endings[:3]]
    rng.shuffle(patterns)
    files = tuple(
        File(
            path=f"{folder}/{rng.choice(places)}/{name}{rng.choice(endings)}",
            content=rng.choice(["", "", "#!/bin/sh\n"]) + f"echo {name} {rng.randrange(100)}\n",
            mode=rng.choice(FOUND),
        )
        for name in names[:20]
    )
    listed = rng.sample([file.path for file in files], 9) if rules & _LISTS else []
    return Permissions(
        policy=f"{policy}.txt",
        folder=folder,
        listing=f"{listing}.txt",
        lines=tuple(zip(patterns, rng.sample(MODES, 5), strict=True)),
        files=tuple(sorted(files, key=lambda file: file.path)),
        listed=tuple(sorted(listed)),
    )


def inputs(case: Permissions) -> tuple[File, ...]:
    """Return the tree, the policy and, where there is one, the list."""
    policy = "".join(f"{pattern} {mode:o}\n" for pattern, mode in case.lines)
    listing = "".join(f"{path}\n" for path in case.listed)
    return (
        *case.files,
        File(path=case.policy, content=policy),
        *([File(path=case.listing, content=listing)] if listing else []),
    )


_KEPT = {
    (False, True): (
        "A file that several lines fit keeps its mode.",
        "Where several lines fit a file it keeps its mode.",
    ),
    (True, False): (
        "A file that no line fits keeps its mode.",
        "Where no line fits a file it keeps its mode.",
    ),
    (False, False): (
        "Files that several lines fit, or none, keep their modes.",
        "Where several lines fit a file, or none, it keeps its mode.",
    ),
}
"""What a goal says where no rule is about several lines, or about none."""
_SENTENCES = {
    "last-line": (
        "If several lines fit a file the last of them counts.",
        "Where a file fits several lines take the last of these.",
    ),
    "first-line": (
        "If several lines fit a file the first of them counts.",
        "Where a file fits several lines take the first of these.",
    ),
    "rest-private": (
        "A file that no line fits gets mode 600, private to its owner.",
        "Where no line fits a file give it mode 600, private to its owner.",
    ),
    "rest-shared": (
        "A file that no line fits gets mode 644, for all to read.",
        "Where no line fits a file give it mode 644, for all to read.",
    ),
    "scripts-run": (
        "Files that begin with #! and get a mode may also be executed by all whom it lets read.",
        "Where a file that begins with #! gets a mode, all whom it lets read may execute it too.",
    ),
    "tighten-only": (
        "Rights are only taken away: a file gets what its present and new mode have in common.",
        "Give no rights: a file is left with what its present and new mode have in common.",
    ),
    "loosen-only": (
        "Rights are only given: a file gets all that its present or new mode has.",
        "Take no rights away: a file is left with all that its present or new mode has.",
    ),
    "except-listed": (
        "Files listed in {listing} keep their modes all the same.",
        "In any case leave alone the modes of files listed in {listing}.",
    ),
    "only-listed": (
        "Only files listed in {listing} change; all others keep their modes.",
        "In any case leave alone the modes of files not listed in {listing}.",
    ),
}


def goal(case: Permissions, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State what a policy is, what it asks for, each rule in the order of application."""
    said = say(_SENTENCES, rules, rng, ("modes",), listing=f"`{case.listing}`")
    several = said.pop("last-line", None) or said.pop("first-line", None)
    rest = said.pop("rest-private", None) or said.pop("rest-shared", None)
    kept = _KEPT.get((several is not None, rest is not None), ())
    opening = rng.choice(("A line of", "Each line in"))
    return (
        Requirement(sentence=f"{opening} `{case.policy}` has a pattern and an octal mode."),
        Requirement(
            sentence="A pattern that ends in a slash fits all files below that folder, one that "
            "begins with a dot all files whose names end in it."
        ),
        Requirement(
            sentence=f"Give files below `{case.folder}` the modes of the lines that fit them, by "
            "these rules in order.",
            checks=("modes",),
        ),
        *(ruled for ruled in (several, rest) if ruled),
        *([Requirement(sentence=rng.choice(kept), checks=("modes",))] if kept else []),
        *said.values(),
        Requirement(
            sentence="Change no path, no content and no other file.",
            checks=("input-unchanged", "paths", "contents"),
        ),
    )


def reference(case: Permissions, rules: Rules) -> Script:
    """Read the policy, plan, change the plan rule by rule, apply it."""
    several = next((rule for rule in ("first-line", "last-line") if rule in rules), "none")
    steps = {
        "rest-private": _call("plan-rest", mode="private"),
        "rest-shared": _call("plan-rest", mode="shared"),
        "scripts-run": _call("run-scripts"),
        "tighten-only": _call("limit-changes", to="taking"),
        "loosen-only": _call("limit-changes", to="giving"),
        "except-listed": _call("narrow-plan", file=case.listing, spare="listed"),
        "only-listed": _call("narrow-plan", file=case.listing, spare="unlisted"),
    }
    return (
        _call("read-policy", file=case.policy),
        _call("plan-modes", folder=case.folder, several=several.removesuffix("-line")),
        *(call for rule, call in steps.items() if rule in rules),
        _call("apply-plan"),
    )


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def alternative(case: Permissions, rules: Rules) -> Script:
    """Solve it file by file, by a program of its own."""
    arguments = {
        "policy": case.policy,
        "folder": case.folder,
        "listing": case.listing,
        "rules": sorted(rules),
    }
    return by_python("permissions", arguments)


def target(case: Permissions, rules: Rules) -> tuple[File, ...]:
    """Work out each file's mode, without the tools."""
    return tuple(file.model_copy(update={"mode": _mode(case, file, rules)}) for file in case.files)


def _changes(case: Permissions, rules: Rules) -> list[File]:
    return [file for file in target(case, rules) if file not in case.files]


def _mode(case: Permissions, file: File, rules: Rules) -> int:
    """Return the mode that a file is to have."""
    if "except-listed" in rules and file.path in case.listed:
        return file.mode
    if "only-listed" in rules and file.path not in case.listed:
        return file.mode
    given = _given(case, file, rules)
    if given is None:
        return file.mode
    if "scripts-run" in rules and file.content.startswith("#!"):
        given |= sum(bit >> 2 for bit in (0o400, 0o040, 0o004) if given & bit)
    if "tighten-only" in rules:
        return given & file.mode
    return given | file.mode if "loosen-only" in rules else given


def _given(case: Permissions, file: File, rules: Rules) -> int | None:
    """Return the policy's mode for a file, None where it is left alone."""
    folder, _, name = file.path.rpartition("/")
    keys = {f"{folder}/", f".{name.split('.')[-1]}"}
    fitting = [mode for pattern, mode in case.lines if pattern in keys]
    if not fitting:
        return 0o600 if "rest-private" in rules else 0o644 if "rest-shared" in rules else None
    if "first-line" in rules:
        return fitting[0]
    return fitting[-1] if len(fitting) == 1 or "last-line" in rules else None


def checks(rules: Rules) -> tuple[str, ...]:
    """Return the same for all rules."""
    return ("input-unchanged", "paths", "contents", "modes")


FAMILY = Family(
    name="permissions",
    tools=pick(MODES_TOOLS, *(tool.name for tool in MODES_TOOLS)),
    rules={
        "last-line": Axis.PRIORITY,
        "first-line": Axis.PRIORITY,
        "rest-private": Axis.MISSING,
        "rest-shared": Axis.MISSING,
        "scripts-run": Axis.SIDE_EFFECTS,
        "tighten-only": Axis.OUTPUT,
        "loosen-only": Axis.OUTPUT,
        "except-listed": Axis.SCOPE,
        "only-listed": Axis.SCOPE,
    },
    neighbours={
        "last-line": "first-line",
        "first-line": "last-line",
        "rest-private": "rest-shared",
        "rest-shared": "rest-private",
        "tighten-only": "loosen-only",
        "loosen-only": "tighten-only",
        "except-listed": "only-listed",
        "only-listed": "except-listed",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (f"{case.folder}/",),
    protected=lambda case: tuple(file.path for file in inputs(case)[len(case.files) :]),
    checks=checks,
    grader="files",
)
