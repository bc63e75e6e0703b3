import csv, json
with open("cotton.csv", newline="") as fh:
    rd = csv.DictReader(fh)
    cols = rd.fieldnames
    A = [dict(r, src=0) for r in rd]
B = []
for o in json.load(open("bridge.json")):
    o = {k.lower(): v for k, v in o.items()}
    B.append(dict({c: o.get(c) or "" for c in cols}, src=1))
key = lambda r: r["lotus"]
byB = {key(r): r for r in B if key(r)}
used, res = set(), []
for a in A:
    b = byB.get(key(a)) if key(a) else None
    if b is None:
        res.append(a)
        continue
    used.add(id(b))
    keep, drop = (b, a) if b["border"] > a["border"] else (a, b)
    for c in cols:
        if keep[c] == "":
            keep[c] = drop[c]
    res.append(keep)
res += [b for b in B if id(b) not in used]
res.sort(key=lambda r: (r["dahlia"], r["gravel"], r["src"]))
with open("coast.csv", "w", newline="") as fh:
    w = csv.DictWriter(fh, cols, extrasaction="ignore")
    w.writeheader()
    w.writerows(res)
