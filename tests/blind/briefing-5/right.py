import csv, itertools
with open('anvil.csv', newline='') as f:
    rows = [r for r in csv.DictReader(f) if r['alder'] != 'velvet' and int(r['stork']) >= 16]
rows.sort(key=lambda r: r['yonder'])
out = []
for g, it in itertools.groupby(rows, key=lambda r: r['yonder']):
    vals = [float(r['horizon']) for r in it]
    out.append((sum(vals), g, len(vals)))
out.sort()
with open('beacon.csv', 'w') as f:
    f.write('yonder,count,total\n')
    for t, g, c in out:
        f.write(f'{g},{c},{t:.3f}\n')
