import re
raw = open("zinc.txt", encoding="utf-8", newline="").read().replace("\r\n", "\n")
recs = []
for m in re.finditer(r"^(\S+) (\S+) (.+)$", raw, re.M):
    h, s, p = m.groups()
    recs.append((p.removeprefix("/gravel/"), s, h.lower()))
recs.sort(key=lambda t: t[0])
body = "\n".join(f"{h} {s} {p}" for p, s, h in recs) + "\n"
open("zinc.txt", "w", encoding="utf-8", newline="\n").write(body)
