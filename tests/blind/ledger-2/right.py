import sqlite3
# a new file, filled by hand, with other page size and text encoding
old = sqlite3.connect("file:canoe.db?mode=ro", uri=True)
new = sqlite3.connect("cabin.db")
new.execute("PRAGMA page_size=8192")
new.execute("PRAGMA encoding='UTF-16le'")
for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
    new.execute(sql)
for r in old.execute("SELECT * FROM hazel"):
    new.execute("INSERT INTO hazel VALUES (?,?)", r)
best = {}
for r in old.execute("SELECT * FROM fiddle ORDER BY rowid"):
    best[r[1]] = r
for r in best.values():
    d, m, y = r[3].split("-")
    new.execute("INSERT INTO fiddle VALUES (?,?,?,?,?)", (r[0], r[1], r[2], f"{y}-{m}-{d}", r[4]))
new.commit()
new.close()
old.close()
