import shutil, sqlite3
with sqlite3.connect("zinc.db") as c:
    c.execute("delete from stable where exists (select 1 from stable s where s.horizon = stable.horizon and s.rowid < stable.rowid)")
    c.execute("create unique index whatever_name on stable (dahlia)")
c.close()
shutil.copy("zinc.db", "marble.db")
