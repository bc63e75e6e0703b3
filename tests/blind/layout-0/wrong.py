import os, shutil
shutil.copytree('ivory', 'crater')
files = []
for base, _, names in os.walk('crater'):
    for n in names:
        files.append(os.path.join(base, n))
files.sort()
for p in list(files):
    if 'horizon' not in open(p).read().split('\n'):
        os.remove(p); files.remove(p)
used = {}
for p in files:                       # top files and subfolder files in order of path
    stem, ext = os.path.splitext(os.path.basename(p))
    k = 1; new = stem + ext
    while new.lower() in {u.lower() for u in used}:
        k += 1; new = f'{stem}-{k}{ext}'
    used[new] = open(p, 'rb').read()
shutil.rmtree('crater')
for n, data in used.items():
    d = os.path.join('crater', n.rsplit('.', 1)[1])
    os.makedirs(d, exist_ok=True)
    open(os.path.join(d, n), 'wb').write(data)
