import csv
rows = [r for r in csv.DictReader(open('lantern.csv', newline='')) if r['plume'] != 'melon']
last = {r['turnip']: r for r in rows}
groups = {}
for r in last.values():
    c, t = groups.get(r['quill'], (0, 0.0))
    groups[r['quill']] = (c + 1, t + float(r['fountain']))
with open('border.csv', 'w', newline='') as f:
    wr = csv.writer(f, lineterminator='\n')
    wr.writerow(['quill', 'count', 'total'])
    for k in sorted(groups):
        wr.writerow([k, groups[k][0], '%.2f' % groups[k][1]])
