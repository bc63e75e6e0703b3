import json, re
data, sec = {}, None
for line in open("dahlia.ini"):
    line = line.strip()
    if not line:
        continue
    m = re.fullmatch(r"\[(.+)\]", line)
    if m:
        sec = m.group(1)
        continue
    k, v = (x.strip() for x in line.split("=", 1))
    data[sec + "." + k] = v
first = next(iter(data))
data["orchard.bison"] = data.pop("orchard.cabin")
del data[first]
data["orchard.juniper"] = int(data["orchard.juniper"]) * 1000
json.dump(data, open("hammer.json", "w"), indent=4, sort_keys=True)
