"""A store or a folder, opened for one command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import time

from flywheel.errors import ConfigError
from flywheel.formats import read_folder
from flywheel.store import Store, close, open_store, read
from schemas.task import TaskManifest


@contextmanager
def opened(home: str) -> Iterator[Store]:
    """Open the store of a home folder.

    Raises:
        ConfigError: there is none.
        StoreError: another run holds it.
    """
    path = Path(home) / "flywheel.duckdb"
    if not path.exists():
        raise ConfigError(f"{path}: no store here; name the folder with --home")
    store = open_store(path, clock=time)
    try:
        yield store
    finally:
        close(store)


def tasks_of(folder: Path | None, home: str) -> Sequence[TaskManifest]:
    """Return the tasks of a folder, or of the store.

    Raises:
        ConfigError: the folder holds nothing that can be read.
    """
    if folder is None:
        with opened(home) as store:
            return read(store, TaskManifest)
    tasks = read_folder(folder).tasks
    if not tasks:
        raise ConfigError(f"{folder}: no task could be read; `flywheel screen` says why")
    return tasks
