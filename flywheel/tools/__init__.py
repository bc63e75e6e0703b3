"""The tools an agent may be given: descriptions here, programs beside it in `programs/`.

A tool is a subcommand of a small program. The programs run inside the sandbox, use the standard
library only, keep their state in the workspace, and are the same for every policy.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from schemas.task import Parameter, ToolCall, ToolSpec

_FILE = Parameter(name="file", description="a file of the workspace")
_COLUMN = Parameter(name="column", description="a column of the table")
_BY = Parameter(name="by", description="the column to group by")
_VALUE = Parameter(name="value", description="the value to compare with")
_KEY = Parameter(name="key", description="a setting, as section.name")


def _choice(name: str, description: str, *choices: str) -> Parameter:
    return Parameter(name=name, description=description, choices=choices)


TABLE_TOOLS = (
    ToolSpec(name="read-csv", description="load a CSV file as the table", parameters=(_FILE,)),
    ToolSpec(
        name="read-log",
        description="load a log whose lines are key=value fields as the table",
        parameters=(_FILE,),
    ),
    ToolSpec(
        name="deduplicate",
        description="keep one row for each value of a column",
        parameters=(_COLUMN, _choice("keep", "which row stays", "first", "last")),
    ),
    ToolSpec(
        name="drop-missing",
        description="drop rows where a column is empty",
        parameters=(_COLUMN,),
    ),
    ToolSpec(
        name="keep-equal",
        description="keep rows where a column has this value",
        parameters=(_COLUMN, _VALUE),
    ),
    ToolSpec(
        name="drop-equal",
        description="drop rows where a column has this value",
        parameters=(_COLUMN, _VALUE),
    ),
    ToolSpec(
        name="keep-at-least",
        description="keep rows where a number is at least this value",
        parameters=(_COLUMN, _VALUE),
    ),
    ToolSpec(
        name="round",
        description="round a column to whole numbers",
        parameters=(_COLUMN, _choice("ties", "where halves go", "half-even", "half-up")),
    ),
    ToolSpec(
        name="summarise",
        description="replace the table by one row a group: the group, count, total",
        parameters=(_BY, _COLUMN),
    ),
    ToolSpec(
        name="count",
        description="replace the table by one row a group: the group, count",
        parameters=(_BY,),
    ),
    ToolSpec(
        name="sort",
        description="sort the table's rows by their last column, a number",
        parameters=(_choice("order", "the direction", "ascending", "descending"),),
    ),
    ToolSpec(name="write-csv", description="save the table as CSV", parameters=(_FILE,)),
    ToolSpec(name="write-json", description="save the table as JSON", parameters=(_FILE,)),
)
SETTINGS_TOOLS = (
    ToolSpec(name="read-ini", description="load an INI file as settings", parameters=(_FILE,)),
    ToolSpec(
        name="merge-ini",
        description="add the settings of another INI file",
        parameters=(
            _FILE,
            _choice("prefer", "whose value wins where both have one", "loaded", "added"),
        ),
    ),
    ToolSpec(
        name="rename-key",
        description="give a setting another name",
        parameters=(_KEY, Parameter(name="to", description="the new name, as section.name")),
    ),
    ToolSpec(name="drop-key", description="remove a setting", parameters=(_KEY,)),
    ToolSpec(
        name="scale-key",
        description="multiply a whole number",
        parameters=(_KEY, _choice("factor", "the multiplier", "60", "1000", "1024")),
    ),
    ToolSpec(
        name="set-default",
        description="set a value where the setting is missing",
        parameters=(_KEY, _VALUE),
    ),
    ToolSpec(
        name="write-settings",
        description="save the settings",
        parameters=(_FILE, _choice("format", "the file's format", "json", "env")),
    ),
)
SUBMIT_TOOL = ToolSpec(name="submit", description="end the attempt: the work is done")

_PROGRAM_OF: Mapping[str, str] = {
    **{tool.name: "table" for tool in TABLE_TOOLS},
    **{tool.name: "settings" for tool in SETTINGS_TOOLS},
}


def pick(tools: Iterable[ToolSpec], *names: str) -> tuple[ToolSpec, ...]:
    """Return the tools called `names`, in the catalogue's order, and `submit`."""
    wanted = set(names)
    return (*(tool for tool in tools if tool.name in wanted), SUBMIT_TOOL)


@cache
def program_source(name: str) -> str:
    """Return the text of a program below `programs/`."""
    return (files(__package__) / "programs" / f"{name}.py").read_text("utf-8")


def programs_for(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the programs that a sandbox has to hold for `tools`: name → source."""
    names = {_PROGRAM_OF[tool.name] for tool in tools if tool.name in _PROGRAM_OF}
    return {name: program_source(name) for name in sorted(names)}


def command(call: ToolCall) -> list[str]:
    """Return the command line of a call: program, subcommand, options."""
    options = (part for name, value in call.arguments.items() for part in (f"--{name}={value}",))
    return [_PROGRAM_OF[call.tool], call.tool, *options]
