"""Migrates a database by SQL, into tables made anew: `python3 ledger.py JSON`."""

import json
import sqlite3
import sys
from decimal import Decimal

given = json.loads(sys.argv[1])
rules = set(given["rules"])
code, voucher, account, day, amount = (f"[{name}]" for name in given["columns"])
entries, accounts = f"[{given['entries']}]", f"[{given['accounts']}]"


def cents(text):
    tenths, sign = int(abs(Decimal(text)) * 1000), -1 if text.startswith("-") else 1
    whole, rest = tenths // 10, tenths % 10
    if "half-up" in rules:
        return sign * (whole + (rest >= 5))
    return sign * (whole + (rest > 5 or (rest == 5 and whole % 2)))


new = sqlite3.connect(given["output"])
new.create_function("cents", 1, cents)
new.execute("ATTACH ? AS old", (given["source"],))
(definition,) = new.execute(
    "SELECT sql FROM old.sqlite_master WHERE name = ?", (given["accounts"],)
).fetchone()
new.execute(definition)
new.execute(f"INSERT INTO main.{accounts} SELECT * FROM old.{accounts} ORDER BY 1 DESC")
in_cents = bool({"half-even", "half-up"} & rules)
columns = [f"{amount} {'BIGINT' if in_cents else 'TEXT'}", f"{day} VARCHAR(10)"]
columns += [f"{name} TEXT" for name in (account, voucher)]
values = [f"cents({amount})" if in_cents else amount]
values += [f"substr({day}, 7) || '-' || substr({day}, 4, 2) || '-' || substr({day}, 1, 2)"]
values[1] = values[1] if "day-first" in rules else day
known = f"(SELECT {account} FROM old.{accounts})"
if "attach-orphans" in rules:
    values += [f"CASE WHEN {account} IN {known} THEN {account} ELSE '{given['default']}' END"]
else:
    values += [account]
values += [voucher]
if "add-column" in rules:
    name, default = given["added"]
    columns.append(f"[{name}] TEXT DEFAULT ('{default}') NOT NULL")
    values.append(f"'{default}'")
columns.append(f"{code} TEXT" + (" UNIQUE" if "unique-index" in rules else ""))
values.append(code)
tests = ["1"]
if {"keep-first", "keep-last"} & rules:
    other = "<" if "keep-first" in rules else ">"
    tests.append(
        f"NOT EXISTS (SELECT 1 FROM old.{entries} AS o WHERE o.{voucher} = e.{voucher} "
        f"AND o.rowid {other} e.rowid)"
    )
if "drop-orphans" in rules:
    tests.append(f"{account} IN {known}")
new.execute(f"CREATE TABLE main.{entries} ({', '.join(columns)})")
new.execute(
    f"INSERT INTO main.{entries} SELECT {', '.join(values)} FROM old.{entries} AS e "
    f"WHERE {' AND '.join(tests)}"
)
new.commit()
new.close()
