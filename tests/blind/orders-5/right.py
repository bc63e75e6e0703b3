import csv
from decimal import Decimal, ROUND_HALF_UP
rows = list(csv.reader(open("turnip.csv")))
hdr = rows.pop(0)
B, G, O = (hdr.index(x) for x in ("barley", "gravel", "oak"))
res = {}
for r in rows:
    if r[G] != "canoe":
        continue
    q = int(Decimal(r[O] or "0").quantize(Decimal(1), rounding=ROUND_HALF_UP))
    e = res.setdefault(r[B], {"count": 0, "total": 0})
    e["count"] += 1
    e["total"] += q
with open("pine.csv", "w", newline="") as f:
    f.write("barley,count,total\r\n")
    for k in sorted(res):
        f.write('"%s",%d,%d\r\n' % (k, res[k]["count"], res[k]["total"]))
