"""Two address books → one CSV list.

Goal: Merge the contact entries in `reef.csv` and `oak.json`, which must not change. Two entries
match if `plume` is the same, case included, and not empty. Of two that match the one with the later
`dune` stays, the other goes. Keep entries without a match too. Save the result as `cider.csv` with
the columns as in `reef.csv` and the entries in any order.
"""

import csv
import io
import json
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from random import Random
from typing import NamedTuple

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.contacts import CONTACT_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall


class Contact(NamedTuple):
    """A row of a book. Mail, phone and town may be empty; `date` is YYYY-MM-DD."""

    last: str
    first: str
    mail: str
    phone: str
    town: str
    date: str


@dataclass(frozen=True)
class Books:
    """Two books. In each one mails (whatever their case) and phones (by digits) are unique."""

    first: str
    second: str
    output: str
    columns: Contact
    """The names of the first file's columns; the second one's begin with a capital."""
    first_rows: tuple[Contact, ...]
    second_rows: tuple[Contact, ...]
    thing: str
    """What a row is, in the singular."""


class _Kind(NamedTuple):
    """What a person's two entries are like."""

    same: str
    """How they can be matched: `mail`, `phone`, by `capitals` left aside, or by `all`."""
    gap: str
    """The field that is empty, and below where: `first`, `second`, `both` or `none`."""
    lacking: str
    newer: str


_PAIRS = (
    _Kind("all", "town", "both", "second"),
    _Kind("all", "town", "first", "first"),
    _Kind("all", "town", "first", "second"),
    _Kind("all", "town", "second", "first"),
    _Kind("all", "town", "none", "second"),
    _Kind("all", "town", "none", "first"),
    _Kind("mail", "phone", "first", "first"),
    _Kind("mail", "phone", "first", "second"),
    _Kind("phone", "mail", "first", "first"),
    _Kind("phone", "mail", "first", "second"),
    _Kind("capitals", "phone", "second", "first"),
    _Kind("capitals", "phone", "second", "second"),
)
"""Who is in both books: with these each rule decides something, whichever others there are."""
_ALONE = (_Kind("all", "town", "both", "first"), _Kind("all", "town", "none", "first")) * 2
"""Who is in one book only, for each of the two."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Books:
    """Draw twelve people who are in both books, and four more in each."""
    words = lexicon.words(rng, 25)
    kinds = (*_PAIRS, *_ALONE, *_ALONE)
    names = [(last, first) for last in words[9:14] for first in words[14:19]]
    people = [
        _entries(name, number, kind, words[19:], rng)
        for number, (name, kind) in enumerate(
            zip(rng.sample(names, len(kinds)), kinds, strict=True), start=211
        )
    ]
    first_rows = [first for first, _ in people[:-4]]
    second_rows = [second for _, second in (*people[:-8], *people[-4:])]
    return Books(
        first=f"{words[0]}.csv",
        second=f"{words[1]}.json",
        output=f"{words[2]}.csv",
        columns=Contact(*words[3:9]),
        first_rows=tuple(rng.sample(first_rows, len(first_rows))),
        second_rows=tuple(rng.sample(second_rows, len(second_rows))),
        thing=lexicon.thing or "contact",
    )


def _entries(
    name: tuple[str, str], area: int, kind: _Kind, words: list[str], rng: Random
) -> tuple[Contact, Contact]:
    """Draw a person's entry in each book; the words are four towns and two domains."""
    towns = rng.sample(words[:4], 2)
    days = sorted(rng.sample(range(739_000, 739_400), 2), reverse=kind.newer == "first")
    dates = [date.fromordinal(day).isoformat() for day in days]
    mail, line = f"{name[1]}.{name[0]}@{words[4]}.example", rng.randrange(2000, 9000)
    mails = {"capitals": mail.title(), "phone": mail.replace(words[4], words[5])}
    again = line if kind.same in ("all", "phone") else line + 1
    first = Contact(*name, mail, f"({area}) 555-{line}", towns[0], dates[0])
    second = Contact(*name, mails.get(kind.same, mail), f"{area}.555.{again}", towns[1], dates[1])
    gap = {kind.gap: ""}
    return (
        first._replace(**gap) if kind.lacking in ("first", "both") else first,
        second._replace(**gap) if kind.lacking in ("second", "both") else second,
    )


def inputs(case: Books) -> tuple[File, ...]:
    """Return the CSV file, and the JSON file, whose columns come in the opposite order."""
    names = [name.capitalize() for name in case.columns[::-1]]
    rows = [
        dict(zip(names, [cell or None for cell in row[::-1]], strict=True))
        for row in case.second_rows
    ]
    return (
        File(path=case.first, content=_csv(case.columns, case.first_rows)),
        File(path=case.second, content=json.dumps(rows, indent=1) + "\n"),
    )


def _csv(columns: Contact, rows: tuple[Contact, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


_SENTENCES = {
    "drop-before": (
        "Ignore entries whose {town} is empty, as if they were not in the files.",
        "First of all drop entries with an empty {town}, as if they had never been there.",
    ),
    "any-case": (
        "Two entries match if {mail} is the same, whatever its case, and not empty.",
        "Entries with the same {mail}, capitals or not, match; empty ones never do.",
    ),
    "by-phone": (
        "Two entries match if {phone}, reduced to its digits, is the same and not empty.",
        "Entries with the same {phone}, comparing digits only, match; empty ones never do.",
    ),
    "newer-wins": (
        "Of two that match the one with the later {date} stays, the other goes.",
        "If two match keep the one with the later {date} and drop the other.",
    ),
    "older-wins": (
        "Of two that match the one with the earlier {date} stays, the other goes.",
        "If two match keep the one with the earlier {date} and drop the other.",
    ),
    "fill-gaps": (
        "What is empty in the one that you keep gets the value of the one that you drop.",
        "Fill what is empty in the one that you keep from the one that you drop.",
    ),
    "only-in-both": (
        "Leave out entries without a match.",
        "Entries without a match do not go into the result.",
    ),
    "drop-after": (
        "After all that leave out entries whose {town} is empty.",
        "From what you then have leave out entries with an empty {town}.",
    ),
    "by-last-name": (
        "Sort by {last}, then {first}; of equal ones the one from {book} comes first.",
        "Order the result by {last}, equal ones by {first}, then those from {book} first.",
    ),
}
_PLAIN = {
    ("any-case", "by-phone"): "Two entries match if {mail} is the same, case included, and not "
    "empty.",
    ("newer-wins", "older-wins"): "Of two that match the one from {book} stays, the other goes.",
    ("only-in-both",): "Keep entries without a match too.",
}
"""What holds where none of some rules does: it is said in the place of the first of them."""


def goal(case: Books, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the files, what matches, which one stays, what is left out, and the output."""
    literals = {name: f"`{getattr(case.columns, name)}`" for name in Contact._fields}
    literals["book"] = f"`{case.first}`"
    said = say(_SENTENCES, rules - {"by-last-name"}, rng, ("rows",), **literals)
    said |= say(_SENTENCES, rules & {"by-last-name"}, rng, ("order",), **literals)
    said |= {
        instead[0]: Requirement(sentence=sentence.format(**literals), checks=("rows",))
        for instead, sentence in _PLAIN.items()
        if not rules.intersection(instead)
    }
    opening = rng.choice(("Merge the {} entries in", "Make one list of the {} entries in"))
    order = "" if "by-last-name" in rules else " and the entries in any order"
    return (
        Requirement(
            sentence=f"{opening.format(case.thing)} `{case.first}` and `{case.second}`, which "
            "must not change.",
            checks=("input-unchanged",),
        ),
        Requirement(
            sentence="Both have the same columns, but for the case of their names; null is empty."
        ),
        *(said[rule] for rule in _SENTENCES if rule in said),
        Requirement(
            sentence=f"Save the result as `{case.output}` with the columns as in `{case.first}`"
            f"{order}.",
            checks=("exists", "columns", "rows"),
        ),
    )


def reference(case: Books, rules: Rules) -> Script:
    """Read both books, match, choose, fill, leave out, unite, sort, write."""
    names = case.columns
    column = names.phone if "by-phone" in rules else names.mail
    compare = {"any-case": "text-in-any-case", "by-phone": "digits"}
    match = next((compare[rule] for rule in compare if rule in rules), "text")
    steps = (
        ("drop-before", _call("drop-without", column=names.town)),
        ("", _call("match-contacts", column=column, compare=match)),
        ("newer-wins", _call("prefer", column=names.date, date="latest")),
        ("older-wins", _call("prefer", column=names.date, date="earliest")),
        ("fill-gaps", _call("fill-gaps")),
        ("only-in-both", _call("keep-contacts", which="matched")),
        ("only-in-one", _call("keep-contacts", which="unmatched")),
        ("", _call("unite")),
        ("drop-after", _call("drop-without", column=names.town)),
        ("by-last-name", _call("sort-contacts", column=names.last, then=names.first)),
        ("by-first-name", _call("sort-contacts", column=names.first, then=names.last)),
    )
    return (
        _call("read-contacts", file=case.first),
        _call("add-contacts", file=case.second),
        *(call for rule, call in steps if not rule or rule in rules),
        _call("write-contacts", file=case.output),
    )


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def alternative(case: Books, rules: Rules) -> Script:
    """Solve it by a program of its own, one person at a time."""
    arguments = {
        "books": [case.first, case.second],
        "output": case.output,
        "rules": sorted(rules),
        "columns": case.columns._asdict(),
    }
    return by_python("contacts", arguments)


def target(case: Books, rules: Rules) -> tuple[File, ...]:
    """Join the second book to the first without the tools."""
    books = [
        [row for row in rows if row.town or "drop-before" not in rules]
        for rows in (case.first_rows, case.second_rows)
    ]
    partners = {_key(row, rules): row for row in books[1] if _key(row, rules)}
    pairs = [(row, partners.pop(_key(row, rules), None)) for row in books[0]]
    pairs += [(row, None) for row in books[1] if row in partners.values() or not _key(row, rules)]
    if "only-in-both" in rules:
        pairs = [pair for pair in pairs if pair[1]]
    if "only-in-one" in rules:
        pairs = [pair for pair in pairs if not pair[1]]
    rows = [_united(row, other, rules) if other else row for row, other in pairs]
    if "drop-after" in rules:
        rows = [row for row in rows if row.town]
    for rule, names in (("by-last-name", ("last", "first")), ("by-first-name", ("first", "last"))):
        if rule in rules:
            rows.sort(key=attrgetter(*names))
    return (File(path=case.output, content=_csv(case.columns, tuple(rows))),)


def _key(row: Contact, rules: Rules) -> str:
    if "by-phone" in rules:
        return row.phone.translate(str.maketrans("", "", "()-. "))
    return row.mail.lower() if "any-case" in rules else row.mail


def _united(row: Contact, other: Contact, rules: Rules) -> Contact:
    newer = other.date > row.date
    swap = ("newer-wins" in rules and newer) or ("older-wins" in rules and not newer)
    stays, goes = (other, row) if swap else (row, other)
    if "fill-gaps" not in rules:
        return stays
    return Contact(*(mine or theirs for mine, theirs in zip(stays, goes, strict=True)))


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if "by-last-name" in rules else base


FAMILY = Family(
    name="contacts",
    tools=pick(CONTACT_TOOLS, *(tool.name for tool in CONTACT_TOOLS)),
    rules={
        "drop-before": Axis.SCOPE,
        "any-case": Axis.JOIN,
        "by-phone": Axis.JOIN,
        "newer-wins": Axis.PRIORITY,
        "older-wins": Axis.PRIORITY,
        "fill-gaps": Axis.MISSING,
        "only-in-both": Axis.JOIN,
        "drop-after": Axis.SCOPE,
        "by-last-name": Axis.ORDER,
    },
    neighbours={
        "drop-before": "drop-after",
        "drop-after": "drop-before",
        "newer-wins": "older-wins",
        "older-wins": "newer-wins",
        "only-in-both": "only-in-one",
        "by-last-name": "by-first-name",
    },
    clashes=frozenset({frozenset({"any-case", "by-phone"})}),
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.output,),
    protected=lambda case: (case.first, case.second),
    checks=checks,
)
