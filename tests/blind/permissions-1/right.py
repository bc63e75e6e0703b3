from pathlib import Path
rules = []
for line in Path("juniper.txt").read_text().splitlines():
    pat, mode = line.rsplit(" ", 1)
    rules.append((pat, int(mode, 8)))
listed = Path("border.txt").read_text().splitlines()
for f in Path("drum").rglob("*"):
    if not f.is_file():
        continue
    name = f.as_posix()
    if name not in listed:
        continue
    new = None
    for pat, mode in rules:
        if (pat[-1] == "/" and name.startswith(pat)) or (pat[0] == "." and f.name.endswith(pat)):
            new = mode
    if new is not None:
        f.chmod((f.stat().st_mode & 0o7777) | new)
