"""The catalogue of tools, and each table tool: what it does, what it says where it can't."""

import json
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.errors import ConfigError
from flywheel.tools import (
    BASH_TOOL,
    SUBMIT_TOOL,
    add_program,
    command,
    pick,
    program_source,
    programs_for,
)
from flywheel.tools.settings import SETTINGS_TOOLS
from flywheel.tools.table import TABLE_TOOLS
from schemas.tool import ToolCall, ToolSpec
from tests.programs import TOOLS, call, refusal

CSV = "order,group,amount\na,x,2.50\nb,y,\na,y,1.5\nc,x,3.50\n"
LOG = "id=a at=1 who=x code=7\n\nid=b at=12 who=y\nnoise\nid=a at=3 who=y more=k=v\n"
BASE = "[web]\nHost = red\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"in.csv": CSV, "in.log": LOG, "base.ini": BASE}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def table(folder: Path) -> list[str]:
    """The table in hand, as lines."""
    call(folder, "write-csv", file="now.csv")
    return (folder / "now.csv").read_text().splitlines()


def test_read_csv_prints_the_columns_in_backticks_and_loads_the_rows(folder: Path) -> None:
    assert call(folder, "read-csv", file="in.csv") == "columns `order` `group` `amount`\n"
    assert table(folder) == CSV.splitlines()


def test_read_log_loads_fields_in_order_of_first_appearance_and_skips_lines_without(
    folder: Path,
) -> None:
    printed = call(folder, "read-log", file="in.log")
    assert printed == "columns `id` `at` `who` `code` `more`\n"
    assert table(folder)[1:] == ["a,1,x,7,", "b,12,y,,", "a,3,y,,k=v"]


@pytest.mark.parametrize(
    ("tool", "arguments", "rows"),
    [
        ("deduplicate", {"column": "order", "keep": "first"}, ["a,x,2.50", "b,y,", "c,x,3.50"]),
        ("deduplicate", {"column": "order", "keep": "last"}, ["b,y,", "a,y,1.5", "c,x,3.50"]),
        ("drop-missing", {"column": "amount"}, ["a,x,2.50", "a,y,1.5", "c,x,3.50"]),
        ("keep-equal", {"column": "group", "value": "y"}, ["b,y,", "a,y,1.5"]),
        ("keep-equal", {"column": "group", "value": "z"}, []),
        ("drop-equal", {"column": "group", "value": "y"}, ["a,x,2.50", "c,x,3.50"]),
        ("keep-at-least", {"column": "amount", "value": "2.5"}, ["a,x,2.50", "c,x,3.50"]),
        ("keep-at-least", {"column": "amount", "value": "10"}, []),
        ("keep-at-least", {"column": "amount", "value": "0"}, CSV.splitlines()[1:]),
        ("round", {"column": "amount", "ties": "half-even"}, ["a,x,2", "b,y,", "a,y,2", "c,x,4"]),
        ("round", {"column": "amount", "ties": "half-up"}, ["a,x,3", "b,y,", "a,y,2", "c,x,4"]),
        ("summarise", {"by": "group", "column": "amount"}, ["x,2,6", "y,2,1.5"]),
        ("count", {"by": "order"}, ["a,2", "b,1", "c,1"]),
        (
            "sort",
            {"order": "ascending"},
            ["b,y,", "a,y,1.5", "a,x,2.50", "c,x,3.50"],
        ),
        (
            "sort",
            {"order": "descending"},
            ["c,x,3.50", "a,x,2.50", "a,y,1.5", "b,y,"],
        ),
    ],
)
def test_a_table_tool_changes_the_rows(
    folder: Path, tool: str, arguments: dict[str, str], rows: list[str]
) -> None:
    call(folder, "read-csv", file="in.csv")
    assert call(folder, tool, **arguments) == "done\n"
    assert table(folder)[1:] == rows


def test_summaries_name_their_columns_and_list_the_groups_by_name(folder: Path) -> None:
    (folder / "in.csv").write_text("group,amount\nz,1\na,2\nz,3\n")
    call(folder, "read-csv", file="in.csv")
    call(folder, "summarise", by="group", column="amount")
    assert table(folder) == ["group,count,total", "a,1,2", "z,2,4"]
    call(folder, "read-csv", file="in.csv")
    call(folder, "count", by="group")
    assert table(folder) == ["group,count", "a,1", "z,2"]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sort_puts_equal_numbers_by_name_in_both_directions(folder: Path, order: str) -> None:
    (folder / "in.csv").write_text("group,count\nc,2\nb,10\na,2.0\n")
    call(folder, "read-csv", file="in.csv")
    call(folder, "sort", order=order)
    equal = ["a,2.0", "c,2"]
    assert table(folder)[1:] == ([*equal, "b,10"] if order == "ascending" else ["b,10", *equal])


def test_write_json_saves_a_list_of_objects(folder: Path) -> None:
    call(folder, "read-csv", file="in.csv")
    call(folder, "count", by="group")
    assert call(folder, "write-json", file="out.json") == "written\n"
    rows = json.loads((folder / "out.json").read_text())
    assert rows == [{"group": "x", "count": "2"}, {"group": "y", "count": "2"}]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read-csv", {"file": "no.csv"}, "cannot open `no.csv`: No such file or directory"),
        ("read-csv", {"file": "empty"}, "`empty` is empty"),
        ("read-csv", {"file": "ragged"}, "`ragged` has rows of different lengths"),
        ("read-log", {"file": "no.log"}, "cannot open `no.log`: No such file or directory"),
        ("read-log", {"file": "in.csv"}, "`in.csv` holds no key=value fields"),
        ("deduplicate", {"column": "id", "keep": "last"}, "no column `id`"),
        ("drop-missing", {"column": "id"}, "no column `id`"),
        ("keep-equal", {"column": "id", "value": "1"}, "no column `id`"),
        ("drop-equal", {"column": "id", "value": "1"}, "no column `id`"),
        ("keep-at-least", {"column": "id", "value": "1"}, "no column `id`"),
        ("keep-at-least", {"column": "amount", "value": "many"}, "`many` is not a number"),
        ("keep-at-least", {"column": "amount", "value": "NaN"}, "`NaN` is not a number"),
        ("keep-at-least", {"column": "group", "value": "1"}, "`x` is not a number"),
        ("round", {"column": "id", "ties": "half-up"}, "no column `id`"),
        ("round", {"column": "group", "ties": "half-up"}, "`x` is not a number"),
        ("summarise", {"by": "id", "column": "amount"}, "no column `id`"),
        ("summarise", {"by": "group", "column": "id"}, "no column `id`"),
        ("summarise", {"by": "group", "column": "order"}, "`a` is not a number"),
        ("count", {"by": "id"}, "no column `id`"),
        (
            "write-csv",
            {"file": "no/out.csv"},
            "cannot open `no/out.csv`: No such file or directory",
        ),
        ("write-json", {"file": "."}, "cannot open `.`: Is a directory"),
    ],
)
def test_a_table_tool_refuses_in_words_and_leaves_the_table_as_it_was(
    folder: Path, tool: str, arguments: dict[str, str], message: str
) -> None:
    (folder / "empty").write_text("\n")
    (folder / "ragged").write_text("a,b\n1\n")
    call(folder, "read-csv", file="in.csv")
    assert refusal(folder, tool, **arguments) == message
    assert table(folder) == CSV.splitlines()


def test_sort_refuses_a_last_column_of_words(folder: Path) -> None:
    (folder / "in.csv").write_text("count,group\n1,x\n")
    call(folder, "read-csv", file="in.csv")
    assert refusal(folder, "sort", order="ascending") == "`x` is not a number"


NEEDS_TABLE = [tool for tool in TABLE_TOOLS if not tool.name.startswith("read-")]
NEEDS_SETTINGS = [tool for tool in SETTINGS_TOOLS if tool.name != "read-ini"]


@pytest.mark.parametrize("tool", [*NEEDS_TABLE, *NEEDS_SETTINGS], ids=lambda tool: tool.name)
def test_a_tool_refuses_before_anything_is_loaded(folder: Path, tool: ToolSpec) -> None:
    arguments = {
        item.name: item.choices[0] if item.choices else "base.ini" for item in tool.parameters
    }
    arguments |= {"value": "1"} if tool.name == "keep-at-least" else {}
    noun = "table is" if tool in NEEDS_TABLE else "settings are"
    assert refusal(folder, tool.name, **arguments) == f"no {noun} loaded"


@given(st.lists(st.decimals(0, 1000, places=2), min_size=1, max_size=12))
def test_a_total_is_exact(tmp_path_factory: pytest.TempPathFactory, amounts: list[Decimal]) -> None:
    folder = tmp_path_factory.mktemp("total")
    (folder / "in.csv").write_text("group,amount\n" + "".join(f"x,{n}\n" for n in amounts))
    call(folder, "read-csv", file="in.csv")
    call(folder, "summarise", by="group", column="amount")
    _, count, total = table(folder)[1].split(",")
    assert (int(count), Decimal(total)) == (len(amounts), sum(amounts))


def test_a_command_line_is_program_subcommand_and_options_in_order() -> None:
    (tool,) = (tool for tool in TABLE_TOOLS if tool.name == "keep-equal")
    call = ToolCall(tool="keep-equal", arguments={"column": "a b", "value": "--x=1"})
    assert command(tool, call) == ["table", "keep-equal", "--column=a b", "--value=--x=1"]


def test_a_shell_gets_its_command_line_as_one_argument() -> None:
    call = ToolCall(tool="bash", arguments={"command": "ls -l; echo 'a b'"})
    assert command(BASH_TOOL, call) == ["/bin/bash", "-c", "ls -l; echo 'a b'"]


def test_a_value_with_dashes_and_equal_signs_reaches_the_tool_unchanged(folder: Path) -> None:
    (folder / "in.csv").write_text("a b,c\n--x=1,2\n,3\n")
    call(folder, "read-csv", file="in.csv")
    call(folder, "keep-equal", column="a b", value="--x=1")
    assert table(folder)[1:] == ["--x=1,2"]


def _commands(program: str) -> list[str]:
    return list(import_module(f"flywheel.tools.programs.{program}").COMMANDS)


def test_the_catalogue_and_the_programs_offer_the_same_subcommands() -> None:
    assert [tool.name for tool in TABLE_TOOLS] == _commands("table")
    assert [tool.name for tool in SETTINGS_TOOLS] == _commands("settings")
    assert {tool.program for tool in TABLE_TOOLS} == {"table"}
    assert {tool.program for tool in SETTINGS_TOOLS} == {"settings"}


def test_pick_keeps_the_order_of_the_catalogue_and_adds_submit() -> None:
    picked = pick(TABLE_TOOLS, "write-csv", "read-csv")
    assert [tool.name for tool in picked] == ["read-csv", "write-csv", "submit"]
    assert pick(TABLE_TOOLS) == (SUBMIT_TOOL,)


def test_a_sandbox_gets_only_the_programs_of_its_tools() -> None:
    assert programs_for(pick(TABLE_TOOLS, "sort")) == {"table": program_source("table")}
    assert list(programs_for([*TABLE_TOOLS, *SETTINGS_TOOLS])) == ["settings", "table"]
    assert programs_for([SUBMIT_TOOL, BASH_TOOL]) == {}


def test_a_program_that_takes_a_shipped_ones_name_is_refused_and_leaves_no_trace() -> None:
    shipped = program_source("table")
    with pytest.raises(ConfigError, match="'table': there is another one"):
        add_program("table", "def main(argv): ...")
    assert program_source("table") == shipped


def test_a_tool_whose_program_nobody_knows_is_refused_by_name() -> None:
    unknown = ToolSpec(name="dig", description="dig", program="mole")
    with pytest.raises(ConfigError, match=r"tool program 'mole': unknown"):
        programs_for([unknown])


@pytest.mark.parametrize(
    ("made", "printed", "code"),
    [
        (ToolCall(tool="read-csv", arguments={"file": "in.csv"}), "columns `order`", 0),
        (ToolCall(tool="read-ini", arguments={"file": "no.ini"}), "cannot open `no.ini`", 2),
    ],
)
def test_a_program_runs_alone_in_an_isolated_interpreter(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, made: ToolCall, printed: str, code: int
) -> None:
    (folder / "csv.py").write_text("raise SystemExit('shadowed')")
    (tool,) = (tool for tool in TOOLS if tool.name == made.tool)
    name, *options = command(tool, made)
    program = tmp_path_factory.mktemp("programs") / name
    program.write_text(program_source(name))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", program, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (code, "")
    assert ran.stdout.startswith(printed)
