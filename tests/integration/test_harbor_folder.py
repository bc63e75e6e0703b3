"""A folder of Harbor tasks, good and sabotaged as users report: each is found out."""

import time
from pathlib import Path

import pytest

from flywheel.formats import read_folder
from flywheel.sandbox import Backend
from flywheel.screen import screen
from flywheel.screen.exploits import SCRIPTS, control
from schemas.screening import Control, ControlReport, ScreenReport, ScreenVerdict, Trust
from schemas.task import SourceKind, TaskManifest
from tests.sabotage import FAULTS, Fault, good_folder

ENVIRONMENT = "env-test"


def untried(task: TaskManifest) -> ControlReport:
    """Controls that had no part in what is tested here."""
    return ControlReport(
        family=task.task_id,
        environment_digest=ENVIRONMENT,
        grader_version=task.sealed.grader.version,
        version_id=task.version_id,
        controls=(Control(name="none", killed=None, evidence="not tried"),),
        seconds=0.0,
    )


def screened(task: TaskManifest, backend: Backend, controls: ControlReport) -> ScreenReport:
    search = backend.search_image
    return screen(
        task, backend.open, ENVIRONMENT, "run-test", time.time, lambda: controls, search
    ).report


def test_a_good_task_is_accepted_and_what_could_not_be_measured_is_named(
    bubblewrap: Backend, tmp_path: Path
) -> None:
    good_folder(tmp_path / "good")
    (task,) = read_folder(tmp_path).tasks
    assert task.source.kind is SourceKind.IMPORTED
    controls = control(task, ENVIRONMENT, bubblewrap.open)
    assert {c.name: c.killed for c in controls.controls} == dict.fromkeys(SCRIPTS, True)
    report = screened(task, bubblewrap, controls)
    assert (report.verdict, report.trust) == (ScreenVerdict.ACCEPTED, Trust.PARTIAL), report.checks
    assert set(report.unmeasured) >= {"pinned", "described", "alternative-passes"}
    assert report.mutants == report.mutants_killed > 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.put.__name__)
def test_a_fault_is_found_for_the_right_reason(
    bubblewrap: Backend, tmp_path: Path, fault: Fault
) -> None:
    fault.folder(tmp_path / "task")
    found = read_folder(tmp_path)
    if fault.field:
        assert found.tasks == ()
        assert [fault.field in item.field or fault.field in item.path for item in found.refused]
        return
    (task,) = found.tasks
    report = screened(task, bubblewrap, untried(task))
    assert report.verdict is not ScreenVerdict.ACCEPTED
    assert report.reason in fault.reasons, report.checks
