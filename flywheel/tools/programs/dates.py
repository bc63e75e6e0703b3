"""Tools on jobs that take days, kept in `.jobs.json` between calls. Runs inside a sandbox.

A job has its cells, a start (a time) once starts are read and a due day once days are counted.
Literals are printed in backticks, as goals print them. No clock is read.
"""

import csv
import json
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

STATE = ".jobs.json"
WRITTEN = {"month-first": "%m/%d/%Y %H:%M", "day-first": "%d/%m/%Y %H:%M"}
DAY = timedelta(days=1)
SATURDAY = 5
MOST_DAYS = 10_000


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def open_text(path, mode="r"):
    """Open a workspace file, or refuse."""
    try:
        return Path(path).open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise Refused(f"cannot open `{path}`: {error.strerror}") from None


def load():
    """Return what is known: columns, jobs, and the days that do not count."""
    try:
        return json.loads(Path(STATE).read_text("utf-8"))
    except (OSError, ValueError):
        raise Refused("no jobs are loaded") from None


def save(state):
    """Keep it for the next call."""
    with open_text(STATE, "w") as stream:
        json.dump(state, stream)
    return "done"


def position(state, column):
    """Return a column's position, or refuse."""
    if column not in state["columns"]:
        raise Refused(f"no column `{column}`")
    return state["columns"].index(column)


def known(state, what):
    """Refuse unless each job has a start, or a due day."""
    if any(what not in job for job in state["jobs"]):
        raise Refused({"start": "no starts are read", "due": "no days are counted"}[what])


def parsed(read, text, kind):
    """Read a text by a function, or refuse it as no such kind of thing."""
    try:
        return read(text)
    except (ValueError, OverflowError):
        raise Refused(f"`{text}` is not {kind}") from None


def read_jobs(file):
    """Load a CSV file of jobs."""
    with open_text(file) as stream:
        try:
            rows = [row for row in csv.reader(stream) if row]
        except (ValueError, csv.Error):
            rows = []
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise Refused(f"`{file}` is not a table")
    jobs = [{"cells": row} for row in rows[1:]]
    save({"columns": rows[0], "jobs": jobs, "weekends": True, "skipped": []})
    return f"columns {' '.join(f'`{name}`' for name in rows[0])}"


def read_starts(column, written):
    """Take each job's start from a cell."""
    state = load()
    at = position(state, column)
    for job in state["jobs"]:
        text = job["cells"][at]
        time = parsed(lambda text: datetime.strptime(text, WRITTEN[written]), text, "such a time")
        job["start"] = time.isoformat()
    return save(state)


def shift_hours(hours):
    """Move all starts."""
    state = load()
    known(state, "start")
    shift = parsed(lambda text: timedelta(hours=int(text)), hours, "a number of hours")
    for job in state["jobs"]:
        start = parsed(lambda text: datetime.fromisoformat(text) + shift, job["start"], "movable")
        job["start"] = start.isoformat()
    return save(state)


def skip_weekends():
    """Let Saturdays and Sundays not count from now on."""
    return save(load() | {"weekends": False})


def skip_dates(file):
    """Let the dates of a file, one a line, not count from now on."""
    state = load()
    with open_text(file) as stream:
        lines = parsed(lambda text: stream.read().split(), file, "a text")
    for line in lines:
        parsed(date.fromisoformat, line, "a date")
    return save(state | {"skipped": lines})


def last_day(day, number, state):
    """Return the last of so many counted days, `day` being the first that may count."""
    skipped = {date.fromisoformat(text) for text in state["skipped"]}
    while True:
        if (state["weekends"] or day.weekday() < SATURDAY) and day not in skipped:
            number -= 1
            if not number:
                return day
        day += DAY


def count_days(column, begin):
    """Count as many days as a cell says, from the start; each job is due on the last one."""
    state = load()
    known(state, "start")
    at = position(state, column)
    for job in state["jobs"]:
        number = parsed(int, job["cells"][at], "a number of days")
        if not 1 <= number <= MOST_DAYS:
            raise Refused(f"`{number}` is not between 1 and {MOST_DAYS} days")
        first = datetime.fromisoformat(job["start"]).date()
        try:
            day = last_day(first if begin == "start-day" else first + DAY, number, state)
        except OverflowError:
            raise Refused("the calendar ends before a due day") from None
        job["due"] = day.isoformat()
    return save(state)


def move_weekends(to):
    """Move due days from a weekend to the Monday after or the Friday before."""
    state = load()
    known(state, "due")
    for job in state["jobs"]:
        day = date.fromisoformat(job["due"])
        while day.weekday() >= SATURDAY:
            day = day + DAY if to == "monday" else day - DAY
        job["due"] = day.isoformat()
    return save(state)


def drop_due(date, when):
    """Drop the jobs due before a day, or also those due on it."""
    state = load()
    known(state, "due")
    day = parsed(datetime.fromisoformat, date, "a date").date().isoformat()
    keep = [j for j in state["jobs"] if j["due"] > day or (when == "before" and j["due"] == day)]
    return save(state | {"jobs": keep})


def sort_jobs(column, order):
    """Sort the jobs by due day, equal ones by a cell, rising."""
    state = load()
    known(state, "due")
    at = position(state, column)
    state["jobs"].sort(key=lambda job: job["cells"][at])
    state["jobs"].sort(key=lambda job: job["due"], reverse=order == "latest")
    return save(state)


def write_due(column, file):
    """Save a column and the due days as CSV."""
    state = load()
    known(state, "due")
    at = position(state, column)
    with open_text(file, "w") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column, "due"])
        writer.writerows([job["cells"][at], job["due"]] for job in state["jobs"])
    return "written"


COMMANDS = {
    "read-jobs": read_jobs,
    "read-starts": read_starts,
    "shift-hours": shift_hours,
    "skip-weekends": skip_weekends,
    "skip-dates": skip_dates,
    "count-days": count_days,
    "move-weekends": move_weekends,
    "drop-due": drop_due,
    "sort-jobs": sort_jobs,
    "write-due": write_due,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except Refused as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
