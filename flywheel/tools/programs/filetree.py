"""Tools on one folder and all below it. Runs inside a sandbox; keeps no state but the files.

Literals are printed in backticks, as goals print them. Links are left alone.
"""

import re
import sys
from pathlib import Path

MONTH = re.compile(r"\d{4}-\d{2}(?=-\d{2})")


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def tree(folder):
    """Return the paths, relative to a folder, of the files below it, by character code."""
    root = Path(folder)
    if root.is_symlink() or not root.is_dir():
        raise Refused(f"no folder `{folder}`")
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return sorted(path.relative_to(root).as_posix() for path in files)


def content(folder, path):
    """Return a file's bytes, or refuse."""
    try:
        return Path(folder, path).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read `{folder}/{path}`: {error.strerror}") from None


def put(folder, path, data):
    """Write a file and the folders above it, or refuse."""
    target = Path(folder, path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    except OSError as error:
        raise Refused(f"cannot write `{folder}/{path}`: {error.strerror}") from None


def move(folder, path, to):
    """Move a file within a folder where nothing stands in its way, or refuse."""
    target = Path(folder, to)
    if target.exists():
        raise Refused(f"there is a `{folder}/{to}` already")
    target.parent.mkdir(parents=True, exist_ok=True)
    Path(folder, path).rename(target)


def counted(folder):
    """Say how many files there are."""
    return f"{len(tree(folder))} files"


def copy_tree(folder, to):
    """Copy all files of a folder to a new one."""
    paths = tree(folder)
    if Path(to).exists():
        raise Refused(f"there is a `{to}` already")
    for path in paths:
        put(to, path, content(folder, path))
    return counted(to)


def narrow(folder, test):
    """Remove the files that fail a test of their path."""
    for path in tree(folder):
        if not test(path):
            Path(folder, path).unlink()
    return counted(folder)


def drop_hidden(folder):
    """Remove the files whose name begins with a dot."""
    return narrow(folder, lambda path: not Path(path).name.startswith("."))


def keep_marked(folder, line, where):
    """Remove the files whose first line is not `line`, or that have no such line."""

    def is_marked(path):
        lines = content(folder, path).decode("utf-8", "replace").splitlines()
        return line in (lines if where == "any" else lines[:1])

    return narrow(folder, is_marked)


def drop_copies(folder, keep):
    """Keep of files with the same content the shortest name or the first path."""
    groups = {}
    for path in tree(folder):
        groups.setdefault(content(folder, path), []).append(path)
    kept = {
        min(paths, key=lambda path: len(Path(path).name)) if keep == "shortest" else paths[0]
        for paths in groups.values()
    }
    return narrow(folder, lambda path: path in kept)


def lower_names(folder):
    """Change capitals in file names to small letters."""
    for path in tree(folder):
        lowered = Path(path).with_name(Path(path).name.lower()).as_posix()
        if lowered != path:
            move(folder, path, lowered)
    return counted(folder)


def numbered(name, taken):
    """Return a name that is not taken: with -2, -3 … before its extension."""
    path, number = Path(name), 2
    while f"{path.stem}-{number}{path.suffix}" in taken:
        number += 1
    return f"{path.stem}-{number}{path.suffix}"


def flatten(folder, taken):
    """Move all files directly into the folder; later ones of a name are dropped, or numbered."""
    files = [(Path(path).name, content(folder, path)) for path in tree(folder)]
    narrow(folder, lambda path: False)
    kept = {}
    for name, data in files:
        if name not in kept:
            kept[name] = data
        elif taken == "number":
            kept[numbered(name, kept)] = data
    below = [path for path in Path(folder).rglob("*") if path.is_dir() and not path.is_symlink()]
    for empty in sorted(below, reverse=True):
        empty.rmdir()
    for name, data in kept.items():
        put(folder, name, data)
    return counted(folder)


def group_of(name, by):
    """Return what a file's subfolder is called, or refuse."""
    month = MONTH.search(name)
    word, dash, _ = name.partition("-")
    if by == "extension" and Path(name).suffix:
        return Path(name).suffix[1:]
    if by == "word" and dash:
        return word
    if by == "month" and month:
        return month[0]
    raise Refused(f"`{name}` has no {by}")


def group_files(folder, by):
    """Move the files directly in a folder into subfolders."""
    moves = [(path, f"{group_of(path, by)}/{path}") for path in tree(folder) if "/" not in path]
    for path, to in moves:
        move(folder, path, to)
    groups = sorted({to.split("/")[0] for _, to in moves})
    return f"{len(groups)} subfolders"


COMMANDS = {
    "copy-tree": copy_tree,
    "drop-hidden": drop_hidden,
    "keep-marked": keep_marked,
    "drop-copies": drop_copies,
    "lower-names": lower_names,
    "flatten": flatten,
    "group-files": group_files,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except (Refused, OSError) as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
