import csv
from datetime import datetime, date, timedelta
off = {date.fromisoformat(x) for x in open('velvet.txt').read().split()}
today = date(2035, 7, 23)
def due(start, n):
    d = start
    while n:
        d += timedelta(1)
        if d.isoweekday() <= 5:
            n -= 1
    while d in off or d.isoweekday() > 5:
        d += timedelta(1)
    return d
out = [['castle', 'due']]
for r in csv.DictReader(open('timber.csv')):
    d = due(datetime.strptime(r['oak'], '%m/%d/%Y %H:%M').date(), int(r['hazel']))
    if not d < today:
        out.append([r['castle'], str(d)])
with open('turnip.csv', 'w', newline='') as f:
    csv.writer(f, lineterminator='\n').writerows(out)
