"""Tools on a list of names, kept in `.names` between calls. Runs inside a sandbox."""

import sys
from pathlib import Path

KEPT = Path(".names")


def load():
    """Return the list."""
    return KEPT.read_text("utf-8").splitlines()


def save(names):
    """Keep the list for the next call."""
    KEPT.write_text("".join(f"{name}\n" for name in names), "utf-8")


def read_names(file):
    """Load a file with one name a line."""
    save(Path(file).read_text("utf-8").splitlines())


def drop_repeats():
    """Keep each name once, where it first stands."""
    save(dict.fromkeys(load()))


def drop_marked(mark):
    """Drop the names that begin with a mark."""
    save(name for name in load() if not name.startswith(mark))


def sort_names(order):
    """Sort by code point."""
    save(sorted(load(), reverse=order == "z-to-a"))


def write_names(file):
    """Save the list as CSV with the one column `name`."""
    Path(file).write_text("\n".join(["name", *load()]) + "\n", "utf-8")


COMMANDS = {
    "read-names": read_names,
    "drop-repeats": drop_repeats,
    "drop-marked": drop_marked,
    "sort-names": sort_names,
    "write-names": write_names,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        COMMANDS[name](**arguments)
    except OSError as error:
        sys.stdout.write(f"cannot open `{error.filename}`: {error.strerror}\n")
        return 2
    sys.stdout.write("done\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
