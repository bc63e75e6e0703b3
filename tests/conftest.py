"""Fixtures that every test may use."""

import os

import pytest

from flywheel.errors import ConfigError
from flywheel.sandbox import Backend
from flywheel.sandbox.choose import open_backend


@pytest.fixture(scope="session")
def bubblewrap() -> Backend:
    """The backend that needs no daemon; part of the installation on Linux."""
    return open_backend("bubblewrap")


@pytest.fixture(scope="session")
def docker_backend() -> Backend:
    """The Docker backend; absent engines are skipped on a desk and an error in CI."""
    try:
        return open_backend("docker")
    except ConfigError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start whole cycles first: they take longest, and nothing should wait for them at the end."""
    items.sort(key=lambda item: "end_to_end" not in item.nodeid)
