"""References on training tasks as training rows, run without a sandbox."""

from typing import Any

from schemas.attempt import Turn, TurnStatus
from schemas.task import TaskManifest
from schemas.tool import SUBMIT
from schemas.training import SftExample
from tests.factories import make_provenance
from tests.programs import observe
from tests.real_tasks import real_task


def reference_turns(task: TaskManifest) -> tuple[Turn, ...]:
    """The turns of the reference, the submission included."""
    script = task.sealed.reference
    made = [
        Turn(
            call=call,
            raw=call.model_dump_json(),
            status=TurnStatus.OK,
            observation=output.strip(),
            policy_version="reference@1",
        )
        for call, (_, output) in zip(script, observe(task, script), strict=True)
    ]
    end = Turn(
        call=SUBMIT,
        raw=SUBMIT.model_dump_json(),
        status=TurnStatus.SUBMITTED,
        observation="",
        policy_version="reference@1",
    )
    return (*made, end)


def demonstration(task: TaskManifest, **provenance: Any) -> SftExample:
    """The reference's attempt at `task` as a row."""
    return SftExample(
        cycle_id="cycle-0001",
        arm="new-uniform",
        goal=task.brief.goal,
        tools=task.brief.tools,
        turns=reference_turns(task),
        provenance=make_provenance(
            attempt_id=f"att-{task.version_id}", rules=task.rules, **provenance
        ),
    )


def some_demonstrations() -> tuple[SftExample, ...]:
    """One row of each of six tasks of two families."""
    tasks = (
        *(real_task(rule, seed=2) for rule in ("keep-last", "half-up", "at-least")),
        *(
            real_task(rule, family="logs", seed=2)
            for rule in ("repeats-first", "with-code", "busiest-first")
        ),
    )
    return tuple(demonstration(task) for task in tasks)
