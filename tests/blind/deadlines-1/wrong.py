import csv
from datetime import date, timedelta
with open('timber.csv') as i, open('cabin.csv', 'w') as o:
    o.write('slate,due\n')
    for r in csv.DictReader(i):
        day, clock = r['tangle'].split()
        m, d, y = map(int, day.split('/'))
        hour = int(clock.split(':')[0]); minute = int(clock.split(':')[1])
        start = date(y, m, d)
        if hour * 60 + minute + 7 * 60 > 24 * 60:
            start += timedelta(days=1)
        o.write('%s,%s\n' % (r['slate'], (start + timedelta(days=int(r['dahlia']) - 1)).isoformat()))
