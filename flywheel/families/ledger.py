"""SQLite database → migrated database.

Goal: Migrate the SQLite database `reef.db`, which must not change. Of rows of `oak` with the same
`plume` keep the one with the highest rowid. All else stays: tables, columns, their types, keys and
rows, in any order. Save it as `atlas.db`, an SQLite file.
"""

from dataclasses import replace
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.ledger_database import Entry, Ledger, database_file
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.database import DATABASE_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Ledger:
    """Draw 18 to 26 entries with repeated vouchers, unknown accounts and halves of a cent."""
    words = lexicon.words(rng, 22)
    accounts, vouchers = words[12:18], [f"{words[5][:2]}{n}" for n in rng.sample(range(99), 14)]
    codes = rng.sample(range(100, 999), 26)
    return Ledger(
        source=f"{words[0]}.db",
        output=f"{words[1]}.db",
        entries=words[2],
        accounts=words[3],
        columns=(words[4], words[5], words[6], words[7], words[8]),
        holder=words[9],
        rows=tuple(
            Entry(
                code=f"{words[4][:2]}{code}",
                voucher=rng.choice(vouchers) if number > 8 else vouchers[number],
                account=rng.choice(accounts),
                day=(rng.randrange(1, 13), rng.randrange(1, 13)),
                amount=10 * rng.randrange(-900, 9000) + rng.choice([0, 0, 5, 5, 3]),
            )
            for number, code in enumerate(codes[: rng.randrange(18, 27)])
        ),
        known=tuple(zip(accounts[:4], words[18:22], strict=True)),
        added=(words[10], words[11]),
    )


def inputs(case: Ledger) -> tuple[File, ...]:
    """Return the database."""
    return (database_file(case, case.source, case.rows, frozenset()),)


_SENTENCES = {
    "keep-first": (
        "Of rows of {entries} with the same {voucher} keep the one with the lowest rowid.",
        "Where rows of {entries} share a {voucher} only the one with the lowest rowid stays.",
    ),
    "keep-last": (
        "Of rows of {entries} with the same {voucher} keep the one with the highest rowid.",
        "Where rows of {entries} share a {voucher} only the one with the highest rowid stays.",
    ),
    "drop-orphans": (
        "Delete the rows of {entries} whose {account} no row of {accounts} has.",
        "Rows of {entries} with an {account} that is not in {accounts} are to go.",
    ),
    "attach-orphans": (
        "In rows of {entries} whose {account} no row of {accounts} has, set it to {default}.",
        "Where {entries} has an {account} that is not in {accounts}, make it {default}.",
    ),
    "half-even": (
        "In {entries} change {amount} from decimal text to INTEGER hundredths, as 12.34 to 1234, "
        "halves to the even one.",
        "In {entries} the decimal texts of {amount} become INTEGER hundredths, as 12.34 becomes "
        "1234, rounded with ties to even.",
    ),
    "half-up": (
        "In {entries} change {amount} from decimal text to INTEGER hundredths, as 12.34 to 1234, "
        "halves away from zero.",
        "In {entries} the decimal texts of {amount} become INTEGER hundredths, as 12.34 becomes "
        "1234, rounded with ties away from zero.",
    ),
    "day-first": (
        "In {entries} write the dates in {day}, now DD-MM-YYYY, as YYYY-MM-DD.",
        "In {entries} the dates of {day} go from day-month-year to ISO form, YYYY-MM-DD.",
    ),
    "add-column": (
        "Give {entries} a column {added}: TEXT, not null, default {value}, which all rows have.",
        "Add to {entries} the TEXT column {added}, not null with default {value}, for all rows.",
    ),
    "unique-index": (
        "In {entries} make the values of {code} unique by an index.",
        "Let a unique index of {entries} keep the values of {code} apart.",
    ),
}
_CHECKS = {
    "half-even": ("columns", "rows"),
    "half-up": ("columns", "rows"),
    "add-column": ("columns", "rows"),
    "unique-index": ("keys",),
}
"""What fails where a rule is not followed; the rows, where it is not listed."""


def goal(case: Ledger, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the source, each rule in the order of application, what stays, and the output."""
    names = zip(("code", "voucher", "account", "day", "amount"), case.columns, strict=True)
    words = dict(names) | {
        "entries": case.entries,
        "accounts": case.accounts,
        "default": case.known[0][0],
        "added": case.added[0],
        "value": case.added[1],
    }
    literals = {name: f"`{word}`" for name, word in words.items()}
    said = say(_SENTENCES, rules, rng, ("rows",), **literals)
    opening = rng.choice(("Migrate the SQLite database", "Make a migrated copy of the database"))
    return (
        Requirement(
            sentence=f"{opening} `{case.source}`, which must not change.",
            checks=("input-unchanged",),
        ),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *(
            sentence.model_copy(update={"checks": _CHECKS.get(rule, ("rows",))})
            for rule, sentence in said.items()
        ),
        Requirement(
            sentence="All else stays: tables, columns, their types, keys and rows, in any order.",
            checks=("tables", "columns", "keys", "rows"),
        ),
        Requirement(sentence=f"Save it as `{case.output}`, an SQLite file.", checks=("exists",)),
    )


def reference(case: Ledger, rules: Rules) -> Script:
    """Open, apply the rules in order, save."""
    code, voucher, account, day, amount = case.columns
    on_account = {"column": account, "parent": case.accounts}
    name, value = case.added
    steps = {
        "keep-first": ("drop-duplicates", {"column": voucher, "keep": "first"}),
        "keep-last": ("drop-duplicates", {"column": voucher, "keep": "last"}),
        "drop-orphans": ("drop-orphans", on_account),
        "attach-orphans": ("attach-orphans", on_account | {"value": case.known[0][0]}),
        "half-even": ("to-cents", {"column": amount, "ties": "half-even"}),
        "half-up": ("to-cents", {"column": amount, "ties": "half-up"}),
        "day-first": ("to-iso-dates", {"column": day, "first": "day"}),
        "month-first": ("to-iso-dates", {"column": day, "first": "month"}),
        "add-column": ("add-column", {"column": name, "default": value}),
        "unique-index": ("add-unique-index", {"column": code}),
    }
    return (
        ToolCall(tool="open-database", arguments={"file": case.source}),
        *(
            ToolCall(tool=tool, arguments={"table": case.entries} | arguments)
            for rule, (tool, arguments) in steps.items()
            if rule in rules
        ),
        ToolCall(tool="save-database", arguments={"file": case.output}),
    )


def alternative(case: Ledger, rules: Rules) -> Script:
    """Solve it by SQL alone, into tables made anew."""
    arguments = {
        "source": case.source,
        "output": case.output,
        "rules": sorted(rules),
        "entries": case.entries,
        "accounts": case.accounts,
        "columns": case.columns,
        "default": case.known[0][0],
        "added": case.added,
    }
    return by_python("ledger", arguments)


def target(case: Ledger, rules: Rules) -> tuple[File, ...]:
    """Work the entries out in plain Python and write them to a new database."""
    entries = list(case.rows)
    if "keep-first" in rules:
        entries = list({entry.voucher: entry for entry in reversed(entries)}.values())[::-1]
    if "keep-last" in rules:
        entries = list({entry.voucher: entry for entry in entries}.values())
    known = {account for account, _ in case.known}
    if "drop-orphans" in rules:
        entries = [entry for entry in entries if entry.account in known]
    if "attach-orphans" in rules:
        default = case.known[0][0]
        entries = [
            entry if entry.account in known else replace(entry, account=default)
            for entry in entries
        ]
    return (database_file(case, case.output, entries, rules),)


FAMILY = Family(
    name="ledger",
    tools=pick(DATABASE_TOOLS, *(tool.name for tool in DATABASE_TOOLS)),
    rules={
        "keep-first": Axis.DUPLICATES,
        "keep-last": Axis.DUPLICATES,
        "drop-orphans": Axis.JOIN,
        "attach-orphans": Axis.JOIN,
        "half-even": Axis.ROUNDING,
        "half-up": Axis.ROUNDING,
        "day-first": Axis.DATES,
        "add-column": Axis.OUTPUT,
        "unique-index": Axis.OUTPUT,
    },
    neighbours={
        "keep-first": "keep-last",
        "keep-last": "keep-first",
        "drop-orphans": "attach-orphans",
        "attach-orphans": "drop-orphans",
        "half-even": "half-up",
        "half-up": "half-even",
        "day-first": "month-first",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.output,),
    protected=lambda case: (case.source,),
    checks=lambda rules: ("input-unchanged", "exists", "tables", "columns", "keys", "rows"),
    grader="database",
)
