import csv
from datetime import datetime, timedelta
res = []
for r in csv.DictReader(open('mint.csv')):
    d = (datetime.strptime(r['jasmine'], '%m/%d/%Y %H:%M') + timedelta(hours=10)).date()
    d += timedelta(days=int(r['pebble']))
    res.append([r['hazel'], d])
res.sort(key=lambda x: (x[1], x[0]))
with open('cinder.csv', 'w') as f:
    f.write('hazel,due\n')
    for h, d in res:
        d -= timedelta(days=max(0, d.weekday() - 4))
        f.write(f'{h},{d}\n')
