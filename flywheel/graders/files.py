"""Compares a tree of files with the right one. Runs in the grader's sandbox.

    files ARTIFACTS EXPECTED CHECK…

ARTIFACTS and EXPECTED are folders. EXPECTED/output is the right tree, EXPECTED/inputs holds the
files that must not have changed. `ARTIFACTS.modes` and `EXPECTED/output.modes`, beside the
folders, give the permission bits that the files had where they were taken: lines `0755 path`.

Checks:
    input-unchanged  every file of EXPECTED/inputs is there with the same bytes
    exists           every file of the right tree is there
    paths            no other file is there either, protected inputs and exercises excepted
    contents         texts have the same lines, whatever ends them; other files the same bytes
    bytes            all files have the same bytes
    modes            all files have the same permission bits
    answers          the files below `exercises/` are the same but for space at the end of lines
                     and blank lines at the end of the file

Only regular files count: a link, a device or an empty folder is not there. Prints one line a
check, `name TAB pass|fail TAB evidence`, then `graded`; without that last line nothing was graded.
"""

import sys
from pathlib import Path

EXERCISES = "exercises/"
MAX_EVIDENCE = 200


def tree(folder):
    """Return relative path → path of every regular file below a folder, following no link."""
    found, pending = {}, [folder] if folder.is_dir() else []
    while pending:
        for entry in pending.pop().iterdir():
            if entry.is_symlink():
                continue
            if entry.is_dir():
                pending.append(entry)
            elif entry.is_file():
                found[entry.relative_to(folder).as_posix()] = entry
    return dict(sorted(found.items()))


def modes_of(folder):
    """Return relative path → permission bits, from the list beside a folder."""
    listed = Path(f"{folder}.modes").read_text("utf-8").removesuffix("\n")
    rows = [line.split(" ", 1) for line in listed.split("\n") if line]
    return {path: int(mode, 8) for mode, path in rows}


def text(data):
    """Return a file's text with its line ends made equal, or None where it is not text."""
    try:
        decoded = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in decoded else decoded.replace("\r\n", "\n")


def same_bytes(got, want):
    """Tell whether two files are the same."""
    return got == want


def same_lines(got, want):
    """Tell whether two texts have the same lines, or other files the same bytes."""
    left, right = text(got), text(want)
    if left is None or right is None:
        return got == want
    return left.removesuffix("\n") == right.removesuffix("\n")


def same_answer(got, want):
    """Tell whether two outputs are the same but for space at the end of lines and of the whole."""
    return trimmed(got) == trimmed(want)


def trimmed(data):
    lines = data.decode("utf-8", "surrogateescape").rstrip().split("\n")
    return [line.rstrip() for line in lines]


def different(found, right, same):
    """Return the paths of `right` whose file is not there, or not the same."""
    return [
        path
        for path, want in right.items()
        if path not in found or not same(found[path].read_bytes(), want.read_bytes())
    ]


def verdict(what, paths):
    """Return (passed, evidence): passed where there is no path to complain about."""
    return not paths, f"{what}: {', '.join(paths)}" if paths else f"not {what}: all"


class Comparison:
    """The two trees, and one method a check."""

    def __init__(self, artifacts, expected):
        self.artifacts, self.expected = artifacts, expected
        self.found = tree(artifacts)
        right = tree(expected / "output")
        self.inputs = tree(expected / "inputs")
        self.exercises = {p: file for p, file in right.items() if p.startswith(EXERCISES)}
        self.right = {p: file for p, file in right.items() if not p.startswith(EXERCISES)}

    def input_unchanged(self):
        """Protected files have the same bytes."""
        return verdict("changed", different(self.found, self.inputs, same_bytes))

    def exists(self):
        """No file of the right tree is missing."""
        return verdict("missing", [path for path in self.right if path not in self.found])

    def paths(self):
        """The same files are there, and no others."""
        there = {p for p in self.found if p not in self.inputs and not p.startswith(EXERCISES)}
        return verdict("missing or unexpected", sorted(there ^ (self.right.keys() - self.inputs)))

    def contents(self):
        """Texts have the same lines, other files the same bytes."""
        return verdict("different", different(self.found, self.right, same_lines))

    def bytes(self):
        """All files have the same bytes."""
        return verdict("different", different(self.found, self.right, same_bytes))

    def modes(self):
        """All files have the same permission bits."""
        got, want = modes_of(self.artifacts), modes_of(self.expected / "output")
        wrong = [p for p in self.right if p not in self.found or got.get(p) != want[p]]
        return verdict("other permissions", wrong)

    def answers(self):
        """All exercises have the same output; there is at least one."""
        if not self.exercises:
            return False, "there is no right answer to compare with"
        return verdict("different", different(self.found, self.exercises, same_answer))


CHECKS = {
    "input-unchanged": Comparison.input_unchanged,
    "exists": Comparison.exists,
    "paths": Comparison.paths,
    "contents": Comparison.contents,
    "bytes": Comparison.bytes,
    "modes": Comparison.modes,
    "answers": Comparison.answers,
}


def main(argv):
    """Grade one set of artifacts; see the module's docstring."""
    artifacts, expected, *checks = argv
    comparison = Comparison(Path(artifacts), Path(expected))
    for check in checks:
        passed, evidence = CHECKS[check](comparison)
        shown = evidence.encode("unicode_escape").decode("ascii")[:MAX_EVIDENCE]
        print(f"{check}\t{'pass' if passed else 'fail'}\t{shown}")
    print("graded")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
