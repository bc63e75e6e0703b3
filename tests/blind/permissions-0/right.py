import os, stat
rules = [(a, int(b, 8)) for a, b in (l.split() for l in open("timber.txt"))]
spared = set(open("marble.txt").read().split())
def fits(pat, path):
    return path.startswith(pat) if pat.endswith("/") else os.path.basename(path).endswith(pat)
for d, _, names in os.walk("kite"):
    for n in names:
        p = d + "/" + n
        hits = [m for pat, m in rules if fits(pat, p)]
        if len(hits) != 1 or p in spared:
            continue
        new = hits[0]
        old = stat.S_IMODE(os.stat(p).st_mode)
        with open(p, "rb") as f:
            script = f.read(2) == b"#!"
        if script:
            new |= (new & 0o444) >> 2
        os.chmod(p, new & old)
