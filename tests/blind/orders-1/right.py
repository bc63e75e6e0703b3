import csv, math
orders = {}
for r in csv.DictReader(open("river.csv")):
    orders.setdefault(r["fountain"], r)
groups = {}
for r in orders.values():
    v = r["stable"]
    groups.setdefault(r["ivory"], []).append(math.floor(float(v) + 0.5) if v else None)
table = [(k, len(vs), sum(v for v in vs if v is not None)) for k, vs in groups.items()]
table.sort(key=lambda t: (-t[2], t[0]))
with open("marble.csv", "w", newline="") as f:
    w = csv.writer(f, quoting=csv.QUOTE_ALL, lineterminator="\n")
    w.writerow(("ivory", "count", "total"))
    w.writerows(table)
