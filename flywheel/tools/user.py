"""The scripted user: a simulated person who knows what a goal leaves out, and tells when asked."""

from collections.abc import Mapping

from flywheel.errors import ManifestError
from flywheel.tools import choice
from flywheel.tools.host import Answer
from schemas.task import ScriptedUser
from schemas.tool import ToolHome, ToolKind, ToolSpec

USER = "user"
"""The program of the tools that the user answers."""


def ask_tool(*topics: str) -> ToolSpec:
    """Return the tool `ask`, for these topics: those that the user knows about, and decoys."""
    return ToolSpec(
        name="ask",
        description="ask the user, who knows what the task leaves open",
        parameters=(choice("about", "what to ask about", *topics),),
        kind=ToolKind.SIMULATED,
        home=ToolHome.HOST,
        program=USER,
    )


class ScriptedUserTool:
    """A `HostTool` that answers for one user, and remembers what it has said.

    Raises ManifestError where the user could never tell something: a topic waits for one without
    an answer, or topics wait for each other.
    """

    def __init__(self, user: ScriptedUser) -> None:
        self._user = user
        self._said: set[str] = set()
        _check(user)

    def answer(self, arguments: Mapping[str, str], seconds: float) -> Answer:
        """Answer a question about `arguments["about"]`; takes no time."""
        topic = arguments.get("about", "")
        if topic not in self._user.answers:
            return Answer("Sorry, I know nothing about that.", failed=True)
        first = self._user.after.get(topic)
        if first is not None and first not in self._said:
            return Answer(
                f"I need to know what it is for. Please ask about {first} first.", failed=True
            )
        again = "As I said before: " if topic in self._said else ""
        self._said.add(topic)
        return Answer(again + self._user.answers[topic])


def _check(user: ScriptedUser) -> None:
    for topic in user.after:
        chain = [topic]
        while chain[-1] in user.after:
            chain.append(user.after[chain[-1]])
            if chain[-1] in chain[:-1]:
                raise ManifestError(f"user.after: {' → '.join(chain)} wait for each other")
        unknown = [name for name in chain if name not in user.answers]
        if unknown:
            raise ManifestError(f"user.after: {unknown[0]!r} has no answer; add it to user.answers")
