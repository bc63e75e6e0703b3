"""What can be said of a task without running it."""

import base64
import hashlib
import zlib
from collections.abc import Mapping

import pytest

from flywheel.screen.lint import lint
from schemas.file import File
from schemas.screening import CheckKind, ScreenCheck
from schemas.task import Environment, Requirement, TaskManifest
from schemas.tool import ToolCall
from tests.real_tasks import real_task

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


def no_image(image: str, needles: Mapping[str, bytes]) -> list[str]:
    """The layers of an image without secrets."""
    return []


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

    def search(image: str, needles: Mapping[str, bytes]) -> list[str]:
        return [f"layer 3: 'app/x' holds {name}" for name, n in needles.items() if n in layer]

    (leak,) = (check for check in lint(task, search) if check.kind == CheckKind.NO_LEAK)
    assert leak.passed is False
    assert leak.evidence.startswith("layer 3")
