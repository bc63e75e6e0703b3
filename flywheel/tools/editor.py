"""Tools to edit a text file line by line, and to run a Python script."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="editor")
_FILE = Parameter(name="file", description="a file of the workspace")
_LINE = Parameter(name="line", description="the text of one line that is there once")
_TEXT = Parameter(name="text", description="the new line, with its indentation")
_TOKENS = (
    *("<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "//", "0", "1", "2"),
    *("True", "False", "lstrip", "rstrip", "strip", "min", "max", "sum", "len"),
    *("ROUND_DOWN", "ROUND_UP", "ROUND_HALF_EVEN", "ROUND_HALF_UP"),
)

EDITOR_TOOLS = (
    _tool(
        name="open-file",
        description="load a text file into the editor and show its lines",
        parameters=(_FILE,),
    ),
    _tool(
        name="replace-token",
        description="put one token of a line in place of another",
        parameters=(
            _LINE,
            choice("old", "a token that the line has once", *_TOKENS),
            choice("new", "what stands there instead", *_TOKENS),
        ),
    ),
    _tool(
        name="swap-arguments",
        description="swap the two arguments of the call in a line",
        parameters=(_LINE,),
    ),
    _tool(name="replace-line", description="change a line", parameters=(_LINE, _TEXT)),
    _tool(name="insert-line", description="add a line below a line", parameters=(_LINE, _TEXT)),
    _tool(name="delete-line", description="remove a line", parameters=(_LINE,)),
    _tool(name="save-file", description="save what the editor holds", parameters=(_FILE,)),
    _tool(
        name="run-script",
        description="run a saved Python script on an input file and show what it prints",
        parameters=(_FILE, Parameter(name="input", description="its only argument")),
    ),
)
