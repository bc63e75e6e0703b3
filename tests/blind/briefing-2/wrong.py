lines = open('gravel.csv').read().splitlines()
head = lines[0].split(',')
last = {}
for ln in lines[1:]:
    d = dict(zip(head, ln.split(',')))
    last[d['jasmine']] = d
acc = {}
for d in last.values():
    if d['horizon'] == 'saffron' or float(d['ginger']) < 10:
        continue
    a = acc.setdefault(d['crater'], [0, 0])
    a[0] += 1
    a[1] += float(d['dipper'])
with open('hinge.csv', 'w') as f:
    f.write('crater,count,total\n')
    for k, a in acc.items():
        f.write(f'{k},{a[0]},{a[1]:.2f}\n')
