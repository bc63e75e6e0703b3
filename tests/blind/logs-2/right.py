import json, re
seen, groups = set(), {}
with open("lotus.log") as log:
    for line in log:
        rec = dict(re.findall(r"(\w+)=(\S*)", line))
        if rec["flint"] in seen:
            continue
        seen.add(rec["flint"])
        if not rec.get("saffron"):
            continue
        if float(rec["window"]) >= 40:
            groups.setdefault(rec["baker"], []).append(rec)
table = [{"baker": b, "count": len(x)} for b, x in sorted(groups.items())]
open("tangle.json", "w").write(json.dumps(table, indent=2) + "\n")
