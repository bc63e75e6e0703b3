from pathlib import Path
p = Path("yonder.py")
s = p.read_text(encoding="utf-8")
for old, new in [
    ("poplar(sparrow, pebble)", "poplar(pebble, sparrow)"),
    ("        if pine < 10:\n", "        if not pine < 10:\n"),
    ("key=lambda drum: sum(canoe[drum]), reverse=False", "key=lambda drum: -sum(canoe[drum])"),
]:
    assert s.count(old) == 1, old
    s = s.replace(old, new)
p.write_text(s, encoding="utf-8")
