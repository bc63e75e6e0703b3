"""The scripted user tells what it knows, once its purpose is known, and remembers what it said."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flywheel.errors import ManifestError
from flywheel.tools.host import Answer
from flywheel.tools.user import ScriptedUserTool, ask_tool
from schemas.task import ScriptedUser
from schemas.tool import ToolHome, ToolKind

USER = ScriptedUser(
    answers={"status": "Only `paid` counts.", "least": "At least `7`.", "order": "By name."},
    after={"least": "status", "order": "least"},
)


def asked(tool: ScriptedUserTool, topic: str) -> Answer:
    return tool.answer({"about": topic}, 1.0)


def test_the_tool_is_simulated_and_offers_its_topics_only() -> None:
    tool = ask_tool("status", "weather")
    assert (tool.kind, tool.home, tool.program) == (ToolKind.SIMULATED, ToolHome.HOST, "user")
    (about,) = tool.parameters
    assert (about.name, about.choices) == ("about", ("status", "weather"))


def test_a_question_is_answered_and_a_repeated_one_is_marked_as_such() -> None:
    tool = ScriptedUserTool(USER)
    assert asked(tool, "status") == Answer("Only `paid` counts.")
    assert asked(tool, "status") == Answer("As I said before: Only `paid` counts.")


def test_a_topic_waits_until_its_purpose_was_told() -> None:
    tool = ScriptedUserTool(USER)
    refusal = Answer("I need to know what it is for. Please ask about least first.", failed=True)
    assert asked(tool, "order") == refusal
    assert asked(tool, "least").failed
    assert asked(tool, "order") == refusal  # a question that was refused opens nothing
    assert [asked(tool, topic).failed for topic in ("status", "least", "order")] == [False] * 3


def test_what_one_attempt_was_told_is_unknown_to_the_next() -> None:
    asked(ScriptedUserTool(USER), "status")
    assert asked(ScriptedUserTool(USER), "status") == Answer("Only `paid` counts.")
    assert asked(ScriptedUserTool(USER), "least").failed


@pytest.mark.parametrize("arguments", [{"about": "weather"}, {}, {"topic": "status"}])
def test_an_unknown_topic_is_refused_politely(arguments: dict[str, str]) -> None:
    answer = ScriptedUserTool(USER).answer(arguments, 1.0)
    assert answer == Answer("Sorry, I know nothing about that.", failed=True)


@given(st.text())
def test_a_refusal_repeats_nothing_of_a_hostile_question(topic: str) -> None:
    expected = Answer("Sorry, I know nothing about that.", failed=True)
    assert topic in USER.answers or asked(ScriptedUserTool(USER), topic) == expected


@given(st.lists(st.sampled_from([*USER.answers, "weather"]), max_size=12))
def test_every_order_of_questions_gets_each_answer_once_and_only_after_its_purpose(
    topics: list[str],
) -> None:
    tool, told = ScriptedUserTool(USER), set[str]()
    for topic in topics:
        answer = asked(tool, topic)
        able = topic in USER.answers and {USER.after.get(topic, topic)} <= told | {topic}
        assert answer.failed != able
        if able:
            assert answer.text.startswith("As I said") == (topic in told)
            told.add(topic)


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"status": "purpose"}, "user.after: 'purpose' has no answer; add it to user.answers"),
        ({"purpose": "status"}, "user.after: 'purpose' has no answer; add it to user.answers"),
        ({"status": "least", "least": "status"}, "status → least → status wait for each other"),
    ],
)
def test_a_user_who_could_never_tell_is_refused(after: dict[str, str], message: str) -> None:
    user = ScriptedUser(answers=USER.answers, after=after)
    with pytest.raises(ManifestError, match=re.escape(message)):
        ScriptedUserTool(user)
