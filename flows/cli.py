"""The command line: cycles here, commands on tasks in `task_cli`."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from pydantic import ValidationError

from flows import make_cli, task_cli
from flows.endings import plain_errors
from flows.server import serving
from flywheel.errors import ConfigError
from schemas.config import CycleConfig

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turns an agent's failures into verified training tasks, trains on them, and shows on "
    "tasks that took no part in it whether that helped.",
)

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="JSON file; `flywheel config` prints one with the defaults."),
]
Home = Annotated[
    str | None, typer.Option(help="Folder of store, policies and reports.  [default: .flywheel]")
]
Sandbox = Annotated[
    str | None,
    typer.Option(help="auto, bubblewrap or docker.  [default: auto, which prefers bubblewrap]"),
]


@app.command()
def run(
    config: ConfigFile = None,
    home: Home = None,
    sandbox: Sandbox = None,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="First close an interrupted cycle, without verdict.")
    ] = False,
) -> None:
    """Run one cycle, or finish the one that was interrupted.

    The first cycle makes a founding pool of tasks and starts from an untrained policy. Each
    further one judges the hypotheses that the last one wrote. Ctrl-C is safe: run it again.
    """
    began = perf_counter()
    with plain_errors():
        chosen = _load(config, home, sandbox)
        if abandon:
            from flows.cycle import abandon as close_unfinished

            typer.echo(close_unfinished(chosen), err=True)
        with serving(Path(chosen.home)) as server:
            from flows.nightly import nightly

            server.wait()
            ready = perf_counter() - began
            typer.echo(f"ready after {ready:.1f} s ({server.waited:.1f} s for Prefect)", err=True)
            typer.echo(f"report: {nightly(chosen)}")


@app.command()
def report(home: Home = None) -> None:
    """Write the latest cycle's report again and print its path."""
    from flows.report import republish

    with plain_errors():
        typer.echo(f"report: {republish(_load(None, home, None))}")


@app.command()
def config() -> None:
    """Print the default configuration as JSON, to edit and pass to `flywheel run --config`."""
    typer.echo(CycleConfig().model_dump_json(indent=2))


def _load(path: Path | None, home: str | None, sandbox: str | None) -> CycleConfig:
    """Return the configuration from file and options.

    Raises:
        ConfigError: names the file and the field.
    """
    try:
        text = path.read_text("utf-8") if path else "{}"
        changes = {"home": home, "sandbox": sandbox}
        base = CycleConfig.model_validate_json(text)
        given = {name: value for name, value in changes.items() if value is not None}
        return CycleConfig.model_validate({**dict(base), **given})
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{path or 'options'}: {field}: {first['msg']}") from None


make_cli.register(app)
task_cli.register(app)

if __name__ == "__main__":
    app()
