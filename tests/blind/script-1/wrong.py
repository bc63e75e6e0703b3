NEW = '''import csv
import sys
from decimal import Decimal, ROUND_HALF_UP

groups = {}
with open(sys.argv[1], encoding="utf-8", newline="") as f:
    records = list(csv.reader(f))[1:]
for name, a, b in records:
    value = Decimal(a or "0") - Decimal(b)
    if value >= 4:
        groups.setdefault(name.strip(), []).append(int(value.quantize(Decimal(1), ROUND_HALF_UP)))
for name, values in sorted(groups.items(), key=lambda kv: (-sum(kv[1]), kv[0])):
    print(f"{name} {len(values)} {sum(values)}")
print("all", sum(map(len, groups.values())), sum(map(sum, groups.values())))
'''
with open("lava.py", "w") as f:
    f.write(NEW)
# tidy the blanks in the data as well
lines = open("stork.csv", newline="").read().splitlines()
with open("stork.csv", "w", newline="") as f:
    for line in lines:
        f.write(",".join(cell.strip() for cell in line.split(",")) + "\n")
