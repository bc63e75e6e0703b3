"""The shape that everything else relies on."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import docker

ROOT = Path(__file__).parent.parent
LAYERS = {"schemas": 0, "flywheel": 1, "flows": 2, "deployments": 3}
ONLY_STANDARD_LIBRARY_AND = {"schemas": {"pydantic"}}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", LAYERS)
def test_arrows_point_down_only(package: str) -> None:
    upward = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(package)
        for name in imports(path)
        if LAYERS.get(name.split(".")[0], -1) > LAYERS[package]
    }
    assert not upward


def test_schemas_import_pydantic_and_the_standard_library_only() -> None:
    import sys

    allowed = {*sys.stdlib_module_names, "pydantic", "schemas"}
    found = {name.split(".")[0] for path in sources("schemas") for name in imports(path)}
    assert found <= allowed


def test_only_flows_and_deployments_import_prefect() -> None:
    guilty = [
        path
        for package in ("schemas", "flywheel")
        for path in sources(package)
        if any(name.split(".")[0] == "prefect" for name in imports(path))
    ]
    assert not guilty


def test_the_library_never_touches_the_store_outside_its_room() -> None:
    guilty = [
        path
        for path in sources("flywheel")
        if "store" not in path.parts
        and any(name == "duckdb" or name.startswith("flywheel.store") for name in imports(path))
    ]
    assert not guilty


def test_one_module_imports_docker() -> None:
    users = {path.name for path in sources("flywheel") if "docker" in set(imports(path))}
    assert users == {"container.py"}


def test_the_docker_folder_holds_no_python_that_would_shadow_the_sdk() -> None:
    assert not list((ROOT / "docker").rglob("*.py"))
    assert callable(docker.from_env)


def test_no_test_folder_shadows_a_package() -> None:
    names = {path.name for path in (ROOT / "tests").rglob("*") if path.is_dir()}
    assert not names & {"docker", "schemas", "flywheel", "flows"}


def test_the_tree_in_the_readme_is_the_real_one() -> None:
    """Every path in the README's tree exists, and every tracked package or folder is in it."""
    block = re.search(r"```tree\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert block is not None
    named: set[str] = set()
    parents: list[str] = []
    for line in block[1].splitlines():
        indent = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        parents = [*parents[:indent], name.rstrip("/")]
        path = "/".join(parents)
        named.add(path)
        assert (ROOT / path).exists(), path
        assert (ROOT / path).is_dir() == name.endswith("/"), path
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    top = {path.split("/")[0] for path in tracked if not path.startswith(".")}
    assert top <= named
    modules = {
        path
        for path in tracked
        if path.split("/")[0] in ("flywheel", "flows", "schemas")
        and path.count("/") == 1
        and not path.endswith(("__init__.py", "py.typed"))
    }
    assert modules <= named
