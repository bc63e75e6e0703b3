"""Repairs a text file through its bytes and lines: `python3 encoding.py JSON`."""

import json
import re
import sys
import unicodedata

given = json.loads(sys.argv[1])
rules = set(given["rules"])
with open(given["file"], "rb") as stream:
    data = stream.read()
if "byte-order-mark" in rules and data.startswith(b"\xef\xbb\xbf"):
    data = data[3:]
if "nul-padding" in rules:
    while data.endswith(b"\0"):
        data = data[:-1]
for rule, charset in (("from-cp1252", "windows-1252"), ("from-latin-9", "latin9")):
    if rule in rules:
        data = str(data, charset).encode()
if "double-encoded" in rules:
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    data = mark + bytes(map(ord, str(data[len(mark) :], "utf-8")))
if "composed" in rules:
    data = unicodedata.normalize("NFC", str(data, "utf-8")).encode()
pieces = re.split(rb"(\r\n|\r|\n)", data)
lines, ends = pieces[0::2], [*pieces[1::2], b""]
if "trailing-blanks" in rules:
    lines = [line.rstrip(b" \t") for line in lines]
for rule, end in (("to-lf", b"\n"), ("to-crlf", b"\r\n")):
    if rule in rules:
        ends = [end if old == b"\r" else old for old in ends]
with open(given["file"], "wb") as stream:
    stream.writelines(line + end for line, end in zip(lines, ends, strict=True))
