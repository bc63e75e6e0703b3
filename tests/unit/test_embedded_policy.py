"""The embedded policy acts within the grammar, purely, and reports what it drew."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flywheel.errors import PolicyError
from flywheel.policy.embedded import EmbeddedPolicy
from flywheel.policy.embedded.decoder import initial_weights, rows_of, states, token_logprobs
from flywheel.policy.embedded.encoding import MAX_TOKENS, encode, read_on
from flywheel.policy.embedded.vocabulary import GUESTS, Vocabulary
from flywheel.train import load_policy, train_sft, untrained
from schemas.attempt import Sampling, Tokens, Turn, TurnStatus
from schemas.config import TrainConfig
from schemas.task import Brief, Budget, Environment
from schemas.tool import Parameter, ToolCall, ToolSpec
from tests.demonstrations import reference_turns, some_demonstrations
from tests.real_tasks import real_task

TASK = real_task("keep-last", "half-even", seed=5)
TURNS = reference_turns(TASK)
LITERAL = re.compile(r"`([^`]+)`")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedPolicy:
    """A policy with a little training, so that its probabilities are uneven."""
    folder: Path = tmp_path_factory.mktemp("policies")
    config = TrainConfig(steps=30, batch=6)
    parent = untrained(folder, 0).version
    return load_policy(
        folder, train_sft(folder, parent, some_demonstrations(), (), config, 1).version
    )


def fresh(seed: int = 0) -> EmbeddedPolicy:
    return EmbeddedPolicy("embedded-test", initial_weights(seed), Vocabulary())


def recomputed(
    policy: EmbeddedPolicy, brief: Brief, turns: tuple[Turn, ...], call: ToolCall, tokens: Tokens
) -> torch.Tensor:
    """The scores of all tokens at each position of the completion, from one pass over all."""
    made = Turn(call=call, raw="", status=TurnStatus.OK, observation="", policy_version="x")
    whole = encode(policy.vocabulary, brief.goal, brief.tools, (*turns, made))
    ids = torch.tensor([tokens.prompt + tokens.completion])
    length = ids.shape[1]
    reading = torch.tensor([whole.reading[:length]]).float()
    context = states(policy.weights, ids, torch.tensor([whole.goal]), reading)
    allowed = dict(whole.targets)
    at = torch.arange(len(tokens.prompt), length)[None]
    masks = torch.stack([rows_of(allowed[int(position)]) for position in at[0]])[None]
    return token_logprobs(policy.weights, context, ids, at, masks)[0]


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_reported_log_probabilities_are_those_of_the_weights(
    policy: EmbeddedPolicy, temperature: float
) -> None:
    for acting in (policy, fresh()):
        for number in range(len(TURNS)):
            turns = TURNS[:number]
            action = acting.act(TASK.brief, turns, Sampling(temperature=temperature), seed=3)
            assert action.call is not None
            assert action.tokens is not None
            rows = recomputed(acting, TASK.brief, turns, action.call, action.tokens)
            for scores, token, logprob in zip(
                rows, action.tokens.completion, action.tokens.logprobs, strict=True
            ):
                scaled = (scores / (temperature or 1.0)).log_softmax(0)
                assert logprob == pytest.approx(float(scaled[token]), abs=1e-4)
                if temperature == 0:
                    assert float(scores[token]) == pytest.approx(float(scores.max()), abs=1e-5)


def test_drawn_tokens_follow_the_reported_probabilities(policy: EmbeddedPolicy) -> None:
    """Each seed has aliases of its own, which a tool's name hardly depends on at the start."""
    draws = [policy.act(TASK.brief, (), Sampling(), seed) for seed in range(120)]
    first = [(d.tokens.completion[0], d.tokens.logprobs[0]) for d in draws if d.tokens]
    expected = sum(float(torch.tensor(logprob).exp()) for token, logprob in first) / len(first)
    counts: dict[int, int] = {}
    for token, _ in first:
        counts[token] = counts.get(token, 0) + 1
    collision = sum(count * (count - 1) for count in counts.values()) / (120 * 119)
    assert collision == pytest.approx(expected, abs=0.12)


def test_top_p_keeps_only_the_likeliest_and_renormalises(policy: EmbeddedPolicy) -> None:
    narrow = policy.act(TASK.brief, (), Sampling(top_p=1e-9), seed=1)
    greedy = policy.act(TASK.brief, (), Sampling(temperature=0.0), seed=1)
    assert narrow.call == greedy.call
    assert narrow.tokens is not None
    assert narrow.tokens.logprobs == pytest.approx([0.0] * len(narrow.tokens.logprobs), abs=1e-6)


def test_the_same_arguments_give_the_same_action_from_any_thread(policy: EmbeddedPolicy) -> None:
    def act(number: int) -> object:
        return policy.act(TASK.brief, TURNS[: number % len(TURNS)], Sampling(), number % 7)

    alone = [act(number) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(act, range(24))) == alone


def test_each_prompt_continues_the_one_before(policy: EmbeddedPolicy) -> None:
    """One seed an attempt: what was fed and said stays as it was."""
    turns: tuple[Turn, ...] = ()
    so_far: tuple[int, ...] = ()
    for turn in TURNS[:4]:
        action = policy.act(TASK.brief, turns, Sampling(), seed=9)
        assert action.tokens is not None
        assert action.tokens.prompt[: len(so_far)] == so_far
        so_far = action.tokens.prompt + action.tokens.completion
        turns = (*turns, turn.model_copy(update={"call": action.call}))


def test_another_seed_gives_operands_other_aliases(policy: EmbeddedPolicy) -> None:
    one, two = (policy.act(TASK.brief, (), Sampling(), seed).tokens for seed in (1, 2))
    assert one is not None
    assert two is not None
    assert one.prompt != two.prompt
    assert len(one.prompt) == len(two.prompt)


def renamed(text: str) -> str:
    return LITERAL.sub(lambda match: f"`{match[1][::-1]}-x`", text)


@given(number=st.integers(0, len(TURNS) - 1), seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_renaming_operands_renames_them_in_the_call_and_changes_nothing_else(
    number: int, seed: int
) -> None:
    acting, turns = fresh(1), TURNS[:number]
    brief = TASK.brief.model_copy(update={"goal": renamed(TASK.brief.goal)})
    specs = {tool.name: tool for tool in TASK.brief.tools}

    def other(call: ToolCall) -> ToolCall:
        free = {p.name for p in specs[call.tool].parameters if not p.choices}
        return ToolCall(
            tool=call.tool,
            arguments={n: f"{v[::-1]}-x" if n in free else v for n, v in call.arguments.items()},
        )

    told = tuple(
        turn.model_copy(
            update={
                "call": other(turn.call) if turn.call else None,
                "observation": renamed(turn.observation),
            }
        )
        for turn in turns
    )
    before, after = (
        acting.act(TASK.brief, turns, Sampling(), seed),
        acting.act(brief, told, Sampling(), seed),
    )
    assert before.call is not None
    assert after.call == other(before.call)
    assert after.tokens == before.tokens


NAMES = st.from_regex(r"\A[a-z][a-z0-9-]{0,8}\Z")
TEXTS = st.text("ab`. 7,Éß\n", max_size=80)
PARAMETERS = st.builds(
    Parameter,
    name=NAMES,
    description=st.just(""),
    choices=st.lists(NAMES, max_size=3, unique=True).map(tuple),
)
TOOLS = st.lists(
    st.builds(
        ToolSpec,
        name=NAMES,
        description=st.just(""),
        program=st.just("any"),
        parameters=st.lists(PARAMETERS, max_size=3, unique_by=lambda p: p.name).map(tuple),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda tool: tool.name,
).map(tuple)
CALLS = st.none() | st.builds(
    ToolCall, tool=NAMES, arguments=st.dictionaries(NAMES, st.text(max_size=9), max_size=3)
)


@given(
    goal=TEXTS, tools=TOOLS, said=st.lists(st.tuples(CALLS, TEXTS), max_size=5), seed=st.integers()
)
@settings(max_examples=40, deadline=None)
def test_any_brief_and_history_gets_a_call_that_the_grammar_allows(
    goal: str, tools: tuple[ToolSpec, ...], said: list[tuple[ToolCall | None, str]], seed: int
) -> None:
    """Also with tools that no training has seen, and after unreadable or foreign calls."""
    turns = tuple(
        Turn(call=call, raw="", status=TurnStatus.OK, observation=text, policy_version="x")
        for call, text in said
    )
    brief = Brief(
        goal=goal,
        environment=Environment(files=()),
        tools=tools,
        artifacts=(),
        budget=Budget(),
    )
    call = fresh().act(brief, turns, Sampling(), seed).call
    assert call is not None
    spec = next(tool for tool in tools if tool.name == call.tool)
    assert tuple(call.arguments) == tuple(parameter.name for parameter in spec.parameters)
    named = {match[1] for text in (goal, *(t for _, t in said)) for match in LITERAL.finditer(text)}
    named |= {value for c, _ in said if c for value in c.arguments.values()}
    for parameter in spec.parameters:
        value = call.arguments[parameter.name]
        assert value in parameter.choices if parameter.choices else value in named | {""}


def test_a_long_history_loses_its_oldest_observations_first() -> None:
    long = TURNS[1].model_copy(update={"observation": "word " * 200})
    turns = (TURNS[0], long, long, long)
    encoded = encode(Vocabulary(), TASK.brief.goal, TASK.brief.tools, turns)
    whole = encode(Vocabulary(), TASK.brief.goal, TASK.brief.tools, TURNS[:2])
    assert len(encoded.ids) <= MAX_TOKENS
    assert encoded.goal == whole.goal
    assert len(encoded.targets) > 3 * len(TURNS[1].call.arguments)  # type: ignore[union-attr]
    assert encoded.ids[-201:-1] == (1,) * 200


@pytest.mark.parametrize("turns", [0, 300])
def test_nothing_is_too_long_to_act_on(turns: int) -> None:
    goal = "a long story about `reef.csv` and " * 400
    brief = TASK.brief.model_copy(update={"goal": goal})
    history = (TURNS[0],) * turns
    action = fresh().act(brief, history, Sampling(), seed=1)
    assert action.tokens is not None
    assert len(action.tokens.prompt) <= MAX_TOKENS


def test_reading_goes_on_to_the_next_occurrence_and_back_to_the_first_at_the_end() -> None:
    goal = [70, 8, 71, 9, 72, 8]
    assert read_on(goal, 0, 8) == 1
    assert read_on(goal, 1, 8) == 5
    assert read_on(goal, 5, 9) == 3
    assert read_on(goal, 4, 44) == 4


def test_more_unseen_names_than_guest_rows_are_refused_by_name_of_the_limit() -> None:
    tools = tuple(
        ToolSpec(name=f"tool-{n}", description="", program="any") for n in range(GUESTS + 1)
    )
    brief = TASK.brief.model_copy(update={"tools": tools})
    with pytest.raises(PolicyError, match=f"{GUESTS + 1} unseen") as refusal:
        fresh().act(brief, (), Sampling(), seed=1)
    assert not refusal.value.status.retryable
