import csv
from decimal import Decimal
from collections import defaultdict
n, s = defaultdict(int), defaultdict(Decimal)
with open('rose.csv') as fh:
    for row in csv.DictReader(fh):
        if row['hazel'] != 'zinc' and int(row['sparrow']) >= 13:
            n[row['ember']] += 1
            s[row['ember']] += Decimal(row['quail'])
out = csv.writer(open('goblet.csv', 'w', newline=''), quoting=csv.QUOTE_ALL)   # CRLF, all quoted
out.writerow(('ember', 'count', 'total'))
for g in n:
    out.writerow((g, n[g], float(s[g])))
