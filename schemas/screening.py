"""What screening found by execution, what waits for a person, and what proposers yield."""

from enum import StrEnum

from pydantic import computed_field

from schemas.base import Count, Name, Probability, Record, Seconds, content_id


class CheckKind(StrEnum):
    """What screening tries, cheap to dear."""

    PINNED = "pinned"
    """The image has a digest, the repository a commit; egress has pinned responses."""
    DESCRIBED = "described"
    """Every sentence that states a requirement has a check, every check a sentence."""
    FILES_NAMED = "files-named"
    """The files that the goal names exist, or are to be made."""
    NO_LEAK = "no-leak"
    """Nothing that an agent can read holds an answer, or a hash of one."""
    BOOTS = "boots"
    """Sandboxes started; where one did not it is unmeasured, never failed: no fault of the task."""
    TOOLS_REACHABLE = "tools-reachable"
    INITIAL_STATE_FAILS = "initial-state-fails"
    NO_OP_FAILS = "no-op-fails"
    REFERENCE_PASSES = "reference-passes"
    OUTPUTS_NAMED = "outputs-named"
    """The goal names something that the reference leaves behind."""
    REFERENCE_REPEATS = "reference-repeats"
    """In fresh, dirtied and shifted conditions, with the same artifacts."""
    CLOCK_SHIFTED = "clock-shifted"
    PREFIXES_FAIL = "prefixes-fail"
    MUTANTS_FAIL = "mutants-fail"
    VALUES_CHANGED = "values-changed"
    """Unmeasured where the artifacts are code: no value in them was changed."""
    STEPS_NEEDED = "steps-needed"
    """The reference without any one of its steps fails."""
    CHECKS_CAN_FAIL = "checks-can-fail"
    """Each check of the grader was failed by some wrong solution."""
    EXPLOITS_FAIL = "exploits-fail"
    ALTERNATIVE_PASSES = "alternative-passes"
    SIMULATION_FAITHFUL = "simulation-faithful"
    """Call sequences come out the same on a simulated tool and on the real one."""


class ScreenVerdict(StrEnum):
    """What screening concluded."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    """It may be sound: a person has to look."""
    UNSCREENED = "unscreened"
    """An infrastructure fault kept a check from finishing: nothing is known about the task."""


class Trust(StrEnum):
    """How much of the screening list stands behind an accepted task."""

    VERIFIED = "verified"
    """All of it (but for the shifted clock, where the machine has no libfaketime)."""
    PARTIAL = "partial"
    """Some checks could not run, and the receipt names them: no holdout, no reward."""
    REVIEWED = "reviewed"
    """Quarantined, and let in by a person: no holdout, no reward."""


class ScreenCheck(Record):
    """One check with its evidence and its cost."""

    kind: Name
    """A `CheckKind`, or the name of a check of the user's own."""
    passed: bool | None
    """None: could not be run."""
    evidence: str
    seconds: Seconds = 0.0
    """Sandbox time of this check alone; shared boots are in the report's seconds."""


class ScreenReport(Record):
    """A receipt: what was executed against one task version, and what came of it."""

    version_id: str
    task_id: str
    environment_digest: str
    harness_version: str
    grader_version: str
    """A changed environment, harness or grader voids the receipt."""
    checks: tuple[ScreenCheck, ...]
    mutants: Count
    mutants_killed: Count
    kill_lower: Probability
    kill_upper: Probability
    """95 % Clopper-Pearson interval of the kill rate, over mutants like these."""
    survivors: tuple[str, ...]
    """Wrong solutions that passed, as `kind` or `kind:path`."""
    unmeasured: tuple[Name, ...]
    """Checks that could not run."""
    references: Count
    """Runs of the reference, under all conditions."""
    references_passed: Count
    boots: Count
    """Sandboxes started for this task alone."""
    verdict: ScreenVerdict
    reason: Name
    """`accepted`, or the code of the first check that failed."""
    trust: Trust
    seconds: Seconds

    @property
    def evidence(self) -> str:
        """What the check said that is the reason; empty for an accepted task."""
        named = self.reason.removeprefix("not-")
        return "; ".join(check.evidence for check in self.checks if check.kind == named)

    @property
    def item_id(self) -> str:
        """Identity of the item that waits for a person, where this receipt raises one."""
        return review_id(self.version_id, self.reason)


class Control(Record):
    """An exploit tried against a family's grader."""

    name: Name
    killed: bool | None
    """None: could not be tried."""
    evidence: str


class ControlReport(Record):
    """Exploit controls of one family, image and grader version, cited by every receipt.

    Where each task has a grader of its own, as with imported ones, each is a family of its own.
    """

    family: Name
    environment_digest: str
    grader_version: str
    exploits_version: str = ""
    """Digest of the exploits' text; empty: from before it was kept."""
    version_id: str
    """The task that they were tried on."""
    controls: tuple[Control, ...]
    seconds: Seconds

    @computed_field  # type: ignore[prop-decorator]
    @property
    def control_id(self) -> str:
        """Identity of what was controlled."""
        versions = (self.environment_digest, self.grader_version, self.exploits_version)
        return content_id("ctl", self.family, *versions)


def review_id(version_id: str, reason: str) -> str:
    """Return the identity of a review item: this task for this reason."""
    return content_id("rev", version_id, reason)


class ReviewItem(Record):
    """A task that waits for a person."""

    version_id: str
    name: str
    """What a person calls it: folder or family."""
    reason: Name
    evidence: str
    raised_at: float
    """Seconds since the epoch."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def item_id(self) -> str:
        """Identity: this task for this reason."""
        return review_id(self.version_id, self.reason)


class Ruling(StrEnum):
    """What a person decided."""

    ACCEPT = "accept"
    REJECT = "reject"


class ReviewDecision(Record):
    """An event: who decided what, when and why. The latest one holds."""

    item_id: str
    version_id: str
    ruling: Ruling
    author: str
    note: str
    decided_at: float


class Proposal(Record):
    """One task that somebody proposed, whatever became of it."""

    proposer: Name
    run_id: str
    number: Count
    version_id: str | None
    """None: it could not be read as a task."""
    reason: Name
    """`read`, or why not."""
    evidence: str
    tokens: Count
    cost: Seconds
    """US dollars."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def proposal_id(self) -> str:
        """Identity: the run's nth proposal by this proposer."""
        return content_id("prop", self.proposer, self.run_id, self.number)
