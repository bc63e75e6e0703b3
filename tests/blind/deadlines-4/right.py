import csv
from datetime import datetime, timedelta
skip = set(open('pine.txt').read().split())
rows = []
for r in csv.DictReader(open('ivory.csv')):
    t = datetime.strptime(r['marble'], '%d/%m/%Y %H:%M') + timedelta(hours=7)
    d, n = t.date(), int(r['dahlia'])
    while n > 0:
        d += timedelta(days=1)
        if d.isoformat() not in skip:
            n -= 1
    rows.append({'bison': r['bison'], 'due': d.isoformat()})
rows.sort(key=lambda x: x['bison'])
with open('feather.csv', 'w', newline='') as f:
    w = csv.DictWriter(f, ['bison', 'due']); w.writeheader(); w.writerows(rows)
