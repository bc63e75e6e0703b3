"""Tools on settings: INI files in, JSON and env files out."""

from functools import partial

from flywheel.tools import choice
from schemas.tool import Parameter, ToolSpec

_tool = partial(ToolSpec, program="settings")
_FILE = Parameter(name="file", description="a file of the workspace")
_KEY = Parameter(name="key", description="a setting, as section.name")
_VALUE = Parameter(name="value", description="the value to set")

SETTINGS_TOOLS = (
    _tool(name="read-ini", description="load an INI file as settings", parameters=(_FILE,)),
    _tool(
        name="merge-ini",
        description="add the settings of another INI file",
        parameters=(
            _FILE,
            choice("prefer", "whose value wins where both have one", "loaded", "added"),
        ),
    ),
    _tool(
        name="rename-key",
        description="give a setting another name",
        parameters=(_KEY, Parameter(name="to", description="the new name, as section.name")),
    ),
    _tool(name="drop-key", description="remove a setting", parameters=(_KEY,)),
    _tool(
        name="scale-key",
        description="multiply a whole number",
        parameters=(_KEY, choice("factor", "the multiplier", "60", "1000", "1024")),
    ),
    _tool(
        name="set-default",
        description="set a value where the setting is missing",
        parameters=(_KEY, _VALUE),
    ),
    _tool(
        name="write-settings",
        description="save the settings",
        parameters=(_FILE, choice("format", "the file's format", "json", "env")),
    ),
)
