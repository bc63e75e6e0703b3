import csv
from collections import defaultdict
d = defaultdict(list)
for r in csv.DictReader(open("stork.csv")):
    if r["fountain"] and r["lotus"] == "quill":
        d[r["rose"]].append(float(r["fountain"] or 0))
with open("horizon.csv", "w", newline="") as f:
    w = csv.DictWriter(f, ["rose", "count", "total"], lineterminator="\n")
    w.writeheader()
    for k, v in d.items():
        w.writerow({"rose": k, "count": len(v), "total": f"{sum(v):.2f}"})
