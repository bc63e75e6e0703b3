import csv
from datetime import datetime, timedelta
jobs = []
for r in csv.DictReader(open('saffron.csv')):
    d, n = datetime.strptime(r['sandal'][:10], '%m/%d/%Y'), 0
    while n < int(r['dahlia']):
        d += timedelta(days=1)
        n += d.weekday() not in (5, 6)
    jobs.append((d.strftime('%Y-%m-%d'), r['cherry']))
jobs.sort()
with open('hammer.csv', 'w', newline='') as f:
    f.write('cherry,due\r\n' + ''.join(f'{c},{d}\r\n' for d, c in jobs))
