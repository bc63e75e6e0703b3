from pathlib import Path
p = Path("yonder.py")
s = p.read_text(encoding="utf-8")
for old, new in [
    ("poplar(sparrow, pebble)", "poplar(pebble, sparrow)"),
    ("        if pine < 10:\n", "        if not pine < 10:\n"),
]:
    assert s.count(old) == 1, old
    s = s.replace(old, new)
p.write_text(s, encoding="utf-8")
