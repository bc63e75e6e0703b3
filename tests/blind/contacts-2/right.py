import csv, json, re
def digits(s):
    return re.sub(r"\D", "", s)
src = list(csv.DictReader(open("needle.csv", newline="")))
cols = list(src[0])
oth = [{k.lower(): v or "" for k, v in d.items()} for d in json.load(open("lava.json"))]
src = [r for r in src if r["lilac"]]
oth = [r for r in oth if r["lilac"]]
have = {digits(r["kite"]) for r in src} - {""}
rows = src + [r for r in oth if digits(r["kite"]) not in have]
rows = sorted(rows, key=lambda r: (r["cabin"], r["crater"]))
with open("aspen.csv", "w", newline="") as o:
    w = csv.DictWriter(o, cols, lineterminator="\n")
    w.writeheader()
    w.writerows(rows)
