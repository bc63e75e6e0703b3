"""The grader of trees: what it calls the same, what it tells apart, what it doesn't fall for."""

import runpy
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flywheel

GRADER = Path(flywheel.__file__).parent / "graders" / "files.py"
ALL = ("input-unchanged", "exists", "paths", "contents", "bytes", "modes", "answers")
INPUTS = {"in/one.txt": b"keep\n"}
RIGHT = {
    "out/a.txt": b"one\ntwo\n",
    "out/deep/b.bin": b"\xff\x00\r\n",
    "exercises/first.txt": b"7 \n8\n",
}


def write(folder: Path, files: Mapping[str, bytes], modes: Mapping[str, int]) -> None:
    folder.mkdir(parents=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    lines = (f"{modes.get(path, 0o644):04o} {path}\n" for path in files)
    folder.with_name(f"{folder.name}.modes").write_bytes("".join(lines).encode(errors="replace"))


def judge(folder: Path, checks: tuple[str, ...] = ALL) -> dict[str, bool]:
    printed = StringIO()
    with redirect_stdout(printed):
        main = runpy.run_path(str(GRADER))["main"]
        code = main([str(folder / "artifacts"), str(folder / "expected"), *checks])
    *lines, last = printed.getvalue().split("\n")[:-1]
    assert (code, last) == (0, "graded")
    rows = [line.split("\t") for line in lines]
    assert all(len(row) == 3 and row[1] in ("pass", "fail") for row in rows)
    assert tuple(row[0] for row in rows) == checks
    return {name: word == "pass" for name, word, _ in rows}


def prepare(
    folder: Path,
    artifacts: Mapping[str, bytes],
    modes: Mapping[str, int] | None = None,
    right: Mapping[str, bytes] = RIGHT,
) -> Path:
    write(folder / "artifacts", artifacts, modes or {})
    write(folder / "expected" / "output", right, {})
    write(folder / "expected" / "inputs", INPUTS, {})
    return folder


def failed(folder: Path) -> set[str]:
    return {name for name, passed in judge(folder).items() if not passed}


GOOD = INPUTS | RIGHT


def test_the_right_tree_passes_every_check(tmp_path: Path) -> None:
    assert failed(prepare(tmp_path, GOOD)) == set()


@pytest.mark.parametrize(
    ("artifacts", "checks"),
    [
        (GOOD | {"in/one.txt": b"kept\n"}, {"input-unchanged"}),
        (RIGHT, {"input-unchanged"}),
        (GOOD | {"out/a.txt": b"one\r\ntwo"}, {"bytes"}),
        (GOOD | {"out/a.txt": b"one\ntwo \n"}, {"contents", "bytes"}),
        (GOOD | {"out/a.txt": b"two\none\n"}, {"contents", "bytes"}),
        (GOOD | {"out/a.txt": b"one\ntwo\n\n\n"}, {"contents", "bytes"}),
        (GOOD | {"out/deep/b.bin": b"\xff\x00\n"}, {"contents", "bytes"}),
        (GOOD | {"out/a.txt": b"\xff"}, {"contents", "bytes"}),
        (GOOD | {"out/a.txt": b""}, {"contents", "bytes"}),
        (GOOD | {"out/stray.txt": b""}, {"paths"}),
        (GOOD | {"exercises/first.txt": b"7\n8  \n\n\n"}, set()),
        (GOOD | {"exercises/first.txt": b"7\n 8\n"}, {"answers"}),
        (GOOD | {"exercises/first.txt": b"\xff"}, {"answers"}),
        (GOOD | {"exercises/other.txt": b"9"}, set()),
        (INPUTS, {"exists", "paths", "contents", "bytes", "modes", "answers"}),
        ({}, set(ALL)),
    ],
)
def test_each_difference_fails_the_checks_that_are_about_it(
    tmp_path: Path, artifacts: Mapping[str, bytes], checks: set[str]
) -> None:
    assert failed(prepare(tmp_path, artifacts)) == checks


def test_a_file_elsewhere_is_missing_and_unexpected(tmp_path: Path) -> None:
    moved = {path.replace("deep", "other"): data for path, data in GOOD.items()}
    assert failed(prepare(tmp_path, moved)) == {"exists", "paths", "contents", "bytes", "modes"}


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o645, 0])
def test_other_permissions_fail_modes_alone(tmp_path: Path, mode: int) -> None:
    assert failed(prepare(tmp_path, GOOD, {"out/a.txt": mode})) == {"modes"}


def test_permissions_of_inputs_and_strays_do_not_count(tmp_path: Path) -> None:
    prepare(tmp_path, GOOD | {"out/stray.txt": b""}, {"in/one.txt": 0o600, "out/stray.txt": 0o777})
    assert judge(tmp_path, ("modes",)) == {"modes": True}


def test_a_folder_that_is_not_there_fails_every_check(tmp_path: Path) -> None:
    prepare(tmp_path, GOOD)
    (tmp_path / "artifacts").rename(tmp_path / "elsewhere")
    assert failed(tmp_path) == set(ALL)


def test_answers_without_an_exercise_fail(tmp_path: Path) -> None:
    right = {path: data for path, data in RIGHT.items() if not path.startswith("exercises/")}
    prepare(tmp_path, INPUTS | right, right=right)
    assert failed(tmp_path) == {"answers"}


def test_a_link_to_the_right_answer_is_not_there(tmp_path: Path) -> None:
    folder = prepare(tmp_path, GOOD)
    for path in ("out/a.txt", "in/one.txt"):
        (folder / "artifacts" / path).unlink()
    (folder / "artifacts/out/a.txt").symlink_to(folder / "expected/output/out/a.txt")
    (folder / "artifacts/in/one.txt").symlink_to(folder / "expected/inputs/in/one.txt")
    left_out = set(ALL) - {"answers"}
    assert failed(folder) == left_out


def test_a_folder_that_links_to_the_right_answer_is_not_there(tmp_path: Path) -> None:
    folder = prepare(tmp_path, INPUTS)
    for name in ("out", "exercises"):
        (folder / "artifacts" / name).symlink_to(folder / "expected/output" / name)
    assert failed(folder) == set(ALL) - {"input-unchanged"}


def test_a_folder_in_place_of_a_file_is_not_that_file(tmp_path: Path) -> None:
    folder = prepare(tmp_path, GOOD)
    (folder / "artifacts/out/a.txt").unlink()
    (folder / "artifacts/out/a.txt").mkdir()
    assert "exists" in failed(folder)


def test_a_file_name_cannot_forge_a_line(tmp_path: Path) -> None:
    stray = "out/x\nexists\tpass\tforged\ngraded\n"
    folder = prepare(tmp_path, GOOD | {stray: b"", "out/\u2028é\udcff": b""})
    assert judge(folder, ("exists", "paths")) == {"exists": True, "paths": False}


def test_deep_trees_and_huge_lines_are_judged_like_any_other(tmp_path: Path) -> None:
    deep = "/".join("d" * 500) + "/x.txt"
    huge = GOOD | {f"out/{deep}": b"x", "out/a.txt": b"\t" * 1_000_000}
    assert failed(prepare(tmp_path, huge)) == {"paths", "contents", "bytes"}


paths = st.sampled_from(["out/a", "out/b.d/a", "out/b.d/c", "out/d"])
contents = st.sampled_from([b"a\n", b"a\r\n", b"a", b"a\n\n", b"\n", b"", b"\xff\n", b"\xff"])
trees = st.dictionaries(paths, contents, min_size=1)


def text_lines(data: bytes) -> list[str] | bytes:
    """What `contents` compares, said in another way."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    if "\0" in text:
        return data
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


@settings(max_examples=50, deadline=None)
@given(trees, st.dictionaries(paths, contents, max_size=2), st.sets(paths, max_size=1))
def test_two_trees_are_told_apart_by_paths_bytes_and_lines(
    want: dict[str, bytes], changes: dict[str, bytes], removed: set[str]
) -> None:
    got = {path: data for path, data in (want | changes).items() if path not in removed}
    with TemporaryDirectory() as name:
        folder = prepare(Path(name), INPUTS | got, right=want)
        results = judge(folder, ("paths", "contents", "bytes"))
    kept = {path: got[path] for path in want if path in got}
    assert results["paths"] == (got.keys() == want.keys())
    assert results["bytes"] == (kept == want)
    assert results["contents"] == (
        kept.keys() == want.keys()
        and all(text_lines(kept[path]) == text_lines(want[path]) for path in want)
    )


@pytest.fixture(autouse=True)
def _no_file_is_written_by_the_grader(tmp_path: Path) -> Iterator[None]:
    yield
    assert {path.name for path in tmp_path.iterdir()} <= {
        "artifacts",
        "artifacts.modes",
        "elsewhere",
        "expected",
    }
