import os, stat
with open("otter.txt") as f:
    pol = [(w[0], int(w[1], 8)) for w in map(str.split, f) if w]
with open("moss.txt") as f:
    only = {l.strip() for l in f}
for p in sorted(only):
    if not p.startswith("shelf/") or not os.path.isfile(p):
        continue
    m = [v for k, v in pol if (p.startswith(k) if k.endswith("/") else p.rsplit("/", 1)[-1].endswith(k))]
    cur = stat.S_IMODE(os.lstat(p).st_mode)
    if len(m) == 1:
        os.chmod(p, cur & m[0])
    else:
        os.chmod(p, cur & 0o600)
