"""Small valid records for tests: every argument has a default, every result passes its schema.

Same arguments, same record. Where a record has many fields, `changes` replaces any of them.
"""

from tests.factories.attempts import (
    START,
    make_attempt,
    make_grade,
    make_infra,
    make_manifest,
    make_setting,
    make_trajectory,
    make_turn,
)
from tests.factories.outcomes import (
    make_acceptance,
    make_assignment,
    make_draw,
    make_failure,
    make_hypothesis,
    make_posterior,
    make_provenance,
    make_rejected,
    make_screen_report,
    make_sft,
)

__all__ = [
    "START",
    "make_acceptance",
    "make_assignment",
    "make_attempt",
    "make_draw",
    "make_failure",
    "make_grade",
    "make_hypothesis",
    "make_infra",
    "make_manifest",
    "make_posterior",
    "make_provenance",
    "make_rejected",
    "make_screen_report",
    "make_setting",
    "make_sft",
    "make_trajectory",
    "make_turn",
]
