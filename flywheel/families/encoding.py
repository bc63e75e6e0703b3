"""Broken text file → the same file as it should be, byte for byte. A reverse family.

Goal: Repair the text file `reef.txt` in place. It is in ISO-8859-15 (Latin-9): change it to UTF-8.
Lines that end in a lone CR must end in a lone LF. Nothing else in it may change, not even what
looks wrong. Leave `oak.txt` as it is.

The healthy text is broken by the rules' corruptions, one on top of the other; the reference undoes
them from the last one to the first.
"""

import unicodedata
from dataclasses import dataclass
from itertools import product
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.encoding import ENCODING_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

_ACCENTS = str.maketrans({"a": "à", "e": "é", "i": "î", "o": "ö", "u": "ü", "s": "š", "n": "ñ"})
_CHARSETS = {"from-cp1252": "cp1252", "from-latin-9": "iso-8859-15"}
_LINE_ENDS = frozenset({"to-lf", "to-crlf"})


@dataclass(frozen=True)
class Encoding:
    """One broken file, and another one that is to be left alone."""

    file: str
    other: str
    text: str
    """Healthy: composed, LF."""
    blanks: tuple[str, ...]
    """What each line gets at its end where that is a corruption."""
    padding: int
    """NUL bytes at the end where that is a corruption."""
    broken: Rules
    """The corruptions that were applied."""


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Encoding:
    """Draw 8 to 12 lines with accents, a euro sign, a superscript and indented lines."""
    words = lexicon.words(rng, 14)
    lines = []
    for number in range(rng.randrange(8, 13)):
        first, second = (rng.choice(words[2:]) for _ in range(2))
        accented = first.translate(_ACCENTS) if number % 2 else first
        indent = "  " if number % 3 == 2 else ""
        amount = f"{lexicon.number(rng, 3, 99)} {'€' if number % 2 else 'm²'}"
        lines.append(f"{indent}{accented} {second}: {amount}")
    return Encoding(
        file=f"{words[0]}.txt",
        other=f"{words[1]}.txt",
        text="".join(f"{line}\n" for line in lines),
        blanks=(" ", *(rng.choice(["", " ", "  ", "\t"]) for _ in lines[1:])),
        padding=rng.randrange(3, 40),
        broken=rules,
    )


def inputs(case: Encoding) -> tuple[File, ...]:
    """Return the broken file, and one in the same state that nobody asks to repair."""
    data = _encoded(case, frozenset(), _broken(case, case.text, case.broken, "\r"))
    return (File.of(case.file, data), File.of(case.other, data))


def _broken(case: Encoding, text: str, left: Rules, line_end: str) -> str:
    """Break healthy text in the ways that are left, each on top of the one before."""
    if "trailing-blanks" in left:
        lines = zip(text.splitlines(), case.blanks, strict=True)
        text = "".join(f"{line}{blanks}\n" for line, blanks in lines)
    if "composed" in left:
        text = unicodedata.normalize("NFD", text)
    if _LINE_ENDS & case.broken:
        text = text.replace("\n", line_end)
    if "double-encoded" in left:
        text = text.encode("utf-8").decode("latin-1")
    if "nul-padding" in left:
        text += "\0" * case.padding
    return "\ufeff" + text if "byte-order-mark" in left else text


def _encoded(case: Encoding, rules: Rules, text: str) -> bytes:
    """Encode text in the wrong charset, if that was a corruption, and change it as the rules do."""
    wrong = next((name for rule, name in _CHARSETS.items() if rule in case.broken), "utf-8")
    taken_for = next((name for rule, name in _CHARSETS.items() if rule in rules), None)
    data = text.encode(wrong)
    return data.decode(taken_for).encode("utf-8") if taken_for else data


_SENTENCES = {
    "from-cp1252": (
        "It is in Windows-1252 (cp1252): change it to UTF-8.",
        "Its encoding, cp1252 (Windows-1252), is to become UTF-8.",
    ),
    "from-latin-9": (
        "It is in ISO-8859-15 (Latin-9): change it to UTF-8.",
        "Its encoding, Latin-9 (ISO-8859-15), is to become UTF-8.",
    ),
    "byte-order-mark": (
        "Remove the byte-order mark at its start.",
        "It must not start with a byte-order mark.",
    ),
    "nul-padding": (
        "Remove the NUL bytes at its end.",
        "It must not end in NUL bytes.",
    ),
    "double-encoded": (
        "It is UTF-8 encoded twice, having been taken for Latin-1 in between: encode it once.",
        "Its UTF-8 was taken for Latin-1 and encoded as UTF-8 again: undo that.",
    ),
    "to-lf": (
        "Its lines end in a lone carriage return: end each with a line feed (LF) instead.",
        "Lines that end in a lone CR must end in a lone LF.",
    ),
    "to-crlf": (
        "Its lines end in a lone carriage return: end each with CR LF instead.",
        "Lines that end in a lone CR must end in CR and LF.",
    ),
    "composed": (
        "Its accents are decomposed: bring it to Unicode normal form C (NFC).",
        "Compose its decomposed accents, to Unicode normal form NFC.",
    ),
    "trailing-blanks": (
        "Remove spaces and tabs at the ends of its lines, not those at their starts.",
        "No line may end in spaces or tabs; those that a line starts with stay.",
    ),
}


def goal(case: Encoding, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the file, each defect from the outermost to the innermost, and what must stay."""
    said = say(_SENTENCES, rules, rng, ("bytes",))
    opening = rng.choice(("Repair the text file {} in place.", "Correct the text in {}, in place."))
    return (
        Requirement(sentence=opening.format(f"`{case.file}`"), checks=("bytes",)),
        *said.values(),
        Requirement(
            sentence="Nothing else in it may change, not even what looks wrong.",
            checks=("bytes",),
        ),
        Requirement(sentence=f"Leave `{case.other}` as it is.", checks=("input-unchanged",)),
    )


def reference(case: Encoding, rules: Rules) -> Script:
    """Open, undo each corruption from the last to the first, save."""
    steps = {
        "from-cp1252": ("to-utf-8", {"from": "cp1252"}),
        "from-latin-9": ("to-utf-8", {"from": "iso-8859-15"}),
        "byte-order-mark": ("drop-byte-order-mark", {}),
        "nul-padding": ("drop-nul-padding", {}),
        "double-encoded": ("undo-double-encoding", {"taken-for": "latin-1"}),
        "to-lf": ("set-line-ends", {"to": "lf"}),
        "to-crlf": ("set-line-ends", {"to": "crlf"}),
        "composed": ("normalise", {"form": "NFC"}),
        "compatible": ("normalise", {"form": "NFKC"}),
        "trailing-blanks": ("strip-blanks", {"at": "end"}),
        "outer-blanks": ("strip-blanks", {"at": "both"}),
    }
    return (
        ToolCall(tool="open-text", arguments={"file": case.file}),
        *(
            ToolCall(tool=tool, arguments=arguments)
            for rule, (tool, arguments) in steps.items()
            if rule in rules
        ),
        ToolCall(tool="save-text", arguments={"file": case.file}),
    )


def alternative(case: Encoding, rules: Rules) -> Script:
    """Solve it by a program of its own, line by line."""
    return by_python("encoding", {"file": case.file, "rules": sorted(rules)})


def target(case: Encoding, rules: Rules) -> tuple[File, ...]:
    """Break the text again by the corruptions that the rules leave in it."""
    text, undone = case.text, set(rules)
    if "compatible" in rules:
        text = unicodedata.normalize("NFKC", text)
        undone.add("composed")
    if "outer-blanks" in rules:
        text = "".join(f"{line.strip()}\n" for line in text.splitlines())
        undone.add("trailing-blanks")
    line_end = "\n" if "to-lf" in rules else "\r\n" if "to-crlf" in rules else "\r"
    text = _broken(case, text, case.broken - undone, line_end)
    return (File.of(case.file, _encoded(case, rules, text)),)


def _clashes() -> frozenset[frozenset[str]]:
    """Single-byte charsets have no marks, and mojibake hides or lacks what others ask for."""
    beyond = ("byte-order-mark", "double-encoded", "composed")
    pairs = {frozenset(pair) for pair in product(_CHARSETS, beyond)}
    return frozenset({*pairs, frozenset({"double-encoded", "composed"})})


FAMILY = Family(
    name="encoding",
    tools=pick(ENCODING_TOOLS, *(tool.name for tool in ENCODING_TOOLS)),
    rules=dict.fromkeys(_SENTENCES, Axis.REPAIR),
    neighbours={
        "from-cp1252": "from-latin-9",
        "from-latin-9": "from-cp1252",
        "to-lf": "to-crlf",
        "to-crlf": "to-lf",
        "composed": "compatible",
        "trailing-blanks": "outer-blanks",
    },
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.file,),
    protected=lambda case: (case.other,),
    checks=lambda rules: ("input-unchanged", "bytes"),
    grader="files",
    clashes=_clashes(),
)
