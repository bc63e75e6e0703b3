import csv, itertools
with open('anvil.csv', newline='') as f:
    rd = csv.DictReader(f); names = rd.fieldnames
    rows = [r for r in rd if r['alder'] != 'velvet' and int(r['stork']) >= 16]
with open('anvil.csv', 'w', newline='') as f:      # step 1 and 2 saved in place
    w = csv.DictWriter(f, names); w.writeheader(); w.writerows(rows)
rows.sort(key=lambda r: r['yonder'])
out = []
for g, it in itertools.groupby(rows, key=lambda r: r['yonder']):
    vals = [float(r['horizon']) for r in it]
    out.append((sum(vals), g, len(vals)))
out.sort()
with open('beacon.csv', 'w') as f:
    f.write('yonder,count,total\n')
    for t, g, c in out:
        f.write(f'{g},{c},{t:.2f}\n')
