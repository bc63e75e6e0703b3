import glob, os, re, shutil
os.mkdir('turnip')
taken = set()
for p in sorted(glob.glob('flint/**/*', recursive=True)):
    if not os.path.isfile(p) or 'goblet' not in open(p).read().splitlines():
        continue
    n = os.path.basename(p).lower()
    if n in taken:
        continue
    taken.add(n)
    month = re.search(r'(\d{4}-\d\d)-\d\d', n).group(1)
    os.makedirs('turnip/' + month, exist_ok=True)
    shutil.copyfile(p, 'turnip/' + month + '/' + n)
