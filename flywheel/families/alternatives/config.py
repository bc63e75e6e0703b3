"""Migrates settings with configparser: `python3 config.py JSON`."""

import configparser
import json
import sys

given = json.loads(sys.argv[1])
rules = set(given["rules"])


def settings(path):
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(path)
    return {
        f"{part}.{key}": parser[part][key] for part in parser.sections() for key in parser[part]
    }


base = settings(given["base"])
first = next(iter(base))
result = dict(base)
if {"override-wins", "base-wins"} & rules:
    for key, value in settings(given["override"]).items():
        if key not in result or "override-wins" in rules:
            result[key] = value
if "to-milliseconds" in rules:
    result[given["seconds"]] = str(int(result[given["seconds"]]) * 1000)
if "rename-key" in rules:
    old, new = given["renamed"]
    result = {(new if key == old else key): value for key, value in result.items()}
if "drop-key" in rules:
    result.pop(first)
if "default-if-missing" in rules:
    missing, value = given["default"]
    result.setdefault(missing, value)
with open(given["output"], "w") as stream:
    if "as-env" in rules:
        for key, value in reversed(result.items()):
            print(f"{key.replace('.', '_').upper()}={value}", file=stream)
    else:
        json.dump(result, stream, indent=2)
