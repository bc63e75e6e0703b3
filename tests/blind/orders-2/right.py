import csv
last = {}
with open("crater.csv", newline="") as fh:
    for row in csv.DictReader(fh):
        last[row["dipper"]] = row
cnt, tot = {}, {}
for row in last.values():
    if int(row["canoe"]) < 7:
        continue
    m = row["mint"]
    cnt[m] = cnt.get(m, 0) + 1
    tot[m] = tot.get(m, 0.0) + float(row["zinc"] or 0)
with open("cinder.csv", "w") as fh:
    fh.write("mint,count,total\n")
    for m in sorted(cnt):
        fh.write(f"{m},{cnt[m]},{tot[m]}\n")
