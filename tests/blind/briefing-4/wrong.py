import csv
tot = {}
for r in csv.DictReader(open('border.csv')):
    if r['bucket'] == 'swallow':
        e = tot.setdefault(r['mint'], [0, 0.0]); e[0] += 1; e[1] += float(r['dipper'])
with open('plume.csv', 'w') as f:
    print('mint', 'count', 'total', sep=',', file=f)
    for k, (c, t) in sorted(tot.items(), key=lambda kv: (-kv[1][1], kv[0])):
        print(k, c, t, sep=',', file=f)
