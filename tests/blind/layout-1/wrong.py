from pathlib import Path
import shutil
shutil.copytree('lotus', 'fountain')
F = Path('fountain')
def ls():
    return sorted((p for p in F.rglob('*') if p.is_file()), key=lambda p: p.as_posix())
for p in ls():
    if 'dahlia' not in p.read_text().splitlines():
        p.unlink()
seen = set()
for p in ls():
    b = p.read_bytes()
    if b in seen: p.unlink()
    seen.add(b)
for p in ls():
    t = F / p.name
    if p == t: continue
    if t.exists(): p.unlink()
    else: p.rename(t)
for p in ls():
    low = p.with_name(p.name.lower())
    if low == p: continue
    if low.exists(): p.unlink()      # name already taken
    else: p.rename(low)
for p in ls():
    d = F / p.suffix[1:]
    d.mkdir(exist_ok=True)
    p.rename(d / p.name)
