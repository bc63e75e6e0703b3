import re, shutil
from pathlib import Path
out = Path('turnip'); out.mkdir()
taken = set()
items = sorted((p.as_posix(), p) for p in Path('flint').rglob('*') if p.is_file())
def lowered(p):
    return p.with_name(p.name.lower())
# rules in order: mark, small letters, then flatten by path (with the new names)
kept = [p for _, p in items if 'goblet' in p.read_text().splitlines()]
for p in sorted(kept, key=lambda p: lowered(p).as_posix()):
    n = p.name.lower()
    if n in taken:
        continue
    taken.add(n)
    month = re.search(r'(\d{4}-\d\d)-\d\d', n).group(1)
    (out / month).mkdir(exist_ok=True)
    shutil.copyfile(p, out / month / n)
