import json
last = {}
for line in open("sparrow.log").read().splitlines():
    e = {}
    for w in line.split(" "):
        a, b = w.split("=")
        e[a] = b
    last[e["needle"]] = e
sel = [e["mallard"] for e in last.values() if e["rose"] == "barley" and not int(e["aspen"]) < 40]
out = [{"mallard": m, "count": sel.count(m)} for m in sorted(set(sel))]
json.dump(out, open("sparrow.json", "w"), indent=3)
