"""Works out due days one day at a time: `python3 deadlines.py JSON`."""

import csv
import json
import sys
from datetime import datetime, timedelta, timezone

given = json.loads(sys.argv[1])
rules = set(given["rules"])
zone = timezone(timedelta(hours=given["hours"] if "in-zone" in rules else 0))
closed = set()
if "skip-holidays" in rules:
    with open(given["holidays"]) as stream:
        closed = {line.strip() for line in stream}


def counts(day):
    if "working-days" in rules and day.isoweekday() > 5:
        return False
    return day.isoformat() not in closed


def step(day, number):
    return day + timedelta(days=number)


def due(start, number):
    day, clock = start.split(" ")
    left, middle, year = day.split("/")
    if "day-first" in rules:
        left, middle = middle, left
    utc = datetime.fromisoformat(f"{year}-{left}-{middle}T{clock}:00+00:00")
    day = step(utc.astimezone(zone).date(), -1 if "count-start" in rules else 0)
    for _ in range(number):
        day = step(day, 1)
        while not counts(day):
            day = step(day, 1)
    if "to-monday" in rules and day.isoweekday() > 5:
        day = step(day, 8 - day.isoweekday())
    if "to-friday" in rules and day.isoweekday() > 5:
        day = step(day, 5 - day.isoweekday())
    return day.isoformat()


with open(given["source"], newline="") as stream:
    header, *jobs = csv.reader(stream)
rows = [(due(start, int(number)), name) for name, start, number in jobs]
if "drop-past" in rules:
    rows = [row for row in rows if not row[0] < given["today"]]
rows.sort(reverse="earliest-first" not in rules)
with open(given["output"], "w", newline="") as stream:
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
    writer.writerow([header[0], "due"])
    writer.writerows((name, day) for day, name in rows)
