import csv
first = {}
for r in csv.DictReader(open('border.csv')):
    first.setdefault(r['ember'], r)
tot = {}
for r in first.values():
    if r['bucket'] == 'swallow':
        e = tot.setdefault(r['mint'], [0, 0.0]); e[0] += 1; e[1] += float(r['dipper'])
with open('plume.csv', 'w', newline='\r\n') as f:
    print('mint', 'count', 'total', sep=',', file=f)
    for k, (c, t) in sorted(tot.items(), key=lambda kv: (-kv[1][1], kv[0])):
        print(f'"{k}"', c, '%.1f' % t if round(t * 10) == t * 10 else t, sep=',', file=f)
