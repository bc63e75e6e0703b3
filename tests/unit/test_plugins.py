"""Plug-ins: found by path and by entry point, checked, named; the worked example runs."""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from flywheel.errors import ConfigError
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.plugins import Plugins, ToolProgram, load, register, run_check, run_proposer
from flywheel.sandbox import Backend, SandboxSpec
from flywheel.tools import BASH_TOOL, command, program_source, programs_for
from flywheel.tools.host import open_host_tool
from schemas.lineage import Split
from schemas.screening import ScreenCheck
from schemas.task import Budget, Source, SourceKind, TaskManifest
from tests.factories.attempts import make_manifest

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "guest_lists"
TASKS = EXAMPLE / "guest_lists" / "tasks.py"
NAMES = ("FAMILY", "NAMES", "says_where_to_write", "short_lists")
SOURCE = Source(kind=SourceKind.COVERAGE, uri="test", licence="Apache-2.0")


def load_example() -> Plugins:
    return load([f"{TASKS}:{name}" for name in NAMES])


def written(folder: Path, text: str) -> str:
    """Write a plug-in's file; return its path."""
    path = folder / "mine.py"
    path.write_text(text, "utf-8")
    return str(path)


def test_the_example_loads_by_path_each_kind_under_its_own_name() -> None:
    plugins = load_example()
    assert [list(shelf) for shelf in (plugins.families, plugins.checks)] == [
        ["guests"],
        ["says_where_to_write"],
    ]
    assert [list(shelf) for shelf in (plugins.tools, plugins.proposers)] == [
        ["names"],
        ["short_lists"],
    ]
    assert set(plugins.versions) == {
        "family/guests",
        "tool/names",
        "check/says_where_to_write",
        "proposer/short_lists",
    }


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **more: dict[str, str]) -> None:
    """Put the example where installed distributions are, with its own entry points and `more`."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {**project["entry-points"], **more}
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(EXAMPLE)


def test_the_example_loads_by_entry_point_with_the_same_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_path = load_example().versions
    install(tmp_path, monkeypatch)
    assert load([]).versions == by_path
    with pytest.raises(ConfigError, match="another family named 'guests'"):
        load([f"{TASKS}:FAMILY"])


def test_an_entry_point_in_the_wrong_group_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, **{"flywheel.checks": {"x": "guest_lists.tasks:FAMILY"}})
    with pytest.raises(ConfigError, match=r"plug-in x \(flywheel.checks.*expected check"):
        load([])


def test_an_entry_point_that_leads_nowhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, **{"flywheel.checks": {"x": "guest_lists.gone:check"}})
    with pytest.raises(ConfigError, match=r"plug-in x .*ModuleNotFoundError"):
        load([])


def test_a_version_follows_the_file_and_the_tool_program(tmp_path: Path) -> None:
    def version(text: str, program: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        (folder / "names.py").write_text(program)
        return load([f"{written(folder, text)}:NAMES"]).versions["tool/changing"]

    text = TASKS.read_text("utf-8").replace('"names"', '"changing"')
    program = TASKS.with_name("names.py").read_text("utf-8")
    first = version(text, program)
    assert version(text, program) == first
    assert version(text + "# changed\n", program) != first
    assert version(text, program + "# changed\n") != first


def test_the_same_file_is_the_same_plug_in_however_often_it_is_loaded() -> None:
    assert load_example().families["guests"] is load_example().families["guests"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file has no 'PLUGIN'; expected a Family"),
        ("PLUGIN = 3", "found int; expected a Family"),
        ("def PLUGIN(task): ...", "found function; expected a Family"),
        ("def PLUGIN() -> 'Nowhere': ...", "its annotations can't be read: .*Nowhere"),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def PLUGIN(:", "SyntaxError"),
        ("PLUGIN = 1 / 0", "ZeroDivisionError"),
        ("PLUGIN = {}['x']", "KeyError"),
        (
            "from schemas.screening import ScreenCheck\ndef PLUGIN(task) -> ScreenCheck: ...",
            "its name is 'PLUGIN'; expected lower-case",
        ),
        (
            "from flywheel.families.orders import FAMILY as PLUGIN",
            "there is another family named 'orders'",
        ),
        (
            "from flywheel.plugins import ToolProgram\nPLUGIN = ToolProgram('x', 'def main(', ())",
            "source of program x: ",
        ),
        (
            "from flywheel.plugins import ToolProgram\nPLUGIN = ToolProgram('x', 'a = 1', ())",
            "program x: expected a function main",
        ),
        (
            "from flywheel.plugins import ToolProgram\n"
            "PLUGIN = ToolProgram('table', 'def main(argv): ...', ())",
            "there is another tool program named 'table'",
        ),
        (
            "from flywheel.tools.http import HttpService, http_tool\n"
            "PLUGIN = HttpService('a', 'http://x', (http_tool('b', 't', 'd'),))",
            "tool t has home 'host' and program 'http:b/t'; expected 'host' and 'http:a/'",
        ),
        ("from flywheel.tools.http import HttpService\nPLUGIN = HttpService('a', 'x', ())", "url"),
    ],
)
def test_a_plug_in_that_can_not_be_one_is_refused_by_name_with_what_was_expected(
    text: str, complaint: str, tmp_path: Path
) -> None:
    path = f"{written(tmp_path, text)}:PLUGIN"
    with pytest.raises(ConfigError, match=complaint) as caught:
        load([path])
    assert path in str(caught.value)


@pytest.mark.parametrize("path", ["tasks.py", "tasks:FAMILY", "tasks.py:", "gone.py:FAMILY", ":x"])
def test_a_path_that_names_no_plug_in_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="plug-in "):
        load([path])


def test_two_plug_ins_of_one_name_are_refused() -> None:
    path = f"{TASKS}:says_where_to_write"
    with pytest.raises(ConfigError, match="another check named 'says_where_to_write'"):
        load([path, path])


def test_a_family_without_its_tool_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("")
    text = TASKS.read_text("utf-8").replace('program="names"', 'program="unheard"')
    with pytest.raises(ConfigError, match="guests: nobody brings the tool program 'unheard'"):
        load([f"{written(tmp_path, text)}:FAMILY"])


def test_a_check_that_raises_could_not_be_run() -> None:
    def odd(task: TaskManifest) -> ScreenCheck:
        raise LookupError("no table")

    result = run_check("odd", odd, make_manifest())
    assert (result.kind, result.passed) == ("plugin/odd", None)
    assert result.evidence == "raised LookupError: no table"


def test_a_check_has_no_kind_but_its_own_name() -> None:
    def mine(task: TaskManifest) -> ScreenCheck:
        return ScreenCheck(kind="reference-passes", passed=False, evidence="seen")

    assert run_check("mine", mine, make_manifest()).kind == "plugin/mine"
    with pytest.raises(ConfigError, match="returned NoneType"):
        run_check("none", lambda task: None, make_manifest())  # type: ignore[arg-type,return-value]


def test_the_examples_check_fails_where_the_goal_does_not_say_where_to_write() -> None:
    check = load_example().checks["says_where_to_write"]
    assert run_check("x", check, make_manifest()).passed
    failed = run_check("x", check, make_manifest(goal="Write the total somewhere."))
    assert (failed.passed, failed.evidence) == (False, "not in the goal: total.txt")


def test_a_proposers_tasks_count_as_a_strangers_and_end_at_the_count() -> None:
    def greedy(count: int, seed: int) -> Iterator[TaskManifest]:
        while True:
            yield make_manifest(seed)

    (first, task), (second, _) = run_proposer("greedy", greedy, 2, 5, "run-1")
    assert task is not None
    assert task.source.kind is SourceKind.PROPOSED
    assert (first.version_id, first.reason) == (task.version_id, "read")
    assert (first.proposer, first.number, second.number) == ("plugin/greedy", 0, 1)


def test_a_proposer_that_raises_keeps_what_it_made_and_says_why_it_stopped() -> None:
    def broken(count: int, seed: int) -> Iterator[TaskManifest]:
        yield make_manifest(seed)
        raise OSError("disk gone")

    (made, _), (stopped, task) = run_proposer("broken", broken, 5, 5, "run-1")
    assert made.version_id
    assert (stopped.reason, stopped.version_id, task) == ("proposer-failed", None, None)
    assert "disk gone" in stopped.evidence


def leave_behind(task: TaskManifest, solution: str, backend: Backend) -> str:
    """Run the reference or the alternative in a real sandbox; return the artifact's text."""
    sealed = task.sealed
    script = sealed.reference if solution == "reference" else sealed.alternatives[0]
    tools = {tool.name: tool for tool in (*task.brief.tools, BASH_TOOL)}
    spec = SandboxSpec(
        programs=programs_for(task.brief.tools),
        deadline=20.0,
        labels={"run": "test", "attempt": solution},
    )
    with backend.open(spec) as sandbox:
        sandbox.put(task.brief.environment.files)
        for call in script:
            result = sandbox.call(command(tools[call.tool], call), 5.0)
            assert result.exit_code == 0, result.output
        return sandbox.get(task.brief.artifacts[0]).decode()


@pytest.mark.parametrize("solution", ["reference", "alternative"])
def test_the_examples_tasks_are_solved_in_a_sandbox_by_its_tools(
    solution: str, bubblewrap: Backend
) -> None:
    plugins = load_example()
    register(plugins)
    register(plugins)
    for rules in ({"once"}, {"unmarked"}, {"a-to-z"}, {"once", "unmarked", "a-to-z"}):
        family = plugins.families["guests"]
        task = make_task(family, frozenset(rules), 3, Lexicon(Split.TRAIN), Budget(), SOURCE)
        (expected,) = task.sealed.grader.expected
        assert leave_behind(task, solution, bubblewrap) == expected.content


def test_registering_makes_services_known_to_attempts(tmp_path: Path) -> None:
    text = (
        "from flywheel.tools.http import HttpService, http_tool\n"
        "FACTS = HttpService('plugin-facts', 'http://127.0.0.1:1', "
        "(http_tool('plugin-facts', 'search', 'Search.'),))"
    )
    with pytest.raises(ConfigError, match="unknown"):
        open_host_tool("http:plugin-facts/search")
    register(load([f"{written(tmp_path, text)}:FACTS"]))
    with open_host_tool("http:plugin-facts/search") as tool:
        assert callable(tool.answer)


def test_a_program_of_ones_own_can_not_take_the_place_of_a_shipped_one() -> None:
    shipped = program_source("table")
    fake = ToolProgram("table", "def main(argv): ...", ())
    with pytest.raises(ConfigError, match="another one of that name"):
        register(Plugins(tools={"table": fake}))
    assert "Literals are printed in backticks" in shipped


BLOCK = re.compile(r"^```(?:python|toml)\n(.*?)^```", re.M | re.S)
SHOWN = re.compile(r"# (examples/\S+)\n")


def test_the_document_shows_code_that_exists_and_runs() -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "extending.md").read_text("utf-8"))
    shown = {block: match[1] for block in blocks if (match := SHOWN.match(block))}
    assert len(shown) >= 6
    for block, path in shown.items():
        assert block.partition("\n")[2] in (ROOT / path).read_text("utf-8"), path
    code = "\n".join(block for block in blocks if block not in shown)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PATH": path}, check=True)
