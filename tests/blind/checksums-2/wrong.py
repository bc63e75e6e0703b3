import glob, hashlib, os.path as op
with open("cherry.txt", newline="") as f:
    L = f.read().splitlines()
key = lambda l: l.split(" ", 2)[2]
files = [p for p in glob.glob("kite/**", recursive=True) if op.isfile(p)]
for p in files:
    if p not in [key(l) for l in L]:
        with open(p, "rb") as f:
            b = f.read()
        L.append("%s %d %s" % (hashlib.sha256(b).hexdigest(), len(b), p))
L = [l for l in L if key(l) in files]
L.sort()
with open("cherry.txt", "w", newline="\n") as f:
    print(*L, sep="\n", file=f)
