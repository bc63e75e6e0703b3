"""A clarification task → its twin, whose goal says what the user would have answered.

The files and the right answer are the same, and there is nothing to ask. What fails the task and
solves the twin fails by not asking.
"""

from flywheel.errors import ManifestError
from flywheel.tools.user import USER
from schemas.task import Capability, Features, Requirement, ScriptedUser, TaskManifest
from schemas.tool import Script

ASK = ": ask about "
"""Stands in a sentence between what it leaves open and the topic to ask about."""


def told(task: TaskManifest) -> TaskManifest:
    """Return the twin of a task that has a scripted user: its child.

    Raises:
        ManifestError: the task has no user, or its goal leaves open what the user does not know.
    """
    user, sealed, brief = task.sealed.user, task.sealed, task.brief
    if user is None:
        raise ManifestError(f"family {task.family}: a task without a user leaves nothing open")
    requirements = tuple(_said(one, user) for one in sealed.requirements)
    goal = " ".join(one.sentence for one in requirements)
    asking = {tool.name for tool in brief.tools if tool.program == USER}

    def silent(script: Script) -> Script:
        return tuple(call for call in script if call.tool not in asking)

    fields = {name: getattr(task, name) for name in TaskManifest.model_fields}
    return TaskManifest.model_validate(
        fields
        | {
            "brief": brief.model_copy(
                update={"goal": goal, "tools": tuple(t for t in brief.tools if t.program != USER)}
            ),
            "sealed": sealed.model_copy(
                update={
                    "reference": silent(sealed.reference),
                    "mutants": tuple(
                        mutant.model_copy(update={"script": silent(mutant.script)})
                        for mutant in sealed.mutants
                    ),
                    "requirements": requirements,
                    "user": None,
                }
            ),
            "features": _without_asking(task.features),
            "source": task.source.model_copy(update={"parent": task.task_id}),
        }
    )


def _without_asking(features: Features | None) -> Features | None:
    if features is None:
        return None
    capabilities = sorted({*features.capabilities} - {Capability.CLARIFICATION})
    changed = {"missing": 0, "rounds": 0, "capabilities": tuple(capabilities)}
    return features.model_copy(update=changed)


def _said(one: Requirement, user: ScriptedUser) -> Requirement:
    """Return the sentence with the user's answer in place of the request to ask for it."""
    left_open, asks, topic = one.sentence.partition(ASK)
    if not asks:
        return one
    topic = topic.removesuffix(".")
    if topic not in user.answers:
        raise ManifestError(f"user.answers: nothing about {topic!r}, which the goal leaves open")
    return one.model_copy(update={"sentence": f"{left_open}. {user.answers[topic]}"})
