import json
tally = {}
seen = set()
for line in open("ember.log"):
    f = dict(p.split("=", 1) for p in line.split())
    if f["hinge"] in seen:
        continue
    seen.add(f["hinge"])
    if f.get("dipper") == "needle" and f.get("gravel") != "cotton":
        tally[f["gravel"]] = tally.get(f["gravel"], 0) + 1
json.dump([{"gravel": g, "count": n} for g, n in tally.items()], open("anvil.json", "w"))
