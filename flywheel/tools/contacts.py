"""Tools on lists of contacts: CSV and JSON in, one merged CSV out."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="addresses")
_FILE = Parameter(name="file", description="a file of the workspace")
_COLUMN = Parameter(name="column", description="a column of the first file")

CONTACT_TOOLS = (
    _tool(
        name="read-contacts", description="load the rows of a CSV or JSON file", parameters=(_FILE,)
    ),
    _tool(
        name="add-contacts",
        description="add the rows of a second file, whatever the case of its column names",
        parameters=(_FILE,),
    ),
    _tool(
        name="drop-without", description="drop rows where a column is empty", parameters=(_COLUMN,)
    ),
    _tool(
        name="match-contacts",
        description="group rows whose values in a column are the same and not empty",
        parameters=(
            _COLUMN,
            choice("compare", "what has to be the same", "text", "text-in-any-case", "digits"),
        ),
    ),
    _tool(
        name="prefer",
        description="put one row of each group first by a column of dates",
        parameters=(_COLUMN, choice("date", "which one", "latest", "earliest")),
    ),
    _tool(
        name="fill-gaps",
        description="fill what is empty in the first row of each group from its other rows",
    ),
    _tool(
        name="keep-contacts",
        description="keep rows that have a match, or those that have none",
        parameters=(choice("which", "those that stay", "matched", "unmatched"),),
    ),
    _tool(name="unite", description="keep the first row of each group"),
    _tool(
        name="sort-contacts",
        description="sort by a column, equal rows by another one",
        parameters=(_COLUMN, Parameter(name="then", description="the column for equal rows")),
    ),
    _tool(name="write-contacts", description="save the rows as CSV", parameters=(_FILE,)),
)
