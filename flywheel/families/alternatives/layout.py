"""Sorts a messy folder into a new one: `python3 layout.py JSON`."""

import json
import os
import shutil
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])
found = []
for folder, _, names in os.walk(given["source"]):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        marks = [number for number, line in enumerate(text.split("\n")) if line == given["mark"]]
        if "skip-hidden" in rules and name[0] == ".":
            continue
        if "first-line-says" in rules and 0 not in marks:
            continue
        if "any-line-says" in rules and not marks:
            continue
        found.append((path, name, text))
found.sort()
if "keep-first" in rules:
    found = list({text: (path, name, text) for path, name, text in reversed(found)}.values())
if "keep-shortest" in rules:
    found.sort(key=lambda file: len(file[1]))
    found = [f for at, f in enumerate(found) if f[2] not in [g[2] for g in found[:at]]]
used = {}
for path, name, _ in sorted(found):
    if "lower-case" in rules:
        name = name.lower()
    used[name] = used.get(name, 0) + 1
    if used[name] > 1 and "number-later" not in rules:
        continue
    base, extension = os.path.splitext(name)
    group = extension[1:]
    if "by-word" in rules:
        group = base[: base.index("-")]
    if "by-month" in rules:
        group = base[-10:-3]
    final = name if used[name] == 1 else f"{base}-{used[name]}{extension}"
    os.makedirs(os.path.join(given["output"], group), exist_ok=True)
    shutil.copyfile(path, os.path.join(given["output"], group, final))
