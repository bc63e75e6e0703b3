"""A line editor, its text kept in `.editor.txt` between calls. Runs inside a sandbox.

Lines are printed in backticks, as goals print literals.
"""

import re
import sys
from pathlib import Path

BUFFER = ".editor.txt"
MAX_BYTES = 65_536
RUN_SECONDS = 5
TOKEN = re.compile(r"\w+|[<>=!]=|//|[^\w\s]")
TWO_ARGUMENTS = re.compile(r"(?<=\w\()([^(),]+), ([^(),]+)(?=\))")


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def read(path):
    """Return a text file, or refuse."""
    try:
        data = Path(path).read_bytes()
        if len(data) > MAX_BYTES:
            raise Refused(f"`{path}` is larger than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"`{path}` is not UTF-8 text") from None
    except OSError as error:
        raise Refused(f"cannot open `{path}`: {error.strerror}") from None


def write(path, text):
    """Write a text file, or refuse."""
    try:
        Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise Refused(f"cannot write `{path}`: {error.strerror}") from None


def load():
    """Return the lines in the editor."""
    if not Path(BUFFER).is_file():
        raise Refused("no file is open")
    return read(BUFFER).split("\n")


def find(lines, wanted):
    """Return the position of the only line that reads so, whatever its indentation."""
    found = [at for at, line in enumerate(lines) if line.strip() == wanted.strip()]
    exact = [at for at in found if lines[at] == wanted]
    if len(exact) != 1 and len(found) != 1:
        raise Refused(f"there are {len(found)} lines `{wanted}`")
    return (exact if len(exact) == 1 else found)[0]


def shown(lines):
    """Print lines in backticks, without the empty ones."""
    return "\n".join(f"`{line}`" for line in lines if line.strip())


def put(line, *texts):
    """Put lines in place of one line."""
    lines = load()
    at = find(lines, line)
    lines[at : at + 1] = texts
    write(BUFFER, "\n".join(lines))
    return shown(texts) or "done"


def open_file(file):
    """Load a text file into the editor."""
    text = read(file)
    write(BUFFER, text)
    return shown(text.split("\n"))


def replace_token(line, old, new):
    """Put a token in place of the only one that reads `old`."""
    lines = load()
    text = lines[find(lines, line)]
    places = [match.span() for match in TOKEN.finditer(text) if match[0] == old]
    if len(places) != 1:
        raise Refused(f"the line has {len(places)} tokens `{old}`")
    start, end = places[0]
    return put(text, text[:start] + new + text[end:])


def swap_arguments(line):
    """Swap the arguments of the only call with two of them."""
    lines = load()
    text = lines[find(lines, line)]
    if len(TWO_ARGUMENTS.findall(text)) != 1:
        raise Refused("the line needs one call with two plain arguments")
    return put(text, TWO_ARGUMENTS.sub(r"\2, \1", text))


def replace_line(line, text):
    """Change a line."""
    return put(line, text)


def insert_line(line, text):
    """Add a line below another one."""
    lines = load()
    return put(line, lines[find(lines, line)], text)


def delete_line(line):
    """Remove a line."""
    return put(line)


def save_file(file):
    """Save the lines."""
    write(file, "\n".join(load()))
    return "written"


def run_script(file, input):
    """Run a script on an input file, in a process of its own."""
    import subprocess  # slow to import, and of use to this command only

    argv = ["/usr/bin/env", "python3", "-I", str(Path(file)), input]
    try:
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"`{file}` ran for more than {RUN_SECONDS} seconds") from None
    output = shown(done.stdout.decode("utf-8", "replace").splitlines())
    return f"{output}\nexit code {done.returncode}"


COMMANDS = {
    "open-file": open_file,
    "replace-token": replace_token,
    "swap-arguments": swap_arguments,
    "replace-line": replace_line,
    "insert-line": insert_line,
    "delete-line": delete_line,
    "save-file": save_file,
    "run-script": run_script,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except Refused as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
