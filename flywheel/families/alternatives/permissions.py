"""Gives the files of a tree the modes of a policy: `python3 permissions.py JSON`."""

import json
import os
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])
with open(given["policy"]) as stream:
    policy = [line.split() for line in stream]
listed = set()
if {"except-listed", "only-listed"} & rules:
    with open(given["listing"]) as stream:
        listed = set(stream.read().split())


def new_mode(path, now):
    if ("except-listed" in rules and path in listed) or (
        "only-listed" in rules and path not in listed
    ):
        return now
    fits = [int(mode, 8) for what, mode in policy if path.startswith(what) or path.endswith(what)]
    if "last-line" in rules:
        fits.reverse()
    if len(fits) > 1 and not {"first-line", "last-line"} & rules:
        return now
    if not fits and "rest-private" in rules:
        fits = [0o600]
    if not fits and "rest-shared" in rules:
        fits = [0o644]
    if not fits:
        return now
    mode = fits[0]
    with open(path) as stream:
        if "scripts-run" in rules and stream.read(2) == "#!":
            mode |= (mode >> 2) & 0o111
    if "tighten-only" in rules:
        return mode & now
    return mode | now if "loosen-only" in rules else mode


for folder, _, names in os.walk(given["folder"]):
    for name in names:
        path = os.path.join(folder, name)
        now = os.stat(path).st_mode & 0o777
        os.chmod(path, new_mode(path, now))
