import pathlib
rules = {}
for l in open("ivory.txt"):
    k, v = l.split()
    rules[k] = int(v, base=8)
for f in [x for x in pathlib.Path("pewter").glob("**/*") if x.is_file()]:
    t = str(f)
    hit = [v for k, v in rules.items() if (k[-1] == "/" and t.startswith(k)) or (k[0] == "." and t.endswith(k))]
    old = f.stat().st_mode & 0o777
    if not hit:
        f.chmod(old | 0o644)
    elif len(hit) == 1:
        f.chmod(old | hit[0])
