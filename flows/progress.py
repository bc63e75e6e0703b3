"""What a person sees while a cycle runs: a bar a stage on a terminal, a line a stage elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars


def terminal() -> Console:
    """Return the console that people watch: standard error, so that output can be piped."""
    return Console(stderr=True)


class Progress:
    """Stage lines and bars on one console."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar of `total` steps; yields the function that advances it by one."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        hidden = not self.console.is_terminal
        with Bars(*columns, console=self.console, transient=True, disable=hidden) as bars:
            row = bars.add_task(name, total=total)
            yield lambda: bars.advance(row)

    def line(self, name: str, text: str, since: float) -> None:
        """Say what a stage came to; `since` is its start on the performance counter."""
        seconds = perf_counter() - since
        said = f"  {name:<12} {seconds:6.1f} s  {text}"
        self.console.print(said, highlight=False, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Say something that is no stage."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
