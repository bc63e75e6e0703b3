"""Broken script → a script that passes hidden runs. A reverse family.

Goal: Repair `reef.py`, which prints a summary of the CSV file that it is given. An empty `oak`
counts as 0. Values are rounded to whole numbers, halves to the even one. What is not mentioned it
must go on doing as it does now. For `plume.csv` it must print the lines `cider 2 31`, `all 2 31`.
`plume.csv` must not change.

Each rule is a bug at one site of a healthy script. An agent sees the script and what it prints for
one example; it is graded by what its script prints for inputs that it has not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from flywheel.errors import ManifestError
from flywheel.families import Axis, Family, Rules, by_python, say, summary
from flywheel.families.lexicon import Lexicon
from flywheel.families.summary import NAMES, SITES, Names, Record
from flywheel.tools import pick
from flywheel.tools.editor import EDITOR_TOOLS
from schemas.file import File
from schemas.task import Capability, Exercise, Requirement
from schemas.tool import Script, ToolCall

_REPAIRS = {
    "skip-header": ("header", "1"),
    "trim": ("blanks", "strip"),
    "empty-as-zero": ("empty", "0"),
    "net": ("arguments", "AMOUNT, DISCOUNT"),
    "at-least": ("compare", ">="),
    "above": ("compare", ">"),
    "half-even": ("rounding", "ROUND_HALF_EVEN"),
    "half-up": ("rounding", "ROUND_HALF_UP"),
    "largest-first": ("order", "True"),
}
"""Rule → the site of its bug, and what has to stand there."""
MAX_DRAWS = 200


@dataclass(frozen=True)
class Repair:
    """A script with bugs, an example, and hidden inputs."""

    script: str
    example: str
    hidden: str
    """Name of each hidden input."""
    names: Names
    limit: int
    shown: tuple[Record, ...]
    trials: Mapping[str, tuple[Record, ...] | None]
    """Hidden run → records of its input; None: no header either. Few, for each is a process."""
    broken: Rules


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Repair:
    """Draw cases until the example shows each of the bugs.

    Raises:
        ManifestError: none of them did.
    """
    for _ in range(MAX_DRAWS):
        case = _draw(rules, rng, lexicon)
        if _shows(case, rules):
            return case
    raise ManifestError(f"family script: no example shows {sorted(rules)} in {MAX_DRAWS} draws")


def _shows(case: Repair, rules: Rules) -> bool:
    right = _printed(case, case.shown, rules)
    return all(_printed(case, case.shown, rules - {rule}) != right for rule in rules)


def _draw(rules: Rules, rng: Random, lexicon: Lexicon) -> Repair:
    words = lexicon.words(rng, 18)
    limit = lexicon.number(rng, 3, 12)
    names = dict(zip(NAMES, [*words[3:11], str(limit)], strict=True))
    groups = words[11:]

    return Repair(
        script=f"{words[0]}.py",
        example=f"{words[1]}.csv",
        hidden=f"{words[2]}.csv",
        names=names,
        limit=limit,
        shown=_records(rng, groups[:3], limit, 6),
        trials={
            "empty": None,
            "one": ((f"{groups[3]} ", f"{limit}.50", "0"),),
            "many": _edges(groups[3:], limit) + _records(rng, groups[:3], limit, 30),
        },
        broken=rules,
    )


def _records(rng: Random, groups: list[str], limit: int, count: int) -> tuple[Record, ...]:
    """Draw records with blanks, gaps, halves, and discounts above the amount."""

    def record(group: str) -> Record:
        quarters = rng.randrange(4 * limit, 160)
        small = rng.choice(["1.00", "2", "2.50", f"-{limit}", f"-{limit}.50"])
        large = rng.choice([f"{quarters // 4}.{quarters % 4 * 25:02d}", f"{limit + 2}.50"])
        gap = ("", rng.choice([large, small]))
        amounts = rng.choice([(large, small), (large, small), (small, large), gap])
        return (rng.choice([group, group, f" {group}", f"{group} "]), *amounts)

    return tuple(record(rng.choice(groups)) for _ in range(count))


def _edges(groups: list[str], limit: int) -> tuple[Record, ...]:
    """Return a quoted comma, no ASCII, leading zeros, huge and negative values, ties."""
    first, second, third, fourth = groups
    return (
        (f"  {second}", f"-{limit + 9}.50", "-1.25"),
        (f"{first}, {second}", "12345678901234567890.50", "0.00"),
        (f"{first}é", f"00{limit + 1}.50", "1"),
        (f"{second}  ", f"{limit}", "0"),
        (first, f"{limit + 40}.5", "-3"),
        (second, "", f"-{limit}"),
        (third, f"{limit + 2}.5", "0"),
        (fourth, f"{limit + 3}.50", "1.00"),
    )


def _standing(case: Repair, rules: Rules) -> dict[str, str]:
    """Return site → what stands there once the rules are followed and other bugs are left."""
    bugs = {_REPAIRS[rule][0] for rule in case.broken}
    broken = {site: pair[site in bugs] for site, pair in SITES.items()}
    return broken | dict(_REPAIRS[rule] for rule in rules)


def inputs(case: Repair) -> tuple[File, ...]:
    """Return the broken script and the example."""
    return (
        File(path=case.script, content=summary.script(case.names, _standing(case, frozenset()))),
        File(path=case.example, content=summary.table(case.names, case.shown)),
    )


_SENTENCES = {
    "skip-header": (
        "Every line but the first, a header, is a record.",
        "Only the first line, a header, is no record.",
    ),
    "trim": (
        "Blanks before and after a {group} do not belong to it.",
        "A {group} counts without blanks around it.",
    ),
    "empty-as-zero": (
        "An empty {amount} counts as 0.",
        "Where {amount} is empty it is 0.",
    ),
    "net": (
        "A record's value is its {amount} minus its {discount}.",
        "The value of a record: {discount} subtracted from {amount}.",
    ),
    "at-least": (
        "Only records whose value, before rounding, is at least {limit} count.",
        "Records with a value below {limit}, before rounding, do not count.",
    ),
    "above": (
        "Only records whose value, before rounding, is above {limit} count.",
        "Records with a value of {limit} or less, before rounding, do not count.",
    ),
    "half-even": (
        "Values are rounded to whole numbers, halves to the even one.",
        "Each value is rounded to a whole number with ties to even.",
    ),
    "half-up": (
        "Values are rounded to whole numbers, halves away from zero.",
        "Each value is rounded to a whole number with ties away from zero.",
    ),
    "largest-first": (
        "The group with the largest total comes first, equal totals by name.",
        "Groups are sorted by falling total, equal totals by name.",
    ),
}


def goal(case: Repair, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the script, what it has to do, that the rest stays, and the example."""
    words = {name: f"`{case.names[name.upper()]}`" for name in ("group", "amount", "discount")}
    said = say(_SENTENCES, rules, rng, ("answers",), limit=f"`{case.limit}`", **words)
    opening = rng.choice(("Repair {}, which prints", "Correct the script {}, which prints"))
    lines = ", ".join(f"`{line}`" for line in _printed(case, case.shown, rules))
    return (
        Requirement(
            sentence=f"{opening.format(f'`{case.script}`')} a summary of the CSV file that it is "
            "given.",
            checks=("answers",),
        ),
        *said.values(),
        Requirement(
            sentence="What is not mentioned it must go on doing as it does now.",
            checks=("answers",),
        ),
        Requirement(
            sentence=f"For `{case.example}` it must print the lines {lines}.",
            checks=("answers",),
        ),
        Requirement(sentence=f"`{case.example}` must not change.", checks=("input-unchanged",)),
    )


def reference(case: Repair, rules: Rules) -> Script:
    """Open, repair the sites from top to bottom, save."""
    bugs = _standing(case, frozenset())
    steps = []
    for rule in sorted(rules, key=list(_REPAIRS).index):
        site, new = _REPAIRS[rule]
        line = summary.line(case.names, site, bugs[site])
        if site == "arguments":
            steps.append(ToolCall(tool="swap-arguments", arguments={"line": line}))
        else:
            arguments = {"line": line, "old": bugs[site], "new": new}
            steps.append(ToolCall(tool="replace-token", arguments=arguments))
    return (
        ToolCall(tool="open-file", arguments={"file": case.script}),
        *steps,
        ToolCall(tool="save-file", arguments={"file": case.script}),
    )


def alternative(case: Repair, rules: Rules) -> Script:
    """Write the script anew, on fractions."""
    arguments = {"script": case.script, "limit": case.limit, **_standing(case, rules)}
    return by_python("script", arguments)


def _printed(case: Repair, records: tuple[Record, ...] | None, rules: Rules) -> tuple[str, ...]:
    """Return what a script prints that follows the rules and keeps the other bugs."""
    return summary.printed(records, case.limit, _standing(case, rules))


def exercises(case: Repair) -> tuple[Exercise, ...]:
    """Run the script on each hidden input."""
    return tuple(
        Exercise(
            name=name,
            files=(File(path=case.hidden, content=summary.table(case.names, records)),),
            argv=("/usr/bin/env", "python3", "-I", case.script, case.hidden),
        )
        for name, records in case.trials.items()
    )


def target(case: Repair, rules: Rules) -> tuple[File, ...]:
    """Return what the script should print for each hidden input."""
    printed = {name: _printed(case, records, rules) for name, records in case.trials.items()}
    return tuple(
        File(path=exercise.output, content="\n".join(printed[exercise.name]) + "\n")
        for exercise in exercises(case)
    )


FAMILY = Family(
    name="script",
    tools=pick(EDITOR_TOOLS, *(tool.name for tool in EDITOR_TOOLS)),
    rules=dict.fromkeys(_REPAIRS, Axis.REPAIR),
    neighbours={
        "at-least": "above",
        "above": "at-least",
        "half-even": "half-up",
        "half-up": "half-even",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.script,),
    protected=lambda case: (case.example,),
    exercises=exercises,
    checks=lambda rules: ("input-unchanged", "answers"),
    grader="files",
    depth=lambda case, rules: 3,
    rounds=lambda case, rules: 1,
    capabilities=frozenset({Capability.RECOVERY}),
)
