"""Finding plug-ins: entry points of installed distributions and paths in, objects out."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from flywheel.errors import ConfigError, FlywheelError
from flywheel.plugins.kinds import EXPECTED, Kind

GROUPS = {f"flywheel.{kind.shelf}": kind for kind in Kind}
DIGEST_HEX_DIGITS = 12
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    FlywheelError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What a module with a mistake in it raises when it is imported."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object that somebody says is a plug-in."""

    where: str
    """For messages: which one."""
    plugin: object
    source: bytes
    """The file that it stands in."""
    expected: Kind | None
    """What its entry point's group says; None: any kind."""


def find(paths: Sequence[str]) -> Iterator[Found]:
    """Yield what all installed distributions offer, by name, and then what `paths` name.

    Raises:
        ConfigError: it can't be found or imported.
    """
    for group, kind in GROUPS.items():
        for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
            where = f"plug-in {point.name} ({group}, {point.value})"
            try:
                plugin = point.load()
                module = find_spec(point.module)
                source = Path(module.origin).read_bytes() if module and module.origin else b""
            except BROKEN as error:
                raise _broken(where, error) from error
            yield Found(where, plugin, source, kind)
    for path in paths:
        yield _by_path(path)


def digest(source: bytes) -> str:
    """Return what a version is told by."""
    return hashlib.sha256(source).hexdigest()[:DIGEST_HEX_DIGITS]


def _by_path(path: str) -> Found:
    where = f"plug-in {path}"
    file, _, attribute = path.rpartition(":")
    if not file.endswith(".py") or not attribute.isidentifier():
        raise ConfigError(f"{where}: expected FILE.py:NAME, as in my_tasks.py:FAMILY")
    try:
        source = Path(file).read_bytes()
        module = _module(Path(file).resolve(), source)
    except BROKEN as error:
        raise _broken(where, error) from error
    if not hasattr(module, attribute):
        raise ConfigError(f"{where}: the file has no {attribute!r}; expected {EXPECTED}")
    return Found(where, getattr(module, attribute), source, None)


def _module(file: Path, source: bytes) -> ModuleType:
    """Import a file once for each content, under a name that no other module has."""
    name = f"flywheel_plugin_{file.stem}_{digest(str(file).encode() + source)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is no Python module")
    module = module_from_spec(spec)
    # Known by its name while it runs: dataclasses and families look their own module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _broken(where: str, error: Exception) -> ConfigError:
    return ConfigError(f"{where}: can't be imported: {type(error).__name__}: {error}")
