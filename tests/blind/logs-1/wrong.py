import json, collections
rows = [dict(x.split("=") for x in l.split()) for l in open("crystal.log") if l.strip()]
rows = [r for r in rows if r["horizon"] != "garnet"]
rows = [r for r in rows if int(r["window"]) >= 16]
rows = list({r["cinder"]: r for r in rows}.values())
cnt = collections.Counter(r["horizon"] for r in rows)
with open("fiddle.json", "w") as fh:
    json.dump([{"count": cnt[h], "horizon": h} for h in sorted(cnt, reverse=True)], fh, indent=1)
