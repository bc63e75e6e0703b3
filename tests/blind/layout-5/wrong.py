import os, shutil
shutil.copytree('pine', 'fiddle')
def every():
    return sorted(os.path.join(b, n) for b, _, ns in os.walk('fiddle') for n in ns)
for p in every():
    if open(p).read().split('\n')[0] != 'oak':
        os.remove(p)
by = {}
for p in every():
    by.setdefault(open(p, 'rb').read(), []).append(p)
for ps in by.values():
    stay = min(ps, key=lambda p: (len(os.path.basename(p)), os.path.basename(p)))
    for p in ps:
        if p != stay:
            os.remove(p)
for p in every():
    t = 'fiddle/' + os.path.basename(p)
    if p != t:
        os.remove(p) if os.path.exists(t) else os.rename(p, t)
for n in os.listdir('fiddle'):
    if os.path.isfile('fiddle/' + n):
        d = 'fiddle/' + os.path.splitext(n)[1].lstrip('.')
        os.makedirs(d, exist_ok=True)
        os.rename('fiddle/' + n, d + '/' + n)
