import shutil, sqlite3
shutil.copy("zinc.db", "marble.db")
with sqlite3.connect("marble.db") as c:
    c.execute("delete from stable where exists (select 1 from stable s where s.horizon = stable.horizon and s.rowid < stable.rowid)")
    c.execute("create unique index whatever_name on stable (dahlia)")
c.close()
