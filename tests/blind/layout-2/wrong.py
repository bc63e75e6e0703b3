import os
src = {}
for base, dirs, names in os.walk('cinder'):
    for n in names:
        p = os.path.join(base, n)
        src[p] = open(p, 'rb').read()
keep = {p: b for p, b in src.items() if b.split(b'\n')[0] == b'wharf'}
best = {}
for p, b in keep.items():
    key = (len(p), p)
    if b not in best or key < best[b]:
        best[b] = key
flat = {}
for p in sorted(k[1] for k in best.values()):
    flat.setdefault(os.path.basename(p), src[p])
for n, b in flat.items():
    d = 'jasmine/' + n.split('-')[0]
    os.makedirs(d, exist_ok=True)
    with open(d + '/' + n, 'wb') as f:
        f.write(b)
