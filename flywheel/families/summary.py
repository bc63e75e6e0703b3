"""The script that the family `script` breaks: its text, and what it prints, without running it.

A site is a place in the script where one token can be wrong; what stands there is a switch of both.
"""

import csv
import io
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

Record = tuple[str, str, str]
"""Group, amount (may be empty), discount."""
Standing = Mapping[str, str]
"""Site → what stands there."""
Names = Mapping[str, str]
"""Names in the template → names in a script."""

SCRIPT = '''\
"""Prints a summary of a CSV file: a line for each group, then one for all."""

import csv
import sys
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal


def read(path):
    with open(path, encoding="utf-8", newline="") as stream:
        RECORDS = list(csv.reader(stream))
    return RECORDS[<header>:]


def NET(AMOUNT, DISCOUNT):
    return AMOUNT - DISCOUNT


def collect(RECORDS):
    TOTALS = {}
    for GROUP, AMOUNT, DISCOUNT in RECORDS:
        GROUP = GROUP.<blanks>()
        AMOUNT = Decimal(AMOUNT or "<empty>")
        DISCOUNT = Decimal(DISCOUNT)
        VALUE = NET(<arguments>)
        if VALUE <compare> LIMIT:
            VALUE = VALUE.to_integral_value(<rounding>)
            TOTALS.setdefault(GROUP, []).append(int(VALUE))
    return TOTALS


def main():
    TOTALS = collect(read(sys.argv[1]))
    for GROUP in sorted(sorted(TOTALS), key=lambda GROUP: sum(TOTALS[GROUP]), reverse=<order>):
        print(GROUP, len(TOTALS[GROUP]), sum(TOTALS[GROUP]))
    VALUES = [VALUE for GROUP in TOTALS for VALUE in TOTALS[GROUP]]
    print("all", len(VALUES), sum(VALUES))


main()
'''
NAMES = ("RECORDS", "NET", "AMOUNT", "DISCOUNT", "TOTALS", "GROUP", "VALUES", "VALUE", "LIMIT")
SITES = {
    "header": ("1", "2"),
    "blanks": ("strip", "lstrip"),
    "empty": ("0", "1"),
    "arguments": ("AMOUNT, DISCOUNT", "DISCOUNT, AMOUNT"),
    "compare": (">=", "<"),
    "rounding": ("ROUND_HALF_EVEN", "ROUND_DOWN"),
    "order": ("True", "False"),
}
"""Site → what stands there in a healthy script, and the bug."""
_ROUNDED: Mapping[str, Callable[[Fraction], int]] = {
    "ROUND_HALF_EVEN": round,
    "ROUND_HALF_UP": lambda value: int(value + Fraction(1 if value > 0 else -1, 2)),
    "ROUND_DOWN": int,
}
_COUNTS = {">=": operator.ge, ">": operator.gt, "<": operator.lt}


def script(names: Names, standing: Standing) -> str:
    """Return the text of a script."""
    text = SCRIPT
    for site, token in standing.items():
        text = text.replace(f"<{site}>", token)
    return _named(text, names)


def line(names: Names, site: str, token: str) -> str:
    """Return the line of a site where `token` stands there, without indentation."""
    (found,) = (line for line in SCRIPT.splitlines() if f"<{site}>" in line)
    return _named(found.strip().replace(f"<{site}>", token), names)


def _named(text: str, names: Names) -> str:
    for name in NAMES:
        text = text.replace(name, names[name])
    return text


def table(names: Names, records: tuple[Record, ...] | None) -> str:
    """Return an input as CSV text; None stands for an empty file."""
    text = io.StringIO()
    if records is not None:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names[name] for name in ("GROUP", "AMOUNT", "DISCOUNT"))
        writer.writerows(records)
    return text.getvalue()


def printed(records: tuple[Record, ...] | None, limit: int, standing: Standing) -> tuple[str, ...]:
    """Return the lines that a script prints for an input: groups with count and total, then all."""
    swapped = standing["arguments"] == SITES["arguments"][1]
    values: dict[str, list[int]] = {}
    for group, amount, discount in (records or ())[int(standing["header"]) - 1 :]:
        name = group.strip() if standing["blanks"] == "strip" else group.lstrip()
        value = Fraction(amount or standing["empty"]) - Fraction(discount)
        value = -value if swapped else value
        if _COUNTS[standing["compare"]](value, limit):
            values.setdefault(name, []).append(_ROUNDED[standing["rounding"]](value))
    sign = -1 if standing["order"] == "True" else 1
    groups = sorted(values, key=lambda name: (sign * sum(values[name]), name))
    lines = [(name, len(values[name]), sum(values[name])) for name in groups]
    every = [value for counted in values.values() for value in counted]
    return tuple(" ".join(map(str, row)) for row in (*lines, ("all", len(every), sum(every))))
