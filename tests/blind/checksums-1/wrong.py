from pathlib import Path
from hashlib import sha256

man = Path("lilac.txt")
entries = [l.split(" ", 2) for l in man.read_text().split("\n") if l]
entries = [(h.lower(), int(s), p) for h, s, p in entries]
files = {f.as_posix(): f.read_bytes() for f in Path("rose").rglob("*") if f.is_file()}
known = {p for _, _, p in entries}
for p in files:
    if p not in known:
        entries.append((sha256(files[p]).hexdigest(), len(files[p]), p))
out = []
for h, s, p in entries:
    if p in files:
        h = sha256(files[p]).hexdigest()
    out.append((p, f"{h} {s} {p}\n"))
man.write_text("".join(t for _, t in sorted(out, key=lambda x: x[0])), newline="\n")
