"""Follows a list of steps on one table in its own way: `python3 walk.py JSON`."""

import csv
import json
import sys
from fractions import Fraction

plan = json.loads(sys.argv[1])
rows, columns = [], []


def value(row, column):
    return Fraction(row.get(column) or 0)


def whole(number, ties):
    below = number.numerator // number.denominator
    rest = number - below
    if rest * 2 == 1:
        return below + 1 if ties == "half-up" or below % 2 else below
    return below + (rest * 2 > 1)


def shown(number):
    return int(number) if number.denominator == 1 else float(number)


def group(by, column=None):
    global rows, columns
    groups = {name: [r for r in rows if r[by] == name] for name in {r[by] for r in rows}}
    columns = [by, "count", "total"] if column else [by, "count"]
    rows = [{by: name, "count": len(members)} for name, members in sorted(groups.items())]
    for row in rows if column else ():
        row["total"] = shown(sum(value(member, column) for member in groups[row[by]]))


for step in plan["steps"]:
    tool, named = step["tool"], step["arguments"]
    column = named.get("column")
    if tool == "read-csv":
        with open(named["file"], newline="") as stream:
            reader = csv.DictReader(stream)
            rows, columns = list(reader), list(reader.fieldnames)
    elif tool == "read-log":
        with open(named["file"]) as stream:
            rows = [dict(pair.split("=") for pair in line.split()) for line in stream]
    elif tool == "deduplicate":
        wanted = rows if named["keep"] == "last" else rows[::-1]
        chosen = {id(row) for row in {row[column]: row for row in wanted}.values()}
        rows = [row for row in rows if id(row) in chosen]
    elif tool == "drop-missing":
        rows = [row for row in rows if row.get(column)]
    elif tool == "keep-equal":
        rows = [row for row in rows if row.get(column) == named["value"]]
    elif tool == "drop-equal":
        rows = [row for row in rows if row.get(column) != named["value"]]
    elif tool == "keep-at-least":
        rows = [row for row in rows if value(row, column) >= Fraction(named["value"])]
    elif tool == "round":
        for row in rows:
            if row.get(column):
                row[column] = str(whole(Fraction(row[column]), named["ties"]))
    elif tool in ("summarise", "count"):
        group(**named)
    elif tool == "sort":
        sign = -1 if named["order"] == "descending" else 1
        rows.sort(key=lambda row: (sign * value(row, columns[-1]), row[columns[0]]))
    elif tool == "write-csv":
        with open(named["file"], "w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows([row[name] for name in columns] for row in rows)
    elif tool == "write-json":
        with open(named["file"], "w") as stream:
            json.dump(rows, stream)
    else:
        sys.exit(f"no step {tool}")
