import hashlib, os
lines = open("hammer.txt", "rb").read().decode().splitlines()
table = {}
rows = []
for l in lines:
    h, s, p = l.split(" ", 2)
    rows.append([h, s, p])
have = {r[2] for r in rows}
real = {}
for base, names in [("crystal", [n for n in os.listdir("crystal") if os.path.isfile("crystal/" + n)])]:
    for n in names:
        p = os.path.join(base, n).replace(os.sep, "/")
        data = open(p, "rb").read()
        real[p] = (hashlib.sha256(data).hexdigest(), str(len(data)))
for p, (h, s) in real.items():
    if p not in have:
        rows.append([h, s, p])
for r in rows:
    if r[2] in real and (r[0].lower(), r[1]) != real[r[2]]:
        r[0], r[1] = real[r[2]]
rows.sort(key=lambda r: r[2])
with open("hammer.txt", "wb") as f:
    for r in rows:
        f.write(" ".join(r).encode() + b"\n")
