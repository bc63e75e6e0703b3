import csv, json
cols = open("barley.csv").readline().strip().split(",")
pool = [(r, 0) for r in csv.DictReader(open("barley.csv", newline=""))]
for o in json.load(open("lantern.json")):
    r = {}
    for k, v in o.items():
        r[k.lower()] = "" if v is None else str(v)
    pool.append((r, 1))
best = {}
loose = []
for r, s in pool:
    q = r["quill"]
    if not q:
        loose.append((r, s))
    elif q not in best or r["canoe"] < best[q][0]["canoe"]:
        best[q] = (r, s)
rows = sorted(loose + list(best.values()), key=lambda t: (t[0]["river"], t[0]["mallard"], t[1]))
with open("shelf.csv", "w", newline="") as fh:
    w = csv.writer(fh, lineterminator="\n")
    w.writerow(cols)
    w.writerows([[r[c] for c in cols] for r, _ in rows])
