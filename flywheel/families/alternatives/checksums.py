"""Repairs a manifest: `python3 checksums.py JSON`."""

import hashlib
import json
import os
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])
with open(given["manifest"], "rb") as stream:
    raw = stream.read()
entries = []
for line in raw.decode().split("\n")[:-1]:
    digest, size, path = line.rstrip("\r").split(" ")
    if "absolute-path" in rules and path.startswith(given["prefix"]):
        path = path[len(given["prefix"]) :]
    if "upper-hash" in rules:
        digest = digest.lower()
    entries.append((path, digest, size))
if "keep-first" in rules:
    entries.reverse()
if {"keep-first", "keep-last"} & rules:
    entries = [(path, *rest) for path, rest in {e[0]: e[1:] for e in entries}.items()]
on_disk = {}
for folder, _, names in os.walk(given["folder"]):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as stream:
            data = stream.read()
        on_disk[path] = (path, hashlib.sha256(data).hexdigest(), f"{len(data)}")
if "absent-file" in rules:
    entries = [entry for entry in entries if entry[0] in on_disk]
if "missing-line" in rules:
    entries += [on_disk[path] for path in on_disk.keys() - {entry[0] for entry in entries}]
if "stale-hash" in rules:
    for at, (path, digest, size) in enumerate(entries):
        right = on_disk.get(path)
        if right and (digest.lower(), size) != right[1:]:
            entries[at] = right
entries.sort(key=lambda entry: entry[0])
end = "\r\n" if b"\r" in raw and "crlf" not in rules else "\n"
with open(given["manifest"], "w", newline="") as stream:
    stream.writelines(f"{digest} {size} {path}{end}" for path, digest, size in entries)
