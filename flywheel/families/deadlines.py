"""Jobs with a start and a number of days → CSV of due days.

Goal: Work out when the jobs in `reef.csv` are due. `oak` is a time in UTC, written month/day/year
hour:minute. The start day is its date in UTC. Only days from Monday to Friday count. Number the
days that count: 1 is the first one after the start day. The due day is the one whose number is
`plume`. Save `dune` and the due day as YYYY-MM-DD (columns: `dune`, due) in `cider.csv`.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate
from random import Random
from typing import NamedTuple

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.calendar import CALENDAR_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall


class Job(NamedTuple):
    """A row: its date is written as two numbers and the year, which is the file's."""

    name: str
    written: tuple[int, int]
    """Month and day, or day and month: at most 12, so that both can be read."""
    minute: int
    """Of the day, in UTC."""
    days: int


@dataclass(frozen=True)
class Schedule:
    """A file of jobs, a file of holidays where a rule names one, and a day to compare with."""

    source: str
    holidays_file: str
    output: str
    columns: tuple[str, str, str]
    """Names of: job, start, days."""
    jobs: tuple[Job, ...]
    year: int
    hours: int
    """How far a zone is ahead of UTC."""
    holidays: tuple[date, ...]
    """From Tuesday to Thursday, sorted; empty: there is no such file."""
    today: date
    thing: str
    """What a row is, in the singular."""


_MOVES = frozenset({"to-monday", "to-friday"})


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Schedule:
    """Draw jobs with something due today, and on both days of a weekend where a rule moves it."""
    readings = [rules, *(rules - {rule} for rule in rules if "drop-past" in rules)]
    while True:
        case = _draw(rules, rng, lexicon)
        due = [{_due(case, job, some) for job in case.jobs} for some in readings]
        days = {_due(case, job, rules - _MOVES).weekday() for job in case.jobs}
        today = sorted(set.intersection(*due))
        if today and (not rules & _MOVES or days >= {5, 6}):
            return replace(case, today=today[len(today) // 2])


def _draw(rules: Rules, rng: Random, lexicon: Lexicon) -> Schedule:
    """Draw 16 to 20 jobs, the first of which starts at midnight in the zone."""
    words, year = lexicon.words(rng, 6), lexicon.number(rng, 2021, 2035)
    names = [f"{words[3][:2]}{number}" for number in rng.sample(range(100, 999), 20)]
    hours = lexicon.number(rng, 3, 11)
    jobs = tuple(
        Job(
            name=name,
            written=(rng.randrange(4, 10), rng.randrange(4, 10)),
            minute=rng.randrange(24 * 60) if number else (24 - hours) * 60,
            days=rng.randrange(3, 16),
        )
        for number, name in enumerate(names[: rng.randrange(16, 21)])
    )
    middle = [date(year, month, day) for month in range(4, 11) for day in range(1, 29)]
    midweek = [day for day in middle if day.weekday() in (1, 2, 3)]
    return Schedule(
        source=f"{words[0]}.csv",
        holidays_file=f"{words[1]}.txt",
        output=f"{words[2]}.csv",
        columns=(words[3], words[4], words[5]),
        jobs=jobs,
        year=year,
        hours=hours,
        holidays=tuple(sorted(rng.sample(midweek, 24))) if "skip-holidays" in rules else (),
        today=date(year, 1, 1),
        thing=lexicon.thing or "job",
    )


def inputs(case: Schedule) -> tuple[File, ...]:
    """Return the CSV file and, where there is one, the list of holidays."""
    lines = [",".join(case.columns)]
    for name, (one, other), minute, days in case.jobs:
        time = f"{minute // 60:02d}:{minute % 60:02d}"
        lines.append(f"{name},{one:02d}/{other:02d}/{case.year} {time},{days}")
    jobs = File(path=case.source, content="\n".join(lines) + "\n")
    if not case.holidays:
        return (jobs,)
    holidays = "".join(f"{day.isoformat()}\n" for day in case.holidays)
    return (jobs, File(path=case.holidays_file, content=holidays))


_SENTENCES = {
    "day-first": (
        "{start} is a time in UTC, written day/month/year hour:minute.",
        "{start} is in UTC and has the day in front: day/month/year hour:minute.",
    ),
    "in-zone": (
        "The start day is the date that it then is in a zone {hours} hours ahead of UTC.",
        "Take the start day from that time plus {hours} hours, which is local time.",
    ),
    "working-days": (
        "Only days from Monday to Friday count.",
        "Saturdays and Sundays do not count.",
    ),
    "skip-holidays": (
        "Dates in {holidays} do not count.",
        "A date that {holidays} lists does not count.",
    ),
    "count-start": (
        "Number the days that count: 1 is the start day or, if it does not count, the next to do.",
        "Number the days that count, the start day included if it does: the first one is 1.",
    ),
    "to-monday": (
        "A due day on a Saturday or Sunday moves to the Monday after.",
        "What would be due on a weekend is due on the Monday after it.",
    ),
    "to-friday": (
        "A due day on a Saturday or Sunday moves to the Friday before.",
        "What would be due on a weekend is due on the Friday before it.",
    ),
    "drop-past": (
        "Today is {today}: leave out what was due before today.",
        "Leave out what was due earlier than today, {today}.",
    ),
    "earliest-first": (
        "Sort by due day, earliest first, equal ones by {job}.",
        "The earliest due day comes first; equal ones go by {job}.",
    ),
}
_PLAIN = {
    "day-first": "{start} is a time in UTC, written month/day/year hour:minute.",
    "in-zone": "The start day is its date in UTC.",
    "working-days": "Saturdays and Sundays count like other days.",
    "count-start": "Number the days that count: 1 is the first one after the start day.",
}
"""What holds where a rule does not: it is said in the rule's place."""


def goal(case: Schedule, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the file, what a start is, which days count, what becomes of them, and the output."""
    job, start, days = (f"`{name}`" for name in case.columns)
    literals = {
        "job": job,
        "start": start,
        "hours": f"`{case.hours}`",
        "holidays": f"`{case.holidays_file}`",
        "today": f"`{case.today.isoformat()}`",
    }
    said = say(_SENTENCES, rules - {"earliest-first"}, rng, ("rows",), **literals)
    said |= say(_SENTENCES, rules & {"earliest-first"}, rng, ("order",), **literals)
    said |= {
        rule: Requirement(sentence=sentence.format(**literals), checks=("rows",))
        for rule, sentence in _PLAIN.items()
        if rule not in rules
    }
    ordered = [said[rule] for rule in _SENTENCES if rule in said]
    counted = ordered.index(said["count-start"]) + 1
    opening = rng.choice(("Work out when the {}s in", "Find the due days of the {}s in"))
    order = "" if "earliest-first" in rules else ", rows in any order"
    return (
        Requirement(
            sentence=f"{opening.format(case.thing)} `{case.source}`"
            f"{' are due' if 'when' in opening else ''}; no file that is there may change.",
            checks=("input-unchanged",),
        ),
        *ordered[:counted],
        Requirement(sentence=f"The due day is the one whose number is {days}.", checks=("rows",)),
        *ordered[counted:],
        Requirement(
            sentence=f"Save {job} and the due day as YYYY-MM-DD (columns: {job}, due) in "
            f"`{case.output}`{order}.",
            checks=("exists", "columns", "rows"),
        ),
    )


def reference(case: Schedule, rules: Rules) -> Script:
    """Read, take the starts, say what counts, count, move, drop, sort, write."""
    job, start, days = case.columns
    written = "day-first" if "day-first" in rules else "month-first"
    begin = "start-day" if "count-start" in rules else "next-day"
    today = case.today.isoformat()
    steps = (
        ("", _call("read-jobs", file=case.source)),
        ("", _call("read-starts", column=start, written=written)),
        ("in-zone", _call("shift-hours", hours=str(case.hours))),
        ("working-days", _call("skip-weekends")),
        ("skip-holidays", _call("skip-dates", file=case.holidays_file)),
        ("", _call("count-days", column=days, begin=begin)),
        ("to-monday", _call("move-weekends", to="monday")),
        ("to-friday", _call("move-weekends", to="friday")),
        ("drop-past", _call("drop-due", date=today, when="before")),
        ("drop-today-too", _call("drop-due", date=today, when="before-or-on")),
        ("earliest-first", _call("sort-jobs", column=job, order="earliest")),
        ("latest-first", _call("sort-jobs", column=job, order="latest")),
        ("", _call("write-due", column=job, file=case.output)),
    )
    return tuple(call for rule, call in steps if not rule or rule in rules)


def _call(tool: str, **arguments: str) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def alternative(case: Schedule, rules: Rules) -> Script:
    """Solve it by a program of its own, one day at a time."""
    arguments = {
        "source": case.source,
        "holidays": case.holidays_file,
        "output": case.output,
        "rules": sorted(rules),
        "hours": case.hours,
        "today": case.today.isoformat(),
    }
    return by_python("deadlines", arguments)


_HORIZON = 400
"""Days after the start among which a due day is looked for."""


def _due(case: Schedule, job: Job, rules: Rules) -> date:
    """Work one due day out in day numbers: 1 is a Monday, so 6 and 0 modulo 7 are the weekend."""
    month, day = job.written[::-1] if "day-first" in rules else job.written
    ahead = case.hours * 60 if "in-zone" in rules else 0
    first = date(case.year, month, day).toordinal() + (job.minute + ahead) // (24 * 60)
    first += "count-start" not in rules
    closed = {day.toordinal() for day in case.holidays if "skip-holidays" in rules}
    weekend = (6, 0) if "working-days" in rules else ()
    counts = [n % 7 not in weekend and n not in closed for n in range(first, first + _HORIZON)]
    due = first + bisect_left(list(accumulate(counts)), job.days)
    if "to-monday" in rules:
        due += {6: 2, 0: 1}.get(due % 7, 0)
    if "to-friday" in rules:
        due -= {6: 1, 0: 2}.get(due % 7, 0)
    return date.fromordinal(due)


def target(case: Schedule, rules: Rules) -> tuple[File, ...]:
    """Work the due days out without the tools, in the file's order or the one asked for."""
    rows = [(_due(case, job, rules), job.name) for job in case.jobs]
    if "drop-past" in rules:
        rows = [row for row in rows if row[0] >= case.today]
    if "drop-today-too" in rules:
        rows = [row for row in rows if row[0] > case.today]
    if {"earliest-first", "latest-first"} & rules:
        rows.sort(key=lambda row: row[1])
        rows.sort(key=lambda row: row[0], reverse="latest-first" in rules)
    lines = [f"{case.columns[0]},due", *(f"{name},{due.isoformat()}" for due, name in rows)]
    return (File(path=case.output, content="\n".join(lines) + "\n"),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Order counts only where a rule asks for one."""
    base = ("input-unchanged", "exists", "columns", "rows")
    return (*base, "order") if "earliest-first" in rules else base


FAMILY = Family(
    name="deadlines",
    tools=pick(CALENDAR_TOOLS, *(tool.name for tool in CALENDAR_TOOLS)),
    rules={
        "day-first": Axis.DATES,
        "in-zone": Axis.DATES,
        "working-days": Axis.UNITS,
        "skip-holidays": Axis.SCOPE,
        "count-start": Axis.UNITS,
        "to-monday": Axis.ROUNDING,
        "to-friday": Axis.ROUNDING,
        "drop-past": Axis.SCOPE,
        "earliest-first": Axis.ORDER,
    },
    neighbours={
        "to-monday": "to-friday",
        "to-friday": "to-monday",
        "drop-past": "drop-today-too",
        "earliest-first": "latest-first",
    },
    clashes=frozenset(frozenset({"working-days", to}) for to in ("to-monday", "to-friday")),
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.output,),
    protected=lambda case: tuple(file.path for file in inputs(case)),
    checks=checks,
)
