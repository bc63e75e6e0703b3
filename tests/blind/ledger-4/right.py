import shutil, sqlite3
from decimal import Decimal
shutil.copyfile("lava.db", "reef.db")
c = sqlite3.connect("reef.db", isolation_level=None)
c.execute("begin")
c.execute('DELETE FROM hazel WHERE rowid NOT IN (SELECT MIN(rowid) FROM hazel GROUP BY onyx)')
c.execute("UPDATE hazel SET cotton='ivory' WHERE cotton NOT IN (SELECT cotton FROM cabin)")
data = c.execute("SELECT rowid, mallard, onyx, cotton, bridge, sparrow FROM hazel").fetchall()
c.execute('ALTER TABLE hazel RENAME TO "hazel_old"')
c.execute('CREATE TABLE "hazel" ("mallard" TEXT, "onyx" TEXT, "cotton" TEXT, "bridge" TEXT, "sparrow" INTEGER)')
for rid, *rest, amount in data:
    c.execute("INSERT INTO hazel (rowid, mallard, onyx, cotton, bridge, sparrow) VALUES (?,?,?,?,?,?)",
              (rid, *rest, round(Decimal(amount) * 100)))
c.execute('DROP TABLE "hazel_old"')
c.execute("commit")
c.close()
