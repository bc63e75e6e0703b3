"""Counts log lines in one pass: `python3 logs.py JSON`."""

import json
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])
message, minute, level, service, code = given["fields"]
chosen = {}
with open(given["source"]) as stream:
    for number, line in enumerate(stream):
        found = dict(part.split("=", 1) for part in line.split())
        key = found[message] if {"repeats-first", "repeats-last"} & rules else number
        if key not in chosen or "repeats-last" in rules:
            chosen[key] = found
counts = {}
for found in chosen.values():
    if "with-code" in rules and code not in found:
        continue
    if "only-level" in rules and found[level] != given["level"]:
        continue
    if "not-service" in rules and found[service] == given["service"]:
        continue
    if "since" in rules and int(found[minute]) < given["minute"]:
        continue
    counts[found[service]] = counts.get(found[service], 0) + 1
ranked = sorted(counts.items())
if "busiest-first" in rules:
    ranked.sort(key=lambda item: -item[1])
with open(given["output"], "w") as stream:
    json.dump([{service: name, "count": count} for name, count in ranked], stream, indent=4)
