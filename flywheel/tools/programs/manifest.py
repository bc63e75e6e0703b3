"""Tools on one manifest, kept in `.manifest.json` between calls. Runs inside a sandbox.

A manifest's lines hold SHA-256, size and path of a file, with one space between. Every call says
which paths are wrong by then; literals are printed in backticks, as goals print them.
"""

import hashlib
import json
import sys
from pathlib import Path

STATE = ".manifest.json"


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def measured(path):
    """Return hash and size of a file, or None where there is none."""
    file = Path(path)
    if file.is_symlink() or not file.is_file():
        return None
    data = file.read_bytes()
    return [hashlib.sha256(data).hexdigest(), str(len(data))]


def load():
    """Return what was loaded: folder, line end, and lines of hash, size and path."""
    try:
        with Path(STATE).open(encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        raise Refused("no manifest is loaded") from None


def save(state, lines):
    """Keep the lines for the next call, and report on them."""
    state["lines"] = lines
    with Path(STATE).open("w", encoding="utf-8") as stream:
        json.dump(state, stream)
    return report(state["folder"], lines)


def report(folder, lines):
    """Say which lines do not fit their file or have none, and which files have no line."""
    found = []
    for digest, size, path in lines:
        right = measured(path)
        if right is None:
            found.append(f"`{path}` absent")
        elif right != [digest.lower(), size]:
            found.append(f"`{path}` differs")
    listed = {path for _, _, path in lines}
    files = (path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
    found += [f"`{path}` unlisted" for path in sorted(map(str, files)) if path not in listed]
    return "\n".join(dict.fromkeys(found)) or "all paths fit"


def read_manifest(file, folder):
    """Load a manifest."""
    try:
        text = Path(file).read_bytes().decode("utf-8")
    except (OSError, ValueError):
        raise Refused(f"cannot read `{file}`") from None
    if not Path(folder).is_dir():
        raise Refused(f"no folder `{folder}`")
    lines = [line.split(" ", 2) for line in text.splitlines() if line]
    if any(len(line) != 3 for line in lines):
        raise Refused(f"`{file}` has a line that is not hash, size and path")
    return save({"folder": folder, "crlf": "\r\n" in text}, lines)


def cut_prefix(prefix, keep):
    """Shorten the paths that begin with a prefix."""
    state = load()
    shortened = []
    for digest, size, path in state["lines"]:
        rest = path.removeprefix(prefix)
        if rest != path and keep == "name":
            rest = rest.rsplit("/", 1)[-1]
        shortened.append([digest, size, rest])
    return save(state, shortened)


def drop_repeats(keep):
    """Keep the first or last line of each path, where it stands."""
    state = load()
    lines = state["lines"] if keep == "first" else state["lines"][::-1]
    kept = {}
    for line in lines:
        kept.setdefault(line[2], line)
    chosen = list(kept.values())
    return save(state, chosen if keep == "first" else chosen[::-1])


def lower_hashes():
    """Change capitals in hashes to small letters."""
    state = load()
    return save(state, [[digest.lower(), size, path] for digest, size, path in state["lines"]])


def file_of(path):
    """Return hash and size of a file, or refuse."""
    right = measured(path)
    if right is None:
        raise Refused(f"no file `{path}`")
    return right


def add_entry(path):
    """Add a line for a file that has none."""
    state, right = load(), file_of(path)
    if any(line[2] == path for line in state["lines"]):
        raise Refused(f"there is a line of `{path}` already")
    return save(state, [*state["lines"], [*right, path]])


def listed(state, path):
    """Return the lines, or refuse where none has this path."""
    if all(line[2] != path for line in state["lines"]):
        raise Refused(f"no line of `{path}`")
    return state["lines"]


def drop_entry(path):
    """Remove the lines of a path."""
    state = load()
    return save(state, [line for line in listed(state, path) if line[2] != path])


def update_entry(path):
    """Put a file's hash and size on its lines."""
    state, right = load(), file_of(path)
    lines = listed(state, path)
    return save(state, [[*right, path] if line[2] == path else line for line in lines])


def sort_entries():
    """Sort the lines by path; those of one path stay in their order."""
    state = load()
    return save(state, sorted(state["lines"], key=lambda line: line[2]))


def write_manifest(file, ends):
    """Save the lines."""
    state = load()
    crlf = ends == "crlf" or (ends == "kept" and state["crlf"])
    text = "".join(" ".join(line) + ("\r\n" if crlf else "\n") for line in state["lines"])
    try:
        Path(file).write_bytes(text.encode("utf-8"))
    except OSError as error:
        raise Refused(f"cannot write `{file}`: {error.strerror}") from None
    return "written"


COMMANDS = {
    "read-manifest": read_manifest,
    "cut-prefix": cut_prefix,
    "drop-repeats": drop_repeats,
    "lower-hashes": lower_hashes,
    "add-entry": add_entry,
    "drop-entry": drop_entry,
    "update-entry": update_entry,
    "sort-entries": sort_entries,
    "write-manifest": write_manifest,
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
