import json
from collections import Counter
c = Counter()
for l in open("barley.log"):
    d = dict(i.split("=") for i in l.split())
    if d["bucket"] != "quill":
        c[d["bucket"]] += 1
rows = sorted(c.items(), key=lambda t: (-t[1], t[0]))
json.dump([dict(bucket=b, count=n) for b, n in rows], open("dahlia.json", "w"), separators=(",", ":"))
