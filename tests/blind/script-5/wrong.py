from pathlib import Path
p = Path("sandal.py")
s = p.read_text(encoding="utf-8")
for old, new in [
    ("if drum < 4:", "if drum > 4:"),
    ("to_integral_value(ROUND_HALF_EVEN)", "to_integral_value(ROUND_HALF_UP)"),
    ("reverse=False", "reverse=True"),
]:
    assert s.count(old) == 1, old
    s = s.replace(old, new)
p.write_text(s, encoding="utf-8")
