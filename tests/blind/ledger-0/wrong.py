import shutil, sqlite3
from decimal import Decimal, ROUND_HALF_EVEN
shutil.copyfile("alder.db", "reef.db")
c = sqlite3.connect("reef.db")
rows = c.execute('SELECT coast, canoe, flint, quill, border FROM swallow ORDER BY rowid').fetchall()
parents = {r[0] for r in c.execute("SELECT flint FROM hazel")}
rows = [r for r in rows if r[2] in parents]
seen, kept = set(), []
for r in rows:
    if r[1] in seen:
        continue
    seen.add(r[1])
    kept.append(r)
c.execute("DROP TABLE swallow")
c.execute("""CREATE TABLE swallow (
    coast TEXT,
    canoe TEXT,
    flint TEXT,
    quill TEXT,
    border INTEGER
)""")
for r in reversed(kept):
    cents = int((Decimal(r[4]) * 100).quantize(Decimal(1), ROUND_HALF_EVEN))
    c.execute("INSERT INTO swallow VALUES (?,?,?,?,?)", (*r[:4], cents))
c.commit()
c.close()
