import sqlite3
from decimal import Decimal, ROUND_HALF_UP

def cents(text):
    return None if text is None else int((Decimal(text) * 100).to_integral_value(ROUND_HALF_UP))

src = sqlite3.connect("file:carbon.db?mode=ro", uri=True)
dst = sqlite3.connect("lava.db")
src.backup(dst)
src.close()
dst.create_function("cents", 1, cents)
dst.executescript('''
DELETE FROM fountain WHERE onyx IS NOT NULL AND rowid NOT IN (SELECT max(rowid) FROM fountain GROUP BY onyx);
CREATE TABLE tmp_new ("cinder" TEXT, "onyx" TEXT, "baker" TEXT, "gravel" TEXT, "velvet" INTEGER);
INSERT INTO tmp_new SELECT cinder, onyx, baker, gravel, cents(velvet) FROM fountain;
DROP TABLE fountain;
ALTER TABLE tmp_new RENAME TO fountain;
VACUUM;
''')
dst.commit()
dst.close()
