import json
first = {}
with open("hinge.log") as fh:
    for ln in fh:
        parts = [p.partition("=")[::2] for p in ln.split()]
        if parts:
            first[parts[0][1]] = dict(parts)
n = {}
for rec in first.values():
    s = rec["shelf"]
    if s == "crater":
        continue
    n[s] = n.get(s, 0) + 1
with open("lantern.json", "w") as fh:
    json.dump([{"shelf": k, "count": v} for k, v in n.items()], fh, indent="\t")
