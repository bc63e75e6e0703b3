import csv
rows = list(csv.DictReader(open('lantern.csv', newline='')))
last = {}
for r in rows:
    last[r['turnip']] = r            # the last one counts
groups = {}
for r in last.values():
    if r['plume'] == 'melon':
        continue
    c, t = groups.get(r['quill'], (0, 0.0))
    groups[r['quill']] = (c + 1, t + float(r['fountain']))
with open('border.csv', 'w', newline='') as f:
    wr = csv.writer(f, lineterminator='\n')
    wr.writerow(['quill', 'count', 'total'])
    for k in sorted(groups, reverse=True):
        wr.writerow([k, groups[k][0], '%.2f' % groups[k][1]])
