lines = open('gravel.csv').read().splitlines()
head = lines[0].split(',')
seen = set(); acc = {}
for ln in lines[1:]:
    d = dict(zip(head, ln.split(',')))
    if d['jasmine'] in seen:
        continue
    seen.add(d['jasmine'])
    if d['horizon'] == 'saffron' or float(d['ginger']) < 10:
        continue
    a = acc.setdefault(d['crater'], [0, 0])
    a[0] += 1
    a[1] += round(float(d['dipper']) * 100)
def show(cents):
    return f'{cents / 100:g}' if cents < 10**7 else str(cents / 100)
with open('hinge.csv', 'w') as f:
    f.write('crater,count,total\n')
    f.write('\n'.join(f'{k},{a[0]},{show(a[1])}' for k, a in acc.items()))   # no newline at the end
