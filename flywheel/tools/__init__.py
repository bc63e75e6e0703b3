"""The tools an agent may be given: descriptions here, programs beside them in `programs/`.

A sandbox tool is a subcommand of a small program. The programs run inside the sandbox, use the
standard library only, keep their state in the workspace, and are the same for every policy.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from flywheel.errors import ConfigError
from schemas.tool import Parameter, ToolCall, ToolHome, ToolSpec

SUBMIT_TOOL = ToolSpec(
    name="submit", description="end the attempt: the work is done", home=ToolHome.HARNESS
)
BASH_TOOL = ToolSpec(
    name="bash",
    description="run a command line in the workspace",
    parameters=(Parameter(name="command", description="the command line"),),
    home=ToolHome.SHELL,
)
SHIPPED_PROGRAMS = tuple(
    sorted(
        path.name.removesuffix(".py")
        for path in (files(__package__) / "programs").iterdir()
        if path.name.endswith(".py")
    )
)
_ADDED: dict[str, str] = {}
"""Programs from outside the package: name → source."""


def choice(name: str, description: str, *choices: str) -> Parameter:
    """Return a parameter whose value is one of `choices`."""
    return Parameter(name=name, description=description, choices=choices)


def pick(tools: Iterable[ToolSpec], *names: str) -> tuple[ToolSpec, ...]:
    """Return the tools called `names`, in the catalogue's order, and `submit`."""
    wanted = set(names)
    return (*(tool for tool in tools if tool.name in wanted), SUBMIT_TOOL)


def add_program(name: str, source: str) -> None:
    """Make a tool program from outside the package known.

    Raises:
        ConfigError: another program has that name.
    """
    if _shipped(name).is_file() or _ADDED.get(name, source) != source:
        raise ConfigError(f"tool program {name!r}: there is another one of that name")
    _ADDED[name] = source


@cache
def _shipped_source(name: str) -> str:
    return _shipped(name).read_text("utf-8")


def _shipped(name: str) -> Traversable:
    return files(__package__) / "programs" / f"{name}.py"


def program_source(name: str) -> str:
    """Return the text of a tool program.

    Raises:
        ConfigError: nobody has made such a program known.
    """
    if name in _ADDED:
        return _ADDED[name]
    if not _shipped(name).is_file():
        raise ConfigError(f"tool program {name!r}: unknown; is a plug-in missing?")
    return _shipped_source(name)


def programs_for(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the programs that a sandbox has to hold for `tools`: name → source."""
    names = {tool.program for tool in tools if tool.home is ToolHome.SANDBOX}
    return {name: program_source(name) for name in sorted(names)}


def command(tool: ToolSpec, call: ToolCall) -> list[str]:
    """Return the command line of a call that runs in the sandbox."""
    if tool.home is ToolHome.SHELL:
        return ["/bin/bash", "-c", call.arguments["command"]]
    options = [f"--{name}={value}" for name, value in call.arguments.items()]
    return [tool.program, call.tool, *options]
