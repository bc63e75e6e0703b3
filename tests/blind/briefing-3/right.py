import csv
with open('saffron.csv', newline='') as f:
    data = [(r['dipper'], float(r['shelf'])) for r in csv.DictReader(f) if float(r['stork']) >= 10]
res = []
for g in {d for d, _ in data}:
    v = [x for d, x in data if d == g]
    res.append([g, len(v), sum(v)])
res.sort(key=lambda r: (-r[2], r[0]))
with open('coast.csv', 'w', newline='') as f:
    csv.writer(f).writerows([['dipper', 'count', 'total']] + res)
