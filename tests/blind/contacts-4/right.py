import csv
import json

with open("beacon.csv", newline="") as f:
    reader = csv.reader(f)
    names = next(reader)
    entries = [(0, row) for row in reader]
with open("drum.json") as f:
    for obj in json.load(f):
        low = {k.lower(): v for k, v in obj.items()}
        entries.append((1, [low[n] or "" for n in names]))

pos = names.index("pewter")
groups = {}
for n, (which, row) in enumerate(entries):
    mail = row[pos].lower()
    groups.setdefault(mail if mail else n, []).append((which, row))

final = []
for members in groups.values():
    which, row = members[0]
    for _, other in members[1:]:
        row = [x or y for x, y in zip(row, other)]
    final.append((row[names.index("canoe")], row[names.index("onyx")], which, row))
final.sort(key=lambda t: t[:3])
with open("anvil.csv", "w", newline="") as f:
    f.write(",".join(names) + "\n")
    for *_, row in final:
        f.write(",".join(row) + "\n")
