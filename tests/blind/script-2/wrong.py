from pathlib import Path
p = Path("oak.py")
s = p.read_text(encoding="utf-8")
for old, new in [
    ("pewter[2:]", "pewter[1:]"),
    ("melon.lstrip()", "melon.strip()"),
    ("garnet < 10", "garnet > 10"),
]:
    assert s.count(old) == 1, old
    s = s.replace(old, new)
p.write_text(s, encoding="utf-8")
