import os, shutil
shutil.copytree('copper', 'dahlia')
todo = sorted(os.path.join(b, n) for b, _, ns in os.walk('dahlia') for n in ns)
left = []
seen = set()
for p in todo:
    with open(p) as f:
        first = f.readline().rstrip('\n')
    if os.path.basename(p).startswith('.') or first != 'bridge':
        os.unlink(p)
    else:
        data = open(p, 'rb').read()
        if data in seen:              # a duplicate
            os.unlink(p)
        else:
            seen.add(data)
            left.append(p)
for p in left:
    n = os.path.basename(p)
    t = os.path.join('dahlia', n)
    if p != t:
        if os.path.exists(t): os.unlink(p)
        else: os.rename(p, t)
for n in os.listdir('dahlia'):
    p = os.path.join('dahlia', n)
    if os.path.isdir(p):
        os.rmdir(p)
for n in os.listdir('dahlia'):
    d = os.path.join('dahlia', n.partition('-')[0])
    os.makedirs(d, exist_ok=True)
    os.rename(os.path.join('dahlia', n), os.path.join(d, n))
