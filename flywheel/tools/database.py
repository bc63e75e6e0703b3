"""Tools on a working copy of an SQLite database."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="sqlstore")
_FILE = Parameter(name="file", description="a file of the workspace")
_TABLE = Parameter(name="table", description="a table of the database")
_COLUMN = Parameter(name="column", description="a column of the table")
_PARENT = Parameter(name="parent", description="the table whose column of that name is referred to")

DATABASE_TOOLS = (
    _tool(
        name="open-database",
        description="make a working copy of a database and show its tables",
        parameters=(_FILE,),
    ),
    _tool(
        name="drop-duplicates",
        description="keep one row for each value of a column",
        parameters=(_TABLE, _COLUMN, choice("keep", "the row by rowid", "first", "last")),
    ),
    _tool(
        name="drop-orphans",
        description="delete rows whose column has a value that the parent has not",
        parameters=(_TABLE, _COLUMN, _PARENT),
    ),
    _tool(
        name="attach-orphans",
        description="set the column where it has a value that the parent has not",
        parameters=(
            _TABLE,
            _COLUMN,
            _PARENT,
            Parameter(name="value", description="what to set it to"),
        ),
    ),
    _tool(
        name="to-cents",
        description="change a column from decimal text to INTEGER, a hundred times as much",
        parameters=(_TABLE, _COLUMN, choice("ties", "where halves go", "half-even", "half-up")),
    ),
    _tool(
        name="to-iso-dates",
        description="change dates like 05-11-2026 to year, month and day like 2026-11-05",
        parameters=(_TABLE, _COLUMN, choice("first", "what they start with", "day", "month")),
    ),
    _tool(
        name="rename-column",
        description="give a column another name",
        parameters=(_TABLE, _COLUMN, Parameter(name="to", description="the new name")),
    ),
    _tool(
        name="add-column",
        description="add a text column that is not null",
        parameters=(
            _TABLE,
            _COLUMN,
            Parameter(name="default", description="its default, and the rows' value"),
        ),
    ),
    _tool(
        name="add-unique-index",
        description="make the values of a column unique by an index",
        parameters=(_TABLE, _COLUMN),
    ),
    _tool(name="save-database", description="save the working copy", parameters=(_FILE,)),
)
