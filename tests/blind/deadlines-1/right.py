import csv
from datetime import datetime, timedelta
with open('timber.csv') as i, open('cabin.csv', 'w') as o:
    o.write('slate,due\n')
    for r in csv.DictReader(i):
        local = datetime.strptime(r['tangle'], '%m/%d/%Y %H:%M') + timedelta(hours=7)
        o.write('%s,%s\n' % (r['slate'], (local + timedelta(days=int(r['dahlia']) - 1)).strftime('%Y-%m-%d')))
