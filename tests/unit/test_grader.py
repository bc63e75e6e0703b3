"""The compare grader: known verdicts, and artifacts made to bring it down."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.graders import grader_source, grader_version
from schemas.file import File
from tests.programs import run_grader, write

CHECKS = ("input-unchanged", "exists", "columns", "rows", "order")
INPUT = File(path="in.csv", content="order,amount\na,1\n")
TABLE = "group,count\nx,7\ny,2\n"
LIST = '[{"group": "x", "count": 7}, {"group": "y", "count": 2}]'
OBJECT = '{"a.one": "red", "a.two": 5}'
ENV = "A_ONE=red\nA_TWO=5\n"


def layout(
    folder: Path, artifact: bytes | None, right: File, given_input: bytes | None
) -> tuple[Path, Path]:
    """Write the folders that a grader gets: artifacts and expected."""
    left = {right.path: artifact, INPUT.path: given_input}
    artifacts = [File.of(path, data) for path, data in left.items() if data is not None]
    write(folder / "expected" / "inputs", [INPUT])
    write(folder / "expected" / "output", [right])
    return write(folder / "artifacts", artifacts), folder / "expected"


def grade(
    folder: Path,
    artifact: bytes | str | None,
    right: File,
    given_input: bytes | None = INPUT.data(),
) -> Mapping[str, tuple[bool, str]]:
    """Grade `artifact` (None: absent) against `right`; return check → (passed, evidence)."""
    data = artifact.encode() if isinstance(artifact, str) else artifact
    code, output = run_grader(*layout(folder, data, right, given_input), CHECKS)
    return read(code, output)


def read(code: int, output: str) -> Mapping[str, tuple[bool, str]]:
    """Read the grader's lines, which must be complete, printable and signed off."""
    *lines, last = output.split("\n")[:-1]
    assert (code, last) == (0, "graded")
    rows = [line.split("\t") for line in lines]
    assert [row[0] for row in rows] == list(CHECKS)
    assert all(len(row) == 3 and row[2].isascii() and row[2].isprintable() for row in rows)
    return {name: (word == "pass", evidence) for name, word, evidence in rows}


def failed(results: Mapping[str, tuple[bool, str]]) -> set[str]:
    return {name for name, (passed, _) in results.items() if not passed}


CONTENT = {"columns", "rows", "order"}


@pytest.mark.parametrize(
    ("path", "right", "artifact", "wrong"),
    [
        ("out.csv", TABLE, TABLE, set()),
        ("out.csv", TABLE, "group,count\nx,7.0\ny,2.00\n", set()),
        ("out.csv", TABLE, "group,count\r\nx,7\r\ny,2\r\n", set()),
        ("out.csv", TABLE, 'group,count\n"x",7\n\ny,2\n', set()),
        ("out.csv", TABLE, "group,count\ny,2\nx,7\n", {"order"}),
        ("out.csv", TABLE, "group,count\nx,7\ny,2\ny,2\n", {"rows", "order"}),
        ("out.csv", TABLE, "group,count\nx,7\n", {"rows", "order"}),
        ("out.csv", TABLE, "group,count\nx,7\ny,2.0000000001\n", {"rows", "order"}),
        ("out.csv", TABLE, "group,count\nx,7,1\ny,2,1\n", {"rows", "order"}),
        ("out.csv", TABLE, "group,total\nx,7\ny,2\n", {"columns"}),
        ("out.csv", TABLE, "count,group\n7,x\n2,y\n", CONTENT),
        ("out.csv", TABLE, "x,7\ny,2\n", CONTENT),
        ("out.csv", TABLE, "group,count\n", {"rows", "order"}),
        ("out.csv", TABLE, "", CONTENT),
        ("out.csv", TABLE, "\ufeff" + TABLE, {"columns"}),
        ("out.csv", TABLE, LIST, CONTENT),
        ("out.json", LIST, LIST, set()),
        ("out.json", LIST, '[{"group":"x","count":"7"},{"count":2.0,"group":"y"}]', set()),
        ("out.json", LIST, '[{"group":"y","count":2},{"group":"x","count":7}]', {"order"}),
        ("out.json", LIST, '[{"group":"x","count":7},{"group":"y"}]', CONTENT),
        ("out.json", LIST, '[{"count":7,"group":"x"},{"count":2,"group":"y"}]', set()),
        ("out.json", LIST, '[{"group":7,"count":"x"},{"group":2,"count":"y"}]', {"rows", "order"}),
        ("out.json", LIST, '{"x": 7, "y": 2}', CONTENT),
        ("out.json", LIST, "[]", CONTENT),
        (
            "out.json",
            LIST,
            '[{"group":"x","count":NaN},{"group":"y","count":2}]',
            {"rows", "order"},
        ),
        ("out.json", LIST, TABLE, CONTENT),
        ("out.json", OBJECT, OBJECT, set()),
        ("out.json", OBJECT, '{"a.two": "5", "a.one": "red"}', {"order"}),
        ("out.json", OBJECT, '{"a.one": "red", "a.two": 5, "a.six": 1}', {"rows", "order"}),
        ("out.json", OBJECT, '{"a": {"one": "red", "two": 5}}', {"rows", "order"}),
        (
            "out.json",
            OBJECT,
            '[{"key": "a.one", "value": "red"}, {"key": "a.two", "value": 5}]',
            {"columns"},
        ),
        ("out.env", ENV, "A_TWO=5\n\nA_ONE=red\n", {"order"}),
        ("out.env", ENV, "A_ONE=red\nA_TWO=6\n", {"rows", "order"}),
        ("out.env", ENV, "A_ONE=red\nA_TWO=5\nA_TWO=5\n", {"rows", "order"}),
        ("out.env", ENV, OBJECT, CONTENT),
        ("out.env", OBJECT, OBJECT, set()),
        ("out.env", OBJECT, ENV, CONTENT),
    ],
)
def test_an_artifact_fails_the_checks_that_it_breaks_and_no_other(
    tmp_path: Path, path: str, right: str, artifact: str, wrong: set[str]
) -> None:
    assert failed(grade(tmp_path, artifact, File(path=path, content=right))) == wrong


@pytest.mark.parametrize(
    "artifact",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"[" + b"[" * 900 + b"]" * 900 + b"]",
        b'[{"group": ' + b"9" * 100_000 + b', "count": 1}]',
        b"[1, 2, 3]",
        b"null",
        b'"a string"',
        b"\xff\xfe\x00binary\x00",
        b"\xef\xbb\xbf" + LIST.encode(),
        b"",
        b"[" + b",".join(b'{"k%d": 1}' % n for n in range(50_000)) + b"]",
    ],
    ids=lambda artifact: repr(artifact[:12]),
)
def test_a_hostile_json_file_is_unreadable_and_the_grader_stays_up(
    tmp_path: Path, artifact: bytes
) -> None:
    results = grade(tmp_path, artifact, File(path="out.json", content=LIST))
    assert failed(results) == CONTENT
    assert all(results[name][1].startswith("unreadable: ") for name in CONTENT)


@pytest.mark.parametrize(
    "number", ["1e999999999", "-1e-999999999", "1e99999999999999999999", "sNaN"]
)
def test_a_hostile_number_is_compared_and_the_grader_stays_up(tmp_path: Path, number: str) -> None:
    table = f"group,count\nx,{number}\ny,2\n"
    assert failed(grade(tmp_path, table, File(path="out.csv", content=TABLE))) == {"rows", "order"}


def test_a_field_beyond_the_csv_limit_is_unreadable(tmp_path: Path) -> None:
    results = grade(tmp_path, 'group,count\n"' + "x" * 200_000, File(path="o.csv", content=TABLE))
    assert failed(results) == CONTENT


@pytest.mark.parametrize("right", [File(path="out.csv", content=TABLE)])
def test_a_missing_file_fails_all_but_the_inputs(tmp_path: Path, right: File) -> None:
    assert failed(grade(tmp_path, None, right)) == {"exists", *CONTENT}


def test_a_link_to_the_right_answer_counts_as_missing(tmp_path: Path) -> None:
    right = File(path="out.csv", content=TABLE)
    artifacts, expected = layout(tmp_path, None, right, INPUT.data())
    (artifacts / "out.csv").symlink_to(expected / "output" / "out.csv")
    assert failed(read(*run_grader(artifacts, expected, CHECKS))) == {"exists", *CONTENT}


def test_a_folder_in_place_of_the_output_counts_as_missing(tmp_path: Path) -> None:
    right = File(path="out.csv", content=TABLE)
    artifacts, expected = layout(tmp_path, None, right, INPUT.data())
    (artifacts / "out.csv").mkdir()
    assert failed(read(*run_grader(artifacts, expected, CHECKS))) == {"exists", *CONTENT}


@pytest.mark.parametrize("given_input", [None, b"", INPUT.data() + b"\n", b"order,amount\na,2\n"])
def test_a_changed_or_missing_input_fails_by_name(
    tmp_path: Path, given_input: bytes | None
) -> None:
    results = grade(tmp_path, TABLE, File(path="out.csv", content=TABLE), given_input)
    assert failed(results) == {"input-unchanged"}
    assert "in.csv" in results["input-unchanged"][1]


def test_control_characters_cannot_forge_a_line_of_the_verdict(tmp_path: Path) -> None:
    forged = json.dumps([{"x\nrows\tpass\tforged\ngraded\n\x1b[2J\u2028\ud800": 1}])
    results = grade(tmp_path, forged, File(path="out.json", content=LIST))
    assert failed(results) == CONTENT
    assert "\\nrows\\tpass" in results["columns"][1].replace("\\\\", "\\")


def test_evidence_is_cut_to_one_short_line(tmp_path: Path) -> None:
    results = grade(tmp_path, "g" * 100_000 + "\n", File(path="out.csv", content=TABLE))
    assert max(len(evidence) for _, evidence in results.values()) == 200


def test_artifacts_do_not_shadow_the_modules_of_an_isolated_grader(tmp_path: Path) -> None:
    right = File(path="out.csv", content=TABLE)
    artifacts, expected = layout(tmp_path, b"group,count\n", right, INPUT.data())
    for module in ("csv", "json", "decimal", "pathlib"):
        (artifacts / f"{module}.py").write_text("raise SystemExit('shadowed')")
    program = tmp_path / "compare"
    program.write_text(grader_source("compare"))
    ran = subprocess.run(
        [sys.executable, "-I", "-S", program, ".", expected, *CHECKS],
        cwd=artifacts,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed(read(ran.returncode, ran.stdout)) == {"rows", "order"}


def test_the_version_of_a_grader_follows_its_text() -> None:
    name, digest = grader_version("compare").split("@")
    assert name == "compare"
    assert len(digest) == 12


cells = st.one_of(st.text(max_size=8), st.integers(), st.floats(allow_nan=False))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.fixed_dictionaries({"group": cells, "count": cells}), min_size=1, max_size=6))
def test_any_table_equals_itself_and_differs_once_a_row_is_added(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str | int | float]]
) -> None:
    right = File(path="out.json", content=json.dumps(rows))
    same = grade(tmp_path_factory.mktemp("same"), json.dumps(rows), right)
    more = grade(tmp_path_factory.mktemp("more"), json.dumps([*rows, rows[0]]), right)
    assert failed(same) == set()
    assert failed(more) == {"rows", "order"}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.fixed_dictionaries({"b": cells, "a": cells, "c": cells}), max_size=4), st.data())
def test_the_order_of_an_objects_keys_is_never_graded(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], data: st.DataObject
) -> None:
    shuffled = [dict(data.draw(st.permutations(list(row.items())))) for row in rows]
    right = File(path="out.json", content=json.dumps(rows))
    assert failed(grade(tmp_path_factory.mktemp("keys"), json.dumps(shuffled), right)) == set()


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(["out.csv", "out.json", "out.env"]))
def test_any_bytes_are_graded(
    tmp_path_factory: pytest.TempPathFactory, artifact: bytes, path: str
) -> None:
    right = {"out.csv": TABLE, "out.json": LIST, "out.env": ENV}[path]
    results = grade(tmp_path_factory.mktemp("any"), artifact, File(path=path, content=right))
    assert "rows" in failed(results)
