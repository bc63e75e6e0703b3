"""What can be said of a task without running it."""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from flywheel.formats.harbor import BASE, read_harbor
from flywheel.sandbox.layers import Searched
from flywheel.screen.lint import leaks, lint
from schemas.file import File
from schemas.screening import CheckKind, ScreenCheck
from schemas.task import Environment, Requirement, TaskManifest
from schemas.tool import ToolCall
from tests.real_tasks import real_task
from tests.sabotage import CHECK, SOLVE, edit, good_folder, write

DIGEST = "sha256:" + "0" * 64


def changed(task: TaskManifest, *, goal: str | None = None, **environment: object) -> TaskManifest:
    """The task with another goal or environment, tags taken off where the goal is another."""
    inside = {name: getattr(task.brief.environment, name) for name in Environment.model_fields}
    brief = task.brief.model_copy(
        update={
            "environment": Environment(**{**inside, **environment}),
            "goal": goal or task.brief.goal,
        }
    )
    sealed = task.sealed.model_copy(update={"requirements": ()}) if goal else task.sealed
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, "brief": brief, "sealed": sealed})


def tagged(task: TaskManifest, *requirements: Requirement) -> TaskManifest:
    sealed = task.sealed.model_copy(update={"requirements": requirements})
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, "sealed": sealed})


def no_image(image: str, needles: Mapping[str, bytes]) -> Searched:
    """The layers of an image without secrets."""
    return Searched()


def found(task: TaskManifest, kind: CheckKind) -> ScreenCheck:
    return next(check for check in lint(task, no_image) if check.kind == kind)


def with_file(task: TaskManifest, path: str, data: bytes) -> TaskManifest:
    files = (*task.brief.environment.files, File.of(path, data))
    return changed(task, files=files)


def test_a_generated_task_is_pinned_described_and_leaks_nothing() -> None:
    assert [check.passed for check in lint(real_task(), no_image)] == [True] * 4


@pytest.mark.parametrize(
    ("image", "pinned"),
    [
        ("debian:bookworm", False),
        ("debian", False),
        ("debian@sha256:short", False),
        (f"debian@{DIGEST}", True),
        (f"registry:5000/a/b:1@{DIGEST}", True),
    ],
)
def test_an_image_needs_a_digest(image: str, pinned: bool) -> None:
    assert found(changed(real_task(), image=image), CheckKind.PINNED).passed is pinned


def test_a_check_without_a_sentence_is_named() -> None:
    task = real_task("keep-last")
    silent = [
        r.model_copy(update={"checks": ()}) if "input-unchanged" in r.checks else r
        for r in task.sealed.requirements
    ]
    check = found(tagged(task, *silent), CheckKind.DESCRIBED)
    assert (check.passed, check.evidence) == (False, "check input-unchanged has no sentence")


def test_a_sentence_whose_check_does_not_exist_is_named() -> None:
    task = real_task("keep-last")
    boasting = [
        r.model_copy(update={"checks": (*r.checks, "politeness")}) if r.rule else r
        for r in task.sealed.requirements
    ]
    check = found(tagged(task, *boasting), CheckKind.DESCRIBED)
    assert (check.passed, "politeness" in check.evidence) == (False, True)


def test_a_rule_that_no_sentence_states_is_named() -> None:
    task = real_task("keep-last", "at-least")
    mute = [
        r.model_copy(update={"rule": None}) if r.rule == "at-least" else r
        for r in task.sealed.requirements
    ]
    check = found(tagged(task, *mute), CheckKind.DESCRIBED)
    assert check.evidence == "rule at-least has no sentence with a check"


def test_a_goal_that_says_more_than_its_tagged_sentences_is_found() -> None:
    task = real_task("keep-last")
    check = found(tagged(task, *task.sealed.requirements[:-1]), CheckKind.DESCRIBED)
    assert (check.passed, check.evidence) == (False, "the tagged sentences are not the goal")


def test_a_goal_that_nobody_tagged_is_unmeasured() -> None:
    assert found(tagged(real_task()), CheckKind.DESCRIBED).passed is None


def test_a_file_that_the_goal_names_and_nobody_has_is_named() -> None:
    vague = changed(real_task(), goal="Count the rows of `ghost.csv`.")
    check = found(vague, CheckKind.FILES_NAMED)
    assert (check.passed, "ghost.csv" in check.evidence) == (False, True)


def test_the_right_answer_lying_about_is_found_in_every_form() -> None:
    task = real_task()
    (answer,) = (file.data() for file in task.sealed.grader.expected)
    forms = {
        "plain": b"# old run\n" + answer,
        "base64": base64.b64encode(answer.strip()),
        "md5": hashlib.md5(answer).hexdigest().encode(),
        "sha256": b"checksum " + hashlib.sha256(answer.strip()).hexdigest().encode(),
    }
    for name, data in forms.items():
        check = found(with_file(task, f"notes/{name}.txt", data), CheckKind.NO_LEAK)
        assert check.passed is False, name
        assert check.evidence.startswith(f"notes/{name}.txt holds")


def test_the_right_answer_in_the_git_history_is_found() -> None:
    task = real_task()
    (answer,) = (file.data() for file in task.sealed.grader.expected)
    blob = zlib.compress(b"blob %d\0" % len(answer) + answer)
    check = found(with_file(task, ".git/objects/ab/cdef", blob), CheckKind.NO_LEAK)
    assert (check.passed, "git object" in check.evidence) == (False, True)


def test_a_git_object_that_would_inflate_without_end_is_cut() -> None:
    bomb = zlib.compress(b"\0" * 50_000_000)
    assert found(with_file(real_task(), ".git/objects/ab/cdef", bomb), CheckKind.NO_LEAK).passed


def test_the_solution_lying_about_is_found() -> None:
    task = real_task()
    command = "python3 solve.py --with 'all the tricks' > answer.txt"
    call = ToolCall(tool="bash", arguments={"command": command})
    sealed = task.sealed.model_copy(update={"reference": (call,)})
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    leaky = with_file(TaskManifest(**{**fields, "sealed": sealed}), "Makefile", command.encode())
    assert found(leaky, CheckKind.NO_LEAK).evidence == "Makefile holds the reference's command"


def test_an_answer_in_a_layer_of_the_image_is_a_leak() -> None:
    task = changed(real_task(), image=f"debian@{DIGEST}")
    (answer,) = (file.data() for file in task.sealed.grader.expected)
    layer = b"deleted later: " + answer

    def search(image: str, needles: Mapping[str, bytes]) -> Searched:
        held = [f"layer 3: 'app/x' holds {name}" for name, n in needles.items() if n in layer]
        return Searched(findings=tuple(held))

    (leak,) = (check for check in lint(task, search) if check.kind == CheckKind.NO_LEAK)
    assert leak.passed is False
    assert leak.evidence.startswith("layer 3")


def test_a_layer_that_was_not_searched_leaves_it_open_whether_there_is_a_leak() -> None:
    task = changed(real_task(), image=f"debian@{DIGEST}")
    check = next(
        check
        for check in lint(task, lambda *_: Searched(unsearched=("layer 1: zstd",)))
        if check.kind == CheckKind.NO_LEAK
    )
    assert (check.passed, "layer 1: zstd" in check.evidence) == (None, True)


def test_a_stand_in_for_the_named_image_is_said_and_leaves_pinned_open() -> None:
    task = real_task()
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    stood_in = TaskManifest(**{**fields, "outside": {BASE: "python:3.12-slim"}})
    check = found(stood_in, CheckKind.PINNED)
    assert check.passed is None
    assert check.evidence == "runs on the shared base image in place of python:3.12-slim"


MOVED = File(path="old/report.txt", content="what the last quarter came to\n")


def moving(goal: str, *artifacts: str) -> TaskManifest:
    """A task whose answer stands in the environment, under another path."""
    task = changed(real_task(), goal=goal, files=(MOVED,))
    brief = task.brief.model_copy(update={"artifacts": artifacts})
    expected = (File(path="new/report.txt", content=MOVED.content),)
    grader = task.sealed.grader.model_copy(
        update={"program": "files", "expected": expected, "protected": ()}
    )
    sealed = task.sealed.model_copy(update={"grader": grader, "reference": ()})
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, "brief": brief, "sealed": sealed})


@pytest.mark.parametrize(
    ("goal", "artifacts", "clean"),
    [
        ("Move all files from `old` to `new`.", ("new/",), True),
        ("Move `old/report.txt` to `new/report.txt`.", ("new/",), True),
        ("Sort what is there into `new`.", ("old/", "new/"), True),
        ("Write the report to `new/report.txt`.", ("new/",), False),
        ("Write the report to `new/report.txt`.", ("./",), False),
        ("Write the report of last quarter: `report.txt`, in `new`.", ("new/",), False),
    ],
)
def test_an_answer_may_stand_only_where_the_goal_takes_it_from(
    goal: str, artifacts: tuple[str, ...], clean: bool
) -> None:
    check = found(moving(goal, *artifacts), CheckKind.NO_LEAK)
    assert check.passed is clean, check.evidence
    assert clean or check.evidence == "old/report.txt holds the expected new/report.txt"


def harbor_task(folder: Path, name: str, text: str) -> TaskManifest:
    """The good Harbor task with one more file in its environment."""
    write(folder, f"environment/{name}", text)
    edit(folder, "environment/Dockerfile", "orders.csv ./", f"orders.csv {name} ./")
    return read_harbor(folder)


def test_a_solution_of_several_files_is_found_where_one_of_them_lies_about(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    write(folder, "solution/extra.cfg", "x=1\n")
    check = found(harbor_task(folder, "old.sh", SOLVE), CheckKind.NO_LEAK)
    assert (check.passed, check.evidence) == (False, "old.sh holds the reference's command")


def test_a_line_of_the_solution_is_enough_and_one_of_the_goal_is_not(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    line = 'totals[row["customer"]] = totals.get(row["customer"], 0) + int(row["amount"])'
    assert line in SOLVE
    leaky = found(harbor_task(folder, "notes.md", f"Hint: {line}\n"), CheckKind.NO_LEAK)
    assert (leaky.passed, leaky.evidence) == (False, "notes.md holds a line of the reference")
    write(folder, "instruction.md", f"Finish `notes.md`, without {line}\n")
    assert found(read_harbor(folder), CheckKind.NO_LEAK).passed


def test_a_solution_may_keep_lines_of_the_file_that_it_rewrites(tmp_path: Path) -> None:
    folder = good_folder(tmp_path / "task")
    kept = "total = sum(int(row['amount']) for row in orders_of(customer))"
    write(folder, "solution/solve.sh", f"cat > app.py <<'END'\n{kept}\nprint(total)\nEND\n")
    assert found(harbor_task(folder, "app.py", f"{kept}\n"), CheckKind.NO_LEAK).passed


def test_a_line_of_a_hidden_test_lying_about_is_found(tmp_path: Path) -> None:
    line = 'want, path = Path(sys.argv[1]).read_text("utf-8"), Path(sys.argv[2])'
    assert line == max(CHECK.splitlines(), key=len)
    task = harbor_task(good_folder(tmp_path / "task"), "todo.txt", f"# {line}\n")
    check = found(task, CheckKind.NO_LEAK)
    assert check.evidence == "todo.txt holds a line of the hidden check.py"


MADE = File(path="out.txt", content="the sum is 820, computed exactly\n")


@pytest.mark.parametrize(
    ("name", "goal", "leaks_there"),
    [
        ("answer_for_grader.txt", "Write the sum of orders.csv to out.txt.", True),
        ("out.txt", "Write the sum of orders.csv to out.txt.", False),  # in its own place
        ("draft.txt", "Copy draft.txt to out.txt.", False),
    ],
)
def test_what_the_reference_made_may_not_lie_about(
    tmp_path: Path, name: str, goal: str, leaks_there: bool
) -> None:
    folder = good_folder(tmp_path / "task")
    task = harbor_task(folder, name, MADE.content if name != "out.txt" else MADE.content + "2\n")
    task = changed(task, goal=goal)
    check = leaks(task, (*task.brief.environment.files, MADE), no_image)
    if not leaks_there:
        assert check is None
        return
    assert check is not None
    assert (check.kind, check.passed) == (CheckKind.NO_LEAK, False)
    assert check.evidence == f"{name} holds what the reference makes: out.txt"


def test_a_row_that_the_reference_looks_up_is_no_leak(tmp_path: Path) -> None:
    """Its table is named by the goal; the same row in a file that nobody names is one."""
    task = read_harbor(good_folder(tmp_path / "task"))
    row = File(path="top.txt", content="customer,amount\n")
    assert leaks(task, (row,), no_image) is None
    strange = with_file(task, "zzz.bin", b"1\ncustomer,amount\n2\n")
    assert leaks(strange, (row,), no_image) is not None


def test_a_row_of_a_file_that_the_solution_reads_is_no_leak_and_a_copy_of_the_answer_is_one(
    tmp_path: Path,
) -> None:
    folder = good_folder(tmp_path / "task")
    write(folder, "solution/solve.sh", "head -1 zzz.bin > top.txt\n")
    row = File(path="top.txt", content="customer of the year\n")
    task = harbor_task(folder, "zzz.bin", f"{row.content}second\n")
    assert leaks(task, (row,), no_image) is None
    copied = changed(task, files=(File(path="zzz.bin", content=row.content),))
    assert leaks(copied, (row,), no_image) is not None


def test_an_answer_of_a_few_characters_may_turn_up_by_chance(tmp_path: Path) -> None:
    task = harbor_task(good_folder(tmp_path / "task"), "x.txt", "abc 12345\n")
    assert leaks(task, (File(path="out.txt", content="12345\n"),), no_image) is None
