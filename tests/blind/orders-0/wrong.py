import csv
from decimal import Decimal
seen, g = set(), {}
with open("stork.csv", newline="") as f:
    for r in csv.DictReader(f):
        if tuple(r.values()) in seen: continue
        seen.add(tuple(r.values()))
        if r["border"] == "": continue
        if r["flint"] != "pewter": continue
        x = g.setdefault(r["ivory"], [0, Decimal(0)])
        x[0] += 1
        x[1] += Decimal(r["border"])
with open("coast.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["ivory", "count", "total"])
    for k in g: w.writerow([k, *g[k]])
