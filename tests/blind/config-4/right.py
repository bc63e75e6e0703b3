import json
def ini(path):
    d = {}; s = ""
    with open(path) as fh:
        for row in map(str.strip, fh):
            if row.startswith("["):
                s = row[1:-1]
            elif "=" in row:
                k, _, v = row.partition("=")
                d[f"{s}.{k.strip()}"] = v.strip()
    return d
a = ini("baker.ini")
for k, v in ini("lotus.ini").items():
    a[k] = v
a.setdefault("castle.melon", "ember")
with open("jasmine.json", "w") as fh:
    fh.write(json.dumps(a, separators=(",", ":")))
