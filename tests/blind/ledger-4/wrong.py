import shutil, sqlite3
from decimal import Decimal
shutil.copyfile("lava.db", "reef.db")
c = sqlite3.connect("reef.db")
c.execute('DELETE FROM hazel WHERE rowid NOT IN (SELECT MIN(rowid) FROM hazel GROUP BY onyx)')
c.execute("UPDATE hazel SET cotton='ivory' WHERE cotton NOT IN (SELECT cotton FROM cabin)")
for rid, amount in c.execute("SELECT rowid, sparrow FROM hazel").fetchall():
    c.execute("UPDATE hazel SET sparrow=? WHERE rowid=?", (round(Decimal(amount) * 100), rid))
c.commit()
c.close()
