"""Tools on one table: CSV and logs in, CSV and JSON out."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="table")
_FILE = Parameter(name="file", description="a file of the workspace")
_COLUMN = Parameter(name="column", description="a column of the table")
_BY = Parameter(name="by", description="the column to group by")
_VALUE = Parameter(name="value", description="the value to compare with")

TABLE_TOOLS = (
    _tool(name="read-csv", description="load a CSV file as the table", parameters=(_FILE,)),
    _tool(
        name="read-log",
        description="load a log whose lines are key=value fields as the table",
        parameters=(_FILE,),
    ),
    _tool(
        name="deduplicate",
        description="keep one row for each value of a column",
        parameters=(_COLUMN, choice("keep", "which row stays", "first", "last")),
    ),
    _tool(
        name="drop-missing",
        description="drop rows where a column is empty",
        parameters=(_COLUMN,),
    ),
    _tool(
        name="keep-equal",
        description="keep rows where a column has this value",
        parameters=(_COLUMN, _VALUE),
    ),
    _tool(
        name="drop-equal",
        description="drop rows where a column has this value",
        parameters=(_COLUMN, _VALUE),
    ),
    _tool(
        name="keep-at-least",
        description="keep rows where a number is at least this value",
        parameters=(_COLUMN, _VALUE),
    ),
    _tool(
        name="round",
        description="round a column to whole numbers",
        parameters=(_COLUMN, choice("ties", "where halves go", "half-even", "half-up")),
    ),
    _tool(
        name="summarise",
        description="replace the table by one row a group: the group, count, total",
        parameters=(_BY, _COLUMN),
    ),
    _tool(
        name="count",
        description="replace the table by one row a group: the group, count",
        parameters=(_BY,),
    ),
    _tool(
        name="sort",
        description="sort the table's rows by their last column, a number",
        parameters=(choice("order", "the direction", "ascending", "descending"),),
    ),
    _tool(name="write-csv", description="save the table as CSV", parameters=(_FILE,)),
    _tool(name="write-json", description="save the table as JSON", parameters=(_FILE,)),
)
