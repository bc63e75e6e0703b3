"""Writes the repaired script anew: `python3 script.py JSON`."""

import json
import sys

given = json.loads(sys.argv[1])
PROGRAM = """\
import csv, sys
from fractions import Fraction
from math import floor

given = {given!r}

def rounded(value):
    size = abs(value)
    whole, rest = floor(size), size - floor(size)
    if given["rounding"] == "ROUND_HALF_UP" and rest >= Fraction(1, 2):
        whole += 1
    if given["rounding"] == "ROUND_HALF_EVEN":
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    return whole if value > 0 else -whole

def counts(value):
    if given["compare"] == "<":
        return value < given["limit"]
    return value > given["limit"] or (given["compare"] == ">=" and value == given["limit"])

with open(sys.argv[1], encoding="utf-8") as stream:
    rows = list(csv.DictReader(stream))
for row in rows[int(given["header"]) - 1:]:
    group, amount, discount = row.values()
    row["name"] = getattr(group, given["blanks"])(" ")
    row["value"] = Fraction(amount or given["empty"]) - Fraction(discount)
    if given["arguments"].startswith("DISCOUNT"):
        row["value"] *= -1
kept = [row for row in rows if "value" in row and counts(row["value"])]
totals = {{}}
for row in kept:
    count, total = totals.get(row["name"], (0, 0))
    totals[row["name"]] = count + 1, total + rounded(row["value"])
order = 1 if given["order"] == "False" else -1
for name, (count, total) in sorted(totals.items(), key=lambda item: (order * item[1][1], item[0])):
    print(name, count, total)
print("all", len(kept), sum(total for _, total in totals.values()))
"""
with open(given["script"], "w") as stream:
    stream.write(PROGRAM.format(given=given))
