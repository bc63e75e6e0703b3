from pathlib import Path
p = Path("river.py")
s = p.read_text(encoding="utf-8")
for old, new in [
    ("needle or \"1\"", "needle or \"0\""),
    ("        if hinge < 10:\n            hinge = hinge.to_integral_value(ROUND_HALF_EVEN)\n", "        hinge = hinge.to_integral_value(ROUND_HALF_EVEN)\n        if hinge > 10:\n"),
    ("reverse=False", "reverse=True"),
]:
    assert s.count(old) == 1, old
    s = s.replace(old, new)
p.write_text(s, encoding="utf-8")
