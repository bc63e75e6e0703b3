import os
keep = set(open("cabin.txt").read().splitlines())
rules = [l.split() for l in open("lotus.txt").read().splitlines()]
rules.sort(key=lambda r: r[0].endswith("/"))   # folders are checked before endings
todo = []
for base, _, names in os.walk("pewter"):
    todo += [base + "/" + n for n in names]
for path in todo:
    if path in keep:
        continue
    for pat, octal in reversed(rules):
        if pat.endswith("/"):
            ok = path.startswith(pat)
        else:
            ok = path.endswith(pat)
        if ok:
            os.chmod(path, os.stat(path).st_mode & 0o7777 | int(octal, 8))
            break
