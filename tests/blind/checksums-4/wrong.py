import os
from itertools import groupby
path = lambda l: l.split(b" ", 2)[2]
lines = [l for l in open("jasmine.txt", "rb").read().split(b"\n") if l]
# one line for each run of the same path, the last one
lines = [list(g)[-1] for _, g in groupby(lines, key=path)]
lines = [l for l in lines if os.path.isfile(path(l).decode())]
lines.sort(key=path)
open("jasmine.txt", "wb").write(b"".join(k + b"\n" for k in lines))
