"""Screening on real sandboxes: good tasks get a receipt, sabotaged ones a reason."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from itertools import count

import pytest

from flywheel.errors import SandboxError
from flywheel.families.catalogue import FAMILIES
from flywheel.graders import grader_version
from flywheel.sandbox import Backend, OpenSandbox, Sandbox, SandboxSpec
from flywheel.sandbox.layers import Searched
from flywheel.screen import Screening, screen
from flywheel.screen.exploits import SCRIPTS, control, control_id
from flywheel.screen.observed import observed
from flywheel.screen.plans import INITIAL, Role
from flywheel.screen.trials import Specimen, Trials
from flywheel.tools import BASH_TOOL, SUBMIT_TOOL
from schemas.attempt import CheckResult, Grade, InfraStage, Verdict
from schemas.base import content_id
from schemas.file import File
from schemas.screening import (
    CheckKind,
    Control,
    ControlReport,
    ScreenCheck,
    ScreenVerdict,
    Trust,
)
from schemas.task import (
    Brief,
    Budget,
    Environment,
    Grader,
    Mutant,
    MutantKind,
    Sealed,
    SourceKind,
    TaskManifest,
)
from schemas.tool import ToolCall, ToolHome, ToolSpec
from tests.real_tasks import SEED, real_task

ENVIRONMENT = "env-test"


@pytest.fixture(params=["bubblewrap", pytest.param("docker_backend", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.getfixturevalue(request.param)


def controlled(task: TaskManifest, killed: bool | None = True) -> ControlReport:
    """What trying one exploit came to; the real ones have tests of their own."""
    return ControlReport(
        family=task.family,
        environment_digest=ENVIRONMENT,
        grader_version=task.sealed.grader.version,
        version_id=task.version_id,
        controls=(Control(name="writes-the-reward-file", killed=killed, evidence="planted"),),
        seconds=0.1,
    )


def screened(
    task: TaskManifest, backend: Backend, controls: ControlReport | None = None
) -> Screening:
    cited = controls or controlled(task)

    def controls_of_the_family() -> ControlReport:
        return cited

    search = backend.search_image
    return screen(
        task, backend.open, ENVIRONMENT, "run-test", time.time, controls_of_the_family, search
    )


def rebuilt(task: TaskManifest, **changes: object) -> TaskManifest:
    """The task with fields replaced, rebuilt so that its ids are its own."""
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**{**fields, **changes})


def sabotaged(task: TaskManifest, **sealed: object) -> TaskManifest:
    """The task with parts of its sealed half replaced; untagged, where its checks are."""
    half = {name: getattr(task.sealed, name) for name in type(task.sealed).model_fields}
    if "grader" in sealed:
        half["requirements"] = ()
    return rebuilt(task, sealed=type(task.sealed)(**{**half, **sealed}))


def graded_by(task: TaskManifest, **changes: object) -> TaskManifest:
    return sabotaged(task, grader=task.sealed.grader.model_copy(update=changes))


def check(screening: Screening, kind: CheckKind) -> ScreenCheck:
    return next(check for check in screening.report.checks if check.kind == kind)


@cache
def any_task(family: str) -> TaskManifest:
    """A task of each family, with the first rules that go together."""
    rules = tuple(FAMILIES[family].rules)
    return real_task(rules[0], family=family)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_task_of_every_family_passes_every_check(bubblewrap: Backend, family: str) -> None:
    screening = screened(any_task(family), bubblewrap)
    report = screening.report
    assert (report.verdict, report.reason, report.survivors) == (
        ScreenVerdict.ACCEPTED,
        "accepted",
        (),
    ), report.checks
    assert set(report.unmeasured) <= {CheckKind.CLOCK_SHIFTED}
    assert report.trust is Trust.VERIFIED
    assert (report.references, report.references_passed) == (3, 3)
    assert report.mutants == report.mutants_killed > 3
    assert report.kill_lower < report.kill_upper == 1.0
    assert screening.reference is not None
    assert screening.reference.verdict is Verdict.PASSED


@pytest.mark.docker
@pytest.mark.parametrize("family", ["orders", "permissions", "script"])
def test_docker_agrees(docker_backend: Backend, family: str) -> None:
    report = screened(any_task(family), docker_backend).report
    assert (report.reason, report.survivors) == ("accepted", ()), report.checks
    assert report.unmeasured == ()


def test_a_task_boots_no_more_sandboxes_than_its_checks_mean(bubblewrap: Backend) -> None:
    """One as the agent finds it, one under shifted conditions, one for the grader."""
    assert screened(real_task(), bubblewrap).report.boots == 3


def test_a_reference_that_does_not_solve_the_task_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task()
    report = screened(sabotaged(task, reference=task.sealed.reference[:-1]), bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.REJECTED, "not-reference-passes")


def test_a_task_that_is_solved_by_doing_nothing_is_a_reason(bubblewrap: Backend) -> None:
    """Its grader checks the inputs alone."""
    report = screened(graded_by(real_task(), checks=("input-unchanged",)), bubblewrap).report
    assert report.reason == "not-initial-state-fails"


def test_a_grader_that_lets_a_mutant_pass_is_a_reason_and_the_survivor_is_named(
    bubblewrap: Backend,
) -> None:
    report = screened(graded_by(real_task(), checks=("exists", "columns")), bubblewrap).report
    assert report.reason == "not-mutants-fail"
    assert "without-keep-last" in report.survivors
    assert report.mutants_killed < report.mutants
    assert report.kill_upper < 1.0


def test_survivors_of_an_outsiders_task_wait_for_a_person(bubblewrap: Backend) -> None:
    task = graded_by(real_task(), checks=("exists", "columns"))
    foreign = rebuilt(task, source=SEED.model_copy(update={"kind": SourceKind.IMPORTED}))
    report = screened(foreign, bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-mutants-fail")


def test_a_check_that_fails_nothing_is_a_reason(bubblewrap: Backend) -> None:
    """Nothing that screening does leaves an input changed where none is protected."""
    report = screened(graded_by(real_task(), protected=()), bubblewrap).report
    assert report.reason == "not-checks-can-fail"


def test_a_rule_whose_mutant_fails_for_another_reason_than_its_sentence_says_is_named(
    bubblewrap: Backend,
) -> None:
    task = real_task("keep-last")
    misnamed = tuple(
        item.model_copy(update={"checks": ("input-unchanged",)}) if item.rule else item
        for item in task.sealed.requirements
    )
    screening = screened(sabotaged(task, requirements=misnamed), bubblewrap)
    assert screening.report.reason == "not-checks-can-fail"
    assert "without-keep-last" in check(screening, CheckKind.CHECKS_CAN_FAIL).evidence


def test_a_rule_without_a_mutant_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task("keep-last", "at-least")
    of_one_rule = Mutant(name="nothing", kind=MutantKind.RULE_LEFT_OUT, rule="keep-last", script=())
    report = screened(sabotaged(task, mutants=(of_one_rule,)), bubblewrap).report
    assert (report.reason, report.survivors) == ("not-mutants-fail", ())


def test_a_step_of_the_reference_that_is_not_needed_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task("keep-last")
    first, *rest = task.sealed.reference
    twice = sabotaged(task, reference=(first, first, *rest))
    screening = screened(twice, bubblewrap)
    assert screening.report.reason == "not-steps-needed"
    assert "without-step-1-read-csv" in check(screening, CheckKind.STEPS_NEEDED).evidence


def test_a_prefix_that_passes_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task("keep-last")
    *_, save = task.sealed.reference
    longer = sabotaged(task, reference=(*task.sealed.reference, save))
    assert screened(longer, bubblewrap).report.reason == "not-prefixes-fail"


def test_a_wrong_expected_answer_is_found_by_the_reference(bubblewrap: Backend) -> None:
    task = real_task()
    (right,) = task.sealed.grader.expected
    wrong = File(path=right.path, content=right.content.replace(",", ",1", 3))
    report = screened(graded_by(task, expected=(wrong,)), bubblewrap).report
    assert report.reason == "not-reference-passes"


def test_an_alternative_that_the_grader_fails_is_a_reason(bubblewrap: Backend) -> None:
    """A false rejection: a right solution, written differently, does not pass."""
    task = real_task()
    command = "printf 'a,b\\n1,2\\n' > " + task.brief.artifacts[0]
    other = (ToolCall(tool="bash", arguments={"command": command}),)
    report = screened(sabotaged(task, alternatives=(other,)), bubblewrap).report
    assert report.reason == "not-alternative-passes"


def test_a_task_without_an_alternative_is_accepted_and_says_so(bubblewrap: Backend) -> None:
    report = screened(sabotaged(real_task(), alternatives=()), bubblewrap).report
    assert (report.verdict, report.trust) == (ScreenVerdict.ACCEPTED, Trust.PARTIAL)
    assert CheckKind.ALTERNATIVE_PASSES in report.unmeasured


def test_a_tool_that_is_not_there_is_a_reason(bubblewrap: Backend) -> None:
    task = real_task()
    ghost = task.brief.tools[0].model_copy(update={"name": "read-minds"})
    brief = task.brief.model_copy(update={"tools": (*task.brief.tools, ghost)})
    screening = screened(rebuilt(task, brief=brief), bubblewrap)
    assert screening.report.reason == "not-tools-reachable"
    assert "read-minds" in check(screening, CheckKind.TOOLS_REACHABLE).evidence


def test_an_exploit_that_lived_rejects_and_one_that_was_not_tried_is_unmeasured(
    bubblewrap: Backend,
) -> None:
    task = real_task()
    lived = screened(task, bubblewrap, controlled(task, killed=False)).report
    assert (lived.verdict, lived.reason) == (ScreenVerdict.REJECTED, "not-exploits-fail")
    untried = screened(task, bubblewrap, controlled(task, killed=None)).report
    assert (untried.verdict, untried.trust) == (ScreenVerdict.ACCEPTED, Trust.PARTIAL)


def test_what_is_wrong_to_read_is_not_run(bubblewrap: Backend) -> None:
    task = real_task()
    floating = Environment(files=task.brief.environment.files, image="debian:bookworm")
    brief = task.brief.model_copy(update={"environment": floating})
    report = screened(rebuilt(task, brief=brief), bubblewrap).report
    assert (report.reason, report.boots) == ("not-pinned", 0)


def test_egress_without_recorded_responses_waits_for_a_person(bubblewrap: Backend) -> None:
    task = real_task()
    open_net = Environment(files=task.brief.environment.files, egress=("example.org",))
    brief = task.brief.model_copy(update={"environment": open_net})
    report = screened(rebuilt(task, brief=brief), bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-pinned")


def test_a_reference_that_depends_on_where_it_runs_waits_for_a_person(
    bubblewrap: Backend,
) -> None:
    """It copes with a clean folder, and stumbles over what somebody left there before."""
    task = real_task("keep-last")
    output = task.brief.artifacts[0]
    other = task.sealed.alternatives[0][0].arguments["command"]
    picky = (ToolCall(tool="bash", arguments={"command": f"test ! -e {output} && {other}"}),)
    brief = task.brief.model_copy(update={"tools": (BASH_TOOL, *task.brief.tools)})
    shell = rebuilt(sabotaged(task, reference=picky, alternatives=()), brief=brief)
    screening = screened(shell, bubblewrap)
    assert screening.report.verdict is ScreenVerdict.QUARANTINED, screening.report.checks
    assert screening.report.reason == "not-reference-repeats"
    assert screening.report.references_passed == 2


def test_a_sandbox_that_fails_says_nothing_about_the_task() -> None:
    @contextmanager
    def never(spec: SandboxSpec) -> Iterator[Sandbox]:
        raise SandboxError(InfraStage.ENGINE, "engine-unreachable", "planted")
        yield

    task = real_task()
    cited = controlled(task)
    screening = screen(
        task, never, ENVIRONMENT, "run-test", time.time, lambda: cited, lambda *_: Searched()
    )
    assert screening.report.verdict is ScreenVerdict.UNSCREENED
    assert screening.reference is None
    assert screening.report.mutants == 0


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_exploit_fails_in_every_family(bubblewrap: Backend, family: str) -> None:
    task = any_task(family)
    report = control(task, ENVIRONMENT, bubblewrap.open)
    assert {c.name for c in report.controls} == set(SCRIPTS)
    assert [c for c in report.controls if not c.killed] == []
    assert report.control_id == control_id(task, ENVIRONMENT)


def test_an_exploit_lives_where_the_grader_can_be_fooled(bubblewrap: Backend) -> None:
    """A grader that looks only whether the answer is there: links fail, forged words do not."""
    task = graded_by(real_task(), checks=("exists",))
    report = control(task, ENVIRONMENT, bubblewrap.open)
    lived = {c.name for c in report.controls if not c.killed}
    assert "leaves-the-graders-words" in lived
    assert not {"links-to-a-system-file", "leaves-a-pipe"} & lived


def test_controls_are_shared_by_a_family_and_not_between_strangers() -> None:
    one, other = real_task(seed=1), real_task(seed=2)
    assert control_id(one, ENVIRONMENT) == control_id(other, ENVIRONMENT)
    assert control_id(one, ENVIRONMENT) != control_id(one, content_id("env", 2))
    foreign = SEED.model_copy(update={"kind": SourceKind.IMPORTED})
    ids = {control_id(rebuilt(task, source=foreign), ENVIRONMENT) for task in (one, other)}
    assert len(ids) == 2


def outsiders(task: TaskManifest) -> TaskManifest:
    """The task as a stranger brings it."""
    return rebuilt(task, source=SEED.model_copy(update={"kind": SourceKind.IMPORTED}))


def shell_task(test: str, command: str = "echo 820 > out.txt", **brief: object) -> TaskManifest:
    """A stranger's task with a shell and a verifier of its own."""
    (file,) = (File(path="test.sh", content=f"{test}\n", mode=0o755),)
    grader = Grader(
        program="harbor", version=grader_version("harbor"), checks=("reward",), expected=(file,)
    )
    whole = {
        "goal": "Write the sum of `n.txt` to `out.txt`.",
        "environment": Environment(files=(File(path="n.txt", content="400\n420\n"),)),
        "tools": (BASH_TOOL, SUBMIT_TOOL),
        "artifacts": ("./",),
        "budget": Budget(),
    }
    return TaskManifest(
        family="imported",
        family_version="imported@1",
        rules=(),
        seed=0,
        operands=(),
        brief=Brief(**{**whole, **brief}),
        sealed=Sealed(grader=grader, reference=(bash(command),)),
        features=None,
        source=SEED.model_copy(update={"kind": SourceKind.IMPORTED}),
    )


def bash(command: str) -> ToolCall:
    return ToolCall(tool="bash", arguments={"command": command})


PASSED = Grade(
    verdict=Verdict.PASSED,
    checks=(CheckResult(name="reward", passed=True, evidence="1"),),
    grader_version="v",
)
RIGHT = 'test "$(cat out.txt 2>/dev/null)" = 820'
REWARD = "&& echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"


def every_other_time(open_sandbox: OpenSandbox) -> OpenSandbox:
    """Sandboxes of which every second grader is told that it is unlucky."""
    opened = count()

    def told(spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        lucky = "harbor" not in spec.programs or next(opened) % 2 == 0
        luck = {**spec.environment, "LUCK": "good" if lucky else "bad"}
        return open_sandbox(replace(spec, environment=luck))

    return told


def test_a_verifier_that_is_not_sure_waits_for_a_person(bubblewrap: Backend) -> None:
    task = shell_task(f'{RIGHT} && test "$LUCK" = good {REWARD}')
    opened = every_other_time(bubblewrap.open)
    screening = screen(
        task,
        opened,
        ENVIRONMENT,
        "run-test",
        time.time,
        lambda: controlled(task),
        bubblewrap.search_image,
    )
    report = screening.report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-reference-repeats")
    assert "not sure" in check(screening, CheckKind.REFERENCE_REPEATS).evidence
    assert report.references_passed < report.references


def test_a_sure_verifier_of_a_strangers_task_is_accepted_with_little_trust(
    bubblewrap: Backend,
) -> None:
    screening = screened(shell_task(f"{RIGHT} {REWARD}"), bubblewrap)
    report = screening.report
    assert (report.reason, report.trust) == ("accepted", Trust.PARTIAL), report.checks
    steps = check(screening, CheckKind.STEPS_NEEDED)
    assert (steps.passed, steps.evidence[:8]) == (None, "one step")
    assert check(screening, CheckKind.BOOTS).passed


def test_a_verifier_that_expires_waits_for_a_person(bubblewrap: Backend) -> None:
    """It compares the clock with a day in a hundred days."""
    limit = int(time.time()) + 100 * 86_400
    task = shell_task(f'{RIGHT} && test "$(date +%s)" -lt {limit} {REWARD}')
    screening = screened(task, bubblewrap)
    clock = check(screening, CheckKind.CLOCK_SHIFTED)
    if clock.passed is None:
        pytest.skip(clock.evidence)
    assert screening.report.verdict is ScreenVerdict.QUARANTINED, screening.report.checks
    assert screening.report.reason == "not-clock-shifted"
    assert "the grader" in clock.evidence


def test_a_verifier_that_works_in_one_zone_only_waits_for_a_person(bubblewrap: Backend) -> None:
    task = shell_task(f'{RIGHT} && test "$TZ" != Pacific/Kiritimati {REWARD}')
    report = screened(task, bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-clock-shifted")


def test_a_verifier_that_looks_away_from_values_waits_for_a_person(bubblewrap: Backend) -> None:
    task = shell_task(f"grep -q '^8..$' out.txt {REWARD}")
    report = screened(task, bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-mutants-fail")
    assert "line-repeated:out.txt" in report.survivors


def test_a_strangers_reference_may_look_at_the_end(bubblewrap: Backend) -> None:
    task = shell_task(f"{RIGHT} {REWARD}")
    sealed = task.sealed.model_copy(
        update={"reference": (*task.sealed.reference, bash("cat out.txt"))}
    )
    report = screened(rebuilt(task, sealed=sealed), bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.QUARANTINED, "not-prefixes-fail")


def test_a_fault_that_rejects_is_not_hidden_behind_one_for_a_person(bubblewrap: Backend) -> None:
    """Survivors would wait for a person; that doing nothing is rewarded is sure."""
    report = screened(shell_task("echo 1 > /logs/verifier/reward.txt"), bubblewrap).report
    assert report.verdict is ScreenVerdict.REJECTED
    assert report.reason == "not-initial-state-fails"
    never = shell_task("echo 0 > /logs/verifier/reward.txt", goal="Write a sum.")
    report = screened(never, bubblewrap).report
    assert (report.verdict, report.reason) == (ScreenVerdict.REJECTED, "not-reference-passes")


@pytest.mark.parametrize(
    ("goal", "named"),
    [
        ("Write to `/workspace/out.txt`.", True),
        ("Write to out.txt, please.", True),
        ("Write to out.txt.", True),
        ("Write to out.txt.bak or layout.txt.", False),
        ("Write the output.", False),
    ],
)
def test_an_output_is_named_as_a_whole_word(goal: str, named: bool) -> None:
    task = shell_task("true", goal=goal)
    made = Specimen("reference", Role.REFERENCE, (File(path="out.txt", content="820\n"),))
    graded = [(replace(made, name=name), PASSED) for name in ("reference", INITIAL)]
    (found,) = (c for c in observed(task, Trials(), graded) if c.kind == CheckKind.OUTPUTS_NAMED)
    assert found.passed is named


def test_a_strangers_word_is_not_a_measurement(bubblewrap: Backend) -> None:
    """Its tags and its other solution come from who wants it to be accepted."""
    screening = screened(outsiders(real_task()), bubblewrap)
    for kind in (CheckKind.DESCRIBED, CheckKind.ALTERNATIVE_PASSES):
        assert kind in screening.report.unmeasured
        assert "only its author says so" in check(screening, kind).evidence
    assert screening.report.trust is Trust.PARTIAL


def test_the_reference_once_more_is_no_other_solution(bubblewrap: Backend) -> None:
    task = real_task()
    again = sabotaged(task, alternatives=(task.sealed.reference,))
    assert screened(again, bubblewrap).report.reason == "not-alternative-passes"


@pytest.mark.parametrize("what", ["grader", "tool", "user"])
def test_a_program_that_nobody_knows_is_a_reason(bubblewrap: Backend, what: str) -> None:
    task = real_task()
    if what == "grader":
        task = graded_by(task, program="nosuch")
    else:
        home = ToolHome.SANDBOX if what == "tool" else ToolHome.HOST
        ghost = ToolSpec(name="ghost", description="none", home=home, program="nosuch")
        brief = task.brief.model_copy(update={"tools": (*task.brief.tools, ghost)})
        task = rebuilt(task, brief=brief)
    screening = screened(task, bubblewrap)
    assert (screening.report.verdict, screening.report.reason) == (
        ScreenVerdict.REJECTED,
        "not-pinned",
    )
    assert "nosuch" in check(screening, CheckKind.PINNED).evidence


def test_no_value_in_code_is_changed_and_the_receipt_says_so() -> None:
    task = graded_by(outsiders(real_task()), program="tests")
    made = Specimen("reference", Role.REFERENCE, ())
    graded = [(made, PASSED)]
    checks = {c.kind: c for c in observed(task, Trials(), graded)}
    assert checks[CheckKind.VALUES_CHANGED].passed is None
    assert "no value was changed" in checks[CheckKind.MUTANTS_FAIL].evidence
