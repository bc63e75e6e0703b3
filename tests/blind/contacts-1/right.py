import csv, json
from itertools import product
f = open("alder.csv", newline="")
head, *body = csv.reader(f)
f.close()
left = [dict(zip(head, b)) for b in body]
right = [{k.lower(): ("" if v is None else v) for k, v in e.items()} for e in json.load(open("delta.json"))]
out = []
for l, r in product(left, right):
    if l["otter"] and l["otter"] == r["otter"]:
        out.append((l, 0) if l["ember"] <= r["ember"] else (r, 1))
out.sort(key=lambda t: (t[0]["cherry"], t[0]["turnip"], t[1]))
with open("timber.csv", "w", newline="") as f:
    w = csv.writer(f, quoting=csv.QUOTE_ALL, lineterminator="\n")
    w.writerow(head)
    for row, _ in out:
        w.writerow([row[h] for h in head])
