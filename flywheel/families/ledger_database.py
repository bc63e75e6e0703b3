"""The databases of the family `ledger`: what is in one, and its bytes."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from flywheel.families import Rules
from schemas.file import File

PAGE_BYTES = 1024
SQLITE_VERSION = 3_040_000
"""Written into every file's header, so that its bytes don't depend on who made it."""
_VERSION_FIELD = slice(96, 100)
"""Of the header: the version that wrote the file last (https://sqlite.org/fileformat2.html)."""
_CENTS = frozenset({"half-even", "half-up"})


@dataclass(frozen=True)
class Entry:
    """One row of the entries."""

    code: str
    voucher: str
    account: str
    day: tuple[int, int]
    """Day and month of 2026, both at most 12."""
    amount: int
    """In thousandths."""


@dataclass(frozen=True)
class Ledger:
    """A database of entries and the accounts that they are on."""

    source: str
    output: str
    entries: str
    accounts: str
    """Names of the two tables."""
    columns: tuple[str, str, str, str, str]
    """Names of: code, voucher, account, day, amount."""
    holder: str
    """Name of the accounts' other column."""
    rows: tuple[Entry, ...]
    known: tuple[tuple[str, str], ...]
    """Accounts with their holders."""
    added: tuple[str, str]
    """A new column and its default."""


def database_file(case: Ledger, path: str, entries: Sequence[Entry], rules: Rules) -> File:
    """Write entries as the rules want them to a database file: same arguments, same bytes."""
    code, _, account, _, amount = case.columns
    columns = [f'"{name}" TEXT' for name in case.columns[:4]]
    columns.append(f'"{amount}" {"INTEGER" if rules & _CENTS else "TEXT"}')
    if "add-column" in rules:
        columns.append(f"\"{case.added[0]}\" TEXT NOT NULL DEFAULT '{case.added[1]}'")
    keys = f'"{account}" TEXT PRIMARY KEY, "{case.holder}" TEXT'
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        database.execute(f'CREATE TABLE "{case.accounts}" ({keys})')
        database.executemany(f'INSERT INTO "{case.accounts}" VALUES (?, ?)', case.known)
        database.execute(f'CREATE TABLE "{case.entries}" ({", ".join(columns)})')
        database.executemany(
            f'INSERT INTO "{case.entries}" VALUES ({", ".join("?" * len(columns))})',
            [_row(case, entry, rules) for entry in entries],
        )
        if "unique-index" in rules:
            database.execute(f'CREATE UNIQUE INDEX "only" ON "{case.entries}" ("{code}")')
        database.commit()
        data = bytearray(database.serialize())
    data[_VERSION_FIELD] = SQLITE_VERSION.to_bytes(4, "big")
    return File.of(path, bytes(data))


def _row(case: Ledger, entry: Entry, rules: Rules) -> tuple[str | int, ...]:
    """Return the values of one entry."""
    day, month = entry.day
    date = f"{day:02d}-{month:02d}-2026"
    if "day-first" in rules:
        date = f"2026-{month:02d}-{day:02d}"
    if "month-first" in rules:
        date = f"2026-{day:02d}-{month:02d}"
    amount = _cents(entry.amount, rules) if rules & _CENTS else _decimal(entry.amount)
    added = case.added[1:] if "add-column" in rules else ()
    return (entry.code, entry.voucher, entry.account, date, amount, *added)


def _cents(thousandths: int, rules: Rules) -> int:
    """Round thousandths to hundredths; halves to the even one, or away from zero."""
    whole, rest = divmod(abs(thousandths), 10)
    up = rest > 5 or (rest == 5 and ("half-up" in rules or whole % 2 == 1))
    return (whole + up) * (-1 if thousandths < 0 else 1)


def _decimal(thousandths: int) -> str:
    """Write an amount with two decimals, or three where it has them."""
    sign, size = "-" * (thousandths < 0), abs(thousandths)
    text = f"{sign}{size // 1000}.{size % 1000:03d}"
    return text.removesuffix("0")
