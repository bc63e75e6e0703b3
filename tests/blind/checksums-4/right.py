import os
lines = open("jasmine.txt", "rb").read().split(b"\n")
last = {}
for line in lines:
    if line:
        last[line.split(b" ", 2)[2]] = line
kept = [last[p] for p in sorted(last) if os.path.isfile(p.decode())]
open("jasmine.txt", "wb").write(b"".join(k + b"\n" for k in kept))
