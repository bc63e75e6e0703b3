"""Tools on jobs that take days: CSV in, due days out. No clock is read."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="dates")
_FILE = Parameter(name="file", description="a file of the workspace")
_COLUMN = Parameter(name="column", description="a column of the jobs")

CALENDAR_TOOLS = (
    _tool(name="read-jobs", description="load a CSV file of jobs", parameters=(_FILE,)),
    _tool(
        name="read-starts",
        description="take the starts from a column of times",
        parameters=(
            _COLUMN,
            choice("written", "how their dates are written", "month-first", "day-first"),
        ),
    ),
    _tool(
        name="shift-hours",
        description="move all starts by hours",
        parameters=(Parameter(name="hours", description="how many"),),
    ),
    _tool(name="skip-weekends", description="let Saturdays and Sundays not count"),
    _tool(
        name="skip-dates",
        description="let the dates in a file not count",
        parameters=(_FILE,),
    ),
    _tool(
        name="count-days",
        description="count days from the starts; each job is due on the last one",
        parameters=(
            _COLUMN,
            choice("begin", "the first day that may count", "next-day", "start-day"),
        ),
    ),
    _tool(
        name="move-weekends",
        description="move due days off Saturdays and Sundays",
        parameters=(choice("to", "the day next to the weekend", "monday", "friday"),),
    ),
    _tool(
        name="drop-due",
        description="drop jobs by their due day",
        parameters=(
            Parameter(name="date", description="a date, YYYY-MM-DD"),
            choice("when", "those due before it, or on it too", "before", "before-or-on"),
        ),
    ),
    _tool(
        name="sort-jobs",
        description="sort by due day, equal ones by a column",
        parameters=(_COLUMN, choice("order", "which come first", "earliest", "latest")),
    ),
    _tool(
        name="write-due",
        description="save a column and the due days as CSV",
        parameters=(_COLUMN, _FILE),
    ),
)
