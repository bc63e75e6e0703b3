"""Summarises shipments in one pass, told what the user knows: `python3 briefing.py JSON`."""

import csv
import json
import sys
from decimal import Decimal

told = json.loads(sys.argv[1])
rules = set(told["rules"])
with open(told["source"], newline="") as stream:
    header, *entries = csv.reader(stream)
latest = {}
for entry in entries:
    if "last-counts" in rules:
        latest.pop(entry[0], None)
    name = entry[0] if {"last-counts", "first-counts"} & rules else len(latest)
    latest.setdefault(name, entry)
by = 1 + ("other-group" in rules)
counts, totals = {}, {}
for entry in latest.values():
    same = entry[3] == told["status"]
    if ("only-status" in rules and not same) or ("not-status" in rules and same):
        continue
    if "at-least" in rules and int(entry[4]) < told["quantity"]:
        continue
    counts[entry[by]] = counts.get(entry[by], 0) + 1
    totals[entry[by]] = totals.get(entry[by], Decimal(0)) + Decimal(entry[5])
names = sorted(totals)
if "largest-first" in rules:
    names.sort(key=lambda name: -totals[name])
if "smallest-first" in rules:
    names.sort(key=totals.get)
with open(told["output"], "w", newline="") as stream:
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([header[by], "count", "total"])
    writer.writerows([name, counts[name], totals[name]] for name in names)
