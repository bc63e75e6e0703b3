"""Merges two address books, person by person: `python3 contacts.py JSON`."""

import csv
import json
import re
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])
name = given["columns"]
with open(given["books"][0], newline="") as stream:
    reader = csv.DictReader(stream)
    entries = [(0, row) for row in reader]
with open(given["books"][1]) as stream:
    for record in json.load(stream):
        entries.append((1, {key.lower(): value or "" for key, value in record.items()}))
if "drop-before" in rules:
    entries = [entry for entry in entries if entry[1][name["town"]]]


def identity(row):
    if "by-phone" in rules:
        return re.sub(r"\D", "", row[name["phone"]])
    mail = row[name["mail"]]
    return mail.upper() if "any-case" in rules else mail


merged = []
while entries:
    book, row = entries.pop(0)
    same = [at for at, (_, other) in enumerate(entries) if identity(row) == identity(other) != ""]
    if not same:
        if "only-in-both" not in rules:
            merged.append((book, row))
        continue
    both = [(book, row), entries.pop(same[0])]
    if {"newer-wins", "older-wins"} & rules:
        both.sort(key=lambda entry: entry[1][name["date"]])
        if "newer-wins" in rules:
            both.reverse()
    (book, stays), (_, goes) = both
    if "fill-gaps" in rules:
        stays = {key: stays[key] if stays[key] else goes[key] for key in stays}
    merged.append((book, stays))
if "drop-after" in rules:
    merged = [entry for entry in merged if entry[1][name["town"]]]
if "by-last-name" in rules:
    merged.sort(key=lambda entry: (entry[1][name["last"]], entry[1][name["first"]], entry[0]))
else:
    merged.reverse()
with open(given["output"], "w", newline="") as stream:
    writer = csv.DictWriter(stream, reader.fieldnames, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(row for _, row in merged)
