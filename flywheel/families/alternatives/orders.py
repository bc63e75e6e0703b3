"""Summarises orders in one pass: `python3 orders.py JSON`."""

import csv
import json
import sys
from fractions import Fraction

given = json.loads(sys.argv[1])
rules = set(given["rules"])
with open(given["source"], newline="") as stream:
    table = csv.reader(stream)
    header = next(table)
    entries = list(table)
if "keep-first" in rules:
    entries.reverse()
if {"keep-first", "keep-last"} & rules:
    entries = list({entry[0]: entry for entry in entries}.values())
groups = {}
for _, group, status, quantity, amount in entries:
    if "skip-missing" in rules and not amount:
        continue
    if "only-status" in rules and status != given["status"]:
        continue
    if "at-least" in rules and int(quantity) < given["quantity"]:
        continue
    value = Fraction(amount or 0)
    if "half-even" in rules:
        below, rest = divmod(value, 1)
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
        value = below + up
    if "half-up" in rules:
        value = (2 * value + 1) // 2
    count, total = groups.get(group, (0, 0))
    groups[group] = (count + 1, total + value)
ranked = sorted(groups.items())
if "largest-first" in rules:
    ranked.sort(key=lambda item: -item[1][1])
with open(given["output"], "w", newline="") as stream:
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerow([header[1], "count", "total"])
    writer.writerows([name, count, f"{float(total):.2f}"] for name, (count, total) in ranked)
