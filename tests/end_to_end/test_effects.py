"""Whether a planted effect is found, and a cycle without one says so."""

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SMALL, Run
from tests.end_to_end.test_loop import page, rows

pytestmark = pytest.mark.slow

PLANTED: dict[str, Any] = {
    **SMALL,
    "propose": {"seed_tasks": 48, "new_tasks": 48, "dev_tasks": 40, "holdout_tasks": 8},
    "draw": {"attempts": 48, "arms": ["old-uniform", "new-uniform"]},
    "train": {"rows": 48, "steps": 400},
}


def better_tasks(home: Path) -> tuple[str, float, float]:
    ((effect, estimate, lower),) = rows(
        home,
        "SELECT c ->> 'effect', CAST(c ->> 'estimate' AS DOUBLE), CAST(c ->> 'lower' AS DOUBLE) "
        "FROM (SELECT unnest(CAST(comparisons AS JSON[])) AS c FROM eval_reports) "
        "WHERE (c ->> 'question') = 'better tasks?' AND (c ->> 'slice') = 'all'",
    )
    return effect, estimate, lower


def test_a_planted_effect_that_the_sample_can_show_is_found(tmp_path: Path, run_cycle: Run) -> None:
    """The old pool knows one rule a family; the new tasks bring the others, which dev asks for."""
    rules = ["at-least", "since", "rename-key"]
    config = {**PLANTED, "propose": {**PLANTED["propose"], "seed_rules": rules}}
    run_cycle(tmp_path / "home", config)
    effect, estimate, lower = better_tasks(tmp_path / "home")
    assert effect == "better"
    assert estimate > lower > 0
    assert "Unanswered" in page(tmp_path / "home", 1)


def test_a_cycle_whose_new_tasks_are_like_the_old_ones_is_inconclusive(
    tmp_path: Path, run_cycle: Run
) -> None:
    run_cycle(tmp_path / "home", {**PLANTED, "evaluate": {"level": 0.99}})
    effect, _, _ = better_tasks(tmp_path / "home")
    assert effect == "inconclusive"
