"""A simulated tool is compared with a real one by whole call sequences, with their state."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import SandboxError
from flywheel.families.briefing import FAMILY
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.sandbox import Sandbox, SandboxSpec
from flywheel.sandbox.bubblewrap import Bubblewrap
from flywheel.sequences import MOST, MOST_CALLS, sequences
from flywheel.simulation import Fidelity, SandboxedTool, check_simulation, compare_tools
from flywheel.tools import program_source
from flywheel.tools.host import Answer, HostTool
from flywheel.tools.user import ScriptedUserTool, ask_tool
from schemas.file import File
from schemas.lineage import Split
from schemas.screening import CheckKind
from schemas.task import Brief, Budget, ScriptedUser, Source, SourceKind, TaskManifest
from schemas.tool import Parameter, ToolCall, ToolHome, ToolKind, ToolSpec

BACKEND = Bubblewrap()
SOURCE = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")
RULES = frozenset({"only-status", "at-least", "largest-first"})


@pytest.fixture(scope="module")
def task() -> TaskManifest:
    return make_task(FAMILY, RULES, 1, Lexicon(Split.TRAIN), Budget(), SOURCE)


class Forgetful:
    """Each call meets a user who remembers nothing."""

    def __init__(self, user: ScriptedUser) -> None:
        self.user = user

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        return ScriptedUserTool(self.user).answer(arguments, seconds)


def next_answer(user: ScriptedUser) -> ScriptedUser:
    """Each topic has the answer of the next one."""
    texts = [*user.answers.values()]
    return user.model_copy(
        update={"answers": dict(zip(user.answers, texts[1:] + texts[:1], strict=True))}
    )


def heedless(user: ScriptedUser) -> ScriptedUser:
    return user.model_copy(update={"after": {}})


def test_the_scripted_user_agrees_with_the_help_desk_in_its_sandbox(task: TaskManifest) -> None:
    check = check_simulation(task, BACKEND.open)
    assert (check.kind, check.passed) == (CheckKind.SIMULATION_FAITHFUL, True)
    assert check.evidence == "70 of 70 sequences agree (0.949 to 1.000)"


@pytest.mark.parametrize(
    ("simulate", "differs"),
    [
        (Forgetful, "after status, status: 'Use only"),
        (lambda user: ScriptedUserTool(next_answer(user)), "after status: 'Use only"),
        (lambda user: ScriptedUserTool(heedless(user)), "after quantity: 'Use only"),
    ],
    ids=["forgets what it said", "answers the wrong topic", "ignores what comes first"],
)
def test_a_fault_of_the_simulation_is_caught_with_the_calls_that_show_it(
    task: TaskManifest, simulate: Callable[[ScriptedUser], HostTool], differs: str
) -> None:
    check = check_simulation(task, BACKEND.open, simulate)
    assert check.passed is False
    assert differs in check.evidence


def with_tools(task: TaskManifest, *tools: ToolSpec) -> TaskManifest:
    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest(**fields | {"brief": Brief(**dict(task.brief) | {"tools": tools})})


def test_a_simulated_tool_without_a_real_counterpart_is_not_called_faithful(
    task: TaskManifest,
) -> None:
    weather = ToolSpec(
        name="weather",
        description="tell it",
        kind=ToolKind.SIMULATED,
        home=ToolHome.HOST,
        program="http:weather",
    )
    check = check_simulation(with_tools(task, weather), BACKEND.open)
    assert (check.passed, check.evidence) == (None, "no real counterpart of weather")


def test_a_task_without_simulated_tools_has_nothing_to_compare(task: TaskManifest) -> None:
    real = [tool for tool in task.brief.tools if tool.kind is ToolKind.REAL]
    check = check_simulation(with_tools(task, *real), BACKEND.open)
    assert (check.passed, check.evidence) == (True, "no tool is simulated")


def test_a_help_desk_that_breaks_leaves_the_check_undecided(task: TaskManifest) -> None:
    @contextmanager
    def broken(spec: SandboxSpec) -> Iterator[Sandbox]:
        programs = {"helpdesk": "def main(argv):\n    raise SystemError('broken')\n"}
        with BACKEND.open(replace(spec, programs=programs)) as sandbox:
            yield sandbox

    check = check_simulation(task, broken)
    assert check.passed is None
    assert "tool-broke" in check.evidence
    assert "SystemError: broken" in check.evidence


def test_a_tool_in_a_sandbox_keeps_its_state_in_its_folder_and_breaks_loudly() -> None:
    counter = (
        "from pathlib import Path\n"
        "def main(argv):\n"
        "    seen = Path('seen')\n"
        "    count = len(seen.read_text()) if seen.exists() else 0\n"
        "    seen.write_text('x' * (count + 1))\n"
        "    print(*argv, count)\n"
        "    return (0, 2, 3)[count]\n"
    )
    spec = SandboxSpec(programs={"counter": counter}, deadline=30.0, labels={})
    with BACKEND.open(spec) as sandbox:
        sandbox.put((), "one")
        sandbox.put((), "two")
        one = SandboxedTool(sandbox, "counter", "next", "one")
        two = SandboxedTool(sandbox, "counter", "next", "two")
        assert one.answer({"by": "x y"}, 5.0) == Answer("next --by=x y 0")
        assert one.answer({}, 5.0) == Answer("next 1", failed=True)
        assert two.answer({}, 5.0) == Answer("next 0")
        with pytest.raises(SandboxError, match="counter next: exit 3: next 2"):
            one.answer({}, 5.0)


def test_the_help_desk_refuses_what_it_does_not_offer() -> None:
    spec = SandboxSpec(programs={"helpdesk": program_source("helpdesk")}, deadline=30.0, labels={})
    with BACKEND.open(spec) as sandbox:
        for argv in (["tell", "--about=x"], ["ask"], ["ask", "--about=x", "--about2=y"]):
            result = sandbox.call(["helpdesk", *argv], 5.0)
            assert (result.exit_code, result.output) == (2, b"usage: ask --about=TOPIC\n")


def test_sequences_are_all_pairs_random_longer_ones_and_the_references_own() -> None:
    tool = ask_tool("a", "b", "c")
    own = tuple(ToolCall(tool="ask", arguments={"about": topic}) for topic in "ca")
    reference = (ToolCall(tool="read-csv", arguments={"file": "x"}), *own)
    tried = sequences(tool, reference, 7)
    topics = ["".join(call.arguments["about"] for call in sequence) for sequence in tried]
    assert {one + other for one in "abc" for other in "abc"} == set(topics[:9])
    assert all(3 <= len(sequence) <= 8 for sequence in tried[9:-1])
    assert tried[-1] == own
    assert tried == sequences(tool, reference, 7)
    assert tried != sequences(tool, reference, 8)


def test_a_parameter_without_choices_takes_the_references_values() -> None:
    literal = Parameter(name="of", description="")
    tool = ask_tool("a").model_copy(update={"parameters": (literal,)})
    own = tuple(ToolCall(tool="ask", arguments={"of": value}) for value in ("x", "y"))
    values = {call.arguments["of"] for sequence in sequences(tool, own, 7) for call in sequence}
    assert values == {"x", "y"}


def test_a_tool_with_more_calls_than_can_be_listed_is_tried_with_a_sample(
    task: TaskManifest,
) -> None:
    """Forty parameters of ten choices each: 10^40 calls, and nobody makes the product of them."""
    digits = tuple(str(digit) for digit in range(10))
    many = tuple(Parameter(name=f"p{n}", description="", choices=digits) for n in range(40))
    tool = ask_tool("a").model_copy(update={"parameters": many})
    tried = sequences(tool, (), 7)
    calls = {call.model_dump_json() for sequence in tried for call in sequence}
    assert len(calls) == MOST_CALLS
    assert {call.model_dump_json() for (call, *more) in tried if not more} == calls
    assert len(tried) == MOST - 1
    assert tried == sequences(tool, (), 7)
    some = ask_tool(*(f"t{n}" for n in range(40)))
    singles = [call for (call, *more) in sequences(some, (), 7) if not more]
    assert len(singles) == 40


def test_what_was_left_out_is_told(task: TaskManifest) -> None:
    assert task.sealed.user is not None
    (ask,) = (tool for tool in task.brief.tools if tool.kind is ToolKind.SIMULATED)
    wide = ask_tool(*task.sealed.user.answers, *(f"t{n}" for n in range(60)))
    tools = [wide if tool == ask else tool for tool in task.brief.tools]
    check = check_simulation(with_tools(task, *tools), BACKEND.open)
    assert check.passed is True
    assert "of 200 sequences agree" in check.evidence
    assert "a sample: 50 of 6" in check.evidence


def test_a_simulated_tool_that_can_not_be_called_is_not_called_faithful(
    task: TaskManifest,
) -> None:
    (ask,) = (tool for tool in task.brief.tools if tool.kind is ToolKind.SIMULATED)
    literal = Parameter(name="of", description="")
    lost = ask.model_copy(update={"name": "never", "parameters": (literal,)})
    check = check_simulation(with_tools(task, lost), BACKEND.open)
    assert check.passed is None
    assert "no call to try" in check.evidence


class Letters:
    """Answers each call with the next letter of `text`."""

    def __init__(self, text: str) -> None:
        self.text = iter(text)

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        return Answer(next(self.text))


def test_a_sequence_stops_at_its_first_difference_and_starts_afresh() -> None:
    call = ToolCall(tool="next")
    fidelity = compare_tools(
        lambda: Letters("abcd"), lambda: Letters("abxx"), [(call,) * 4, (call,) * 2]
    )
    assert (fidelity.sequences, fidelity.calls) == (2, 5)
    (divergence,) = fidelity.divergences
    assert divergence.at == 2
    assert (divergence.simulated, divergence.real) == (Answer("c"), Answer("x"))


@pytest.mark.parametrize(
    ("agree", "total", "interval"),
    [
        (10, 10, (0.6915, 1.0)),
        (0, 10, (0.0, 0.3085)),
        (9, 10, (0.5550, 0.9975)),
        (0, 0, (0.0, 1.0)),
    ],
)
def test_agreement_has_the_exact_interval(
    agree: int, total: int, interval: tuple[float, float]
) -> None:
    differ = compare_tools(
        lambda: Letters("a"), lambda: Letters("b"), [(ToolCall(tool="next"),)] * (total - agree)
    )
    fidelity = Fidelity(total, total, differ.divergences)
    assert fidelity.agreement == pytest.approx(interval, abs=5e-5)


@pytest.fixture(scope="module")
def desk() -> Iterator[Callable[[ScriptedUser], SandboxedTool]]:
    """Opens help desks for users, each in a folder of its own."""
    spec = SandboxSpec(programs={"helpdesk": program_source("helpdesk")}, deadline=60.0, labels={})
    with BACKEND.open(spec) as sandbox:
        numbers = count()

        def opened(user: ScriptedUser) -> SandboxedTool:
            folder = f"desk-{next(numbers)}"
            known = File(path=".helpdesk.json", content=user.model_dump_json())
            sandbox.put([known], folder)
            return SandboxedTool(sandbox, "helpdesk", "ask", folder)

        yield opened


names = st.from_regex(r"[a-z][a-z0-9]{0,3}", fullmatch=True)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(names, st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_the_two_implementations_say_the_same_whatever_the_answers_are(
    desk: Callable[[ScriptedUser], SandboxedTool], answers: dict[str, str]
) -> None:
    topics = list(answers)
    user = ScriptedUser(answers=answers, after=dict(zip(topics[1:], topics, strict=False)))
    asked = (ToolCall(tool="ask", arguments={"about": topic}) for topic in topics[::-1] + topics)
    sequence = tuple(asked) * 2
    fidelity = compare_tools(lambda: ScriptedUserTool(user), lambda: desk(user), [sequence])
    assert fidelity.divergences == ()
    assert fidelity.calls == 4 * len(topics)
