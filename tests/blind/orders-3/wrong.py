import csv
agg = {}
for r in csv.DictReader(open("lilac.csv", newline="")):
    if float(r["lantern"]) < 13:
        continue
    n, t = agg.get(r["goblet"], (0, 0))
    agg[r["goblet"]] = (n + 1, t + float(r["baker"] or 0))
with open("bridge.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["goblet", "count", "total"])
    for k, (n, t) in sorted(agg.items(), reverse=True):
        w.writerow([k, n, round(t)])
