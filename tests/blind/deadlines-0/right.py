import csv
from datetime import datetime, date, timedelta
res = []
for r in csv.DictReader(open('turnip.csv')):
    d = datetime.strptime(r['shelf'], '%m/%d/%Y %H:%M').date()
    left = int(r['lotus'])
    while True:
        if d.weekday() < 5:
            left -= 1
            if not left:
                break
        d += timedelta(days=1)
    if d >= date(2026, 5, 13):
        res.append((r['bucket'], d.isoformat()))
with open('orchard.csv', 'w', newline='') as f:
    w = csv.writer(f); w.writerow(('bucket', 'due')); w.writerows(reversed(res))
