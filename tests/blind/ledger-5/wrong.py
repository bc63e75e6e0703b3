import shutil, sqlite3
shutil.copyfile("beacon.db", "quill.db")
c = sqlite3.connect("quill.db")
c.execute("ALTER TABLE onyx ADD COLUMN plume TEXT DEFAULT 'window'")
c.execute('CREATE UNIQUE INDEX "onyx border" ON onyx("border")')
c.commit()
c.close()
