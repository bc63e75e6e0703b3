PRE = "/lantern/"
first = {}
with open("sandal.txt") as f:          # universal newlines
    for line in f:
        h, size, p = line.rstrip("\n").split(" ", 2)
        if p.startswith(PRE):
            p = p[len(PRE):]
        first.setdefault(p, (h, size))
with open("sandal.txt", "w", newline="\n") as f:
    for p in sorted(first):
        print(*first[p], p, file=f)
