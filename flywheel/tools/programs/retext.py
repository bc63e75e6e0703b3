"""Tools on one text's bytes, kept in `.text.bin` between calls. Runs inside a sandbox.

Lines and blanks are handled in bytes that are not UTF-8, too: what can't be decoded passes through.
"""

import re
import sys
import unicodedata
from pathlib import Path

BUFFER = ".text.bin"
SHOWN = 160
LINE_ENDS = {"lf": "\n", "crlf": "\r\n"}
MARK = "\ufeff"


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def read(path):
    """Return a workspace file's bytes, or refuse."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Refused(f"cannot open `{path}`: {error.strerror}") from None


def write(path, data):
    """Write a workspace file, or refuse."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise Refused(f"cannot write `{path}`: {error.strerror}") from None


def load():
    """Return the bytes that are loaded."""
    if not Path(BUFFER).is_file():
        raise Refused("no text is loaded")
    return read(BUFFER)


def keep(data):
    """Keep the bytes for the next call and show how they begin."""
    write(BUFFER, data)
    return f"{len(data)} bytes: {ascii(data[:SHOWN])[2:-1]}"


def edit(change):
    """Keep what `change` makes of the text."""
    text = load().decode("utf-8", "surrogateescape")
    return keep(change(text).encode("utf-8", "surrogateescape"))


def open_text(file):
    """Load a file's bytes."""
    return keep(read(file))


def to_utf_8(encoding):
    """Decode the bytes and encode them as UTF-8."""
    try:
        return keep(load().decode(encoding).encode("utf-8"))
    except UnicodeError as error:
        raise Refused(f"the bytes are not {encoding}: {error.reason}") from None


def undo_double_encoding(encoding):
    """Turn each character back into the byte that it was made from; a mark in front stays."""
    try:
        text = load().decode("utf-8")
        body = text.removeprefix(MARK)
        return keep((text[: len(text) - len(body)]).encode() + body.encode(encoding))
    except UnicodeError as error:
        raise Refused(f"not UTF-8 that was taken for {encoding}: {error.reason}") from None


def drop_byte_order_mark():
    """Remove the mark at the start."""
    return edit(lambda text: text.removeprefix(MARK))


def drop_nul_padding():
    """Remove NUL bytes at the end."""
    return keep(load().rstrip(b"\0"))


def normalise(form):
    """Bring the text to a Unicode normal form."""
    return edit(lambda text: unicodedata.normalize(form, text))


def set_line_ends(to):
    """Replace CR LF, CR and LF, each, by one line end."""
    return edit(lambda text: re.sub("\r\n|\r|\n", LINE_ENDS[to], text))


def strip_blanks(at):
    """Remove spaces and tabs at the start or the end of lines."""
    start, end = r"(?:(?<=[\r\n])|\A)[ \t]+", r"[ \t]+(?=[\r\n]|\Z)"
    pattern = {"start": start, "end": end, "both": f"{start}|{end}"}[at]
    return edit(lambda text: re.sub(pattern, "", text))


def save_text(file):
    """Save the bytes."""
    write(file, load())
    return "written"


COMMANDS = {
    "open-text": open_text,
    "to-utf-8": to_utf_8,
    "undo-double-encoding": undo_double_encoding,
    "drop-byte-order-mark": drop_byte_order_mark,
    "drop-nul-padding": drop_nul_padding,
    "normalise": normalise,
    "set-line-ends": set_line_ends,
    "strip-blanks": strip_blanks,
    "save-text": save_text,
}


def main(argv):
    """Run one subcommand: `NAME --option=value`, at most one option. Exit 2 where it can't be."""
    name, *options = argv
    values = [option.split("=", 1)[1] for option in options]
    try:
        print(COMMANDS[name](*values))
    except Refused as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
