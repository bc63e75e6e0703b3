"""What the embedded policy learns from few demonstrations: dated figures, not a gate.

Run it on an idle machine: python benchmarks/embedded_learning.py
Demonstrations are references on training tasks. Every figure is a success rate by execution and
grading on operands that training never had, split into `seen` combinations of rules (some training
row has the same) and `unseen` ones (of the dev and holdout splits: what a cycle is judged by).
Tasks have one, two or three rules equally often, of three families in turn. One seed a line.
"""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import chdir, redirect_stdout
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import combinations, count, cycle
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

import torch

from flywheel.errors import ManifestError
from flywheel.families import Rules
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.intervals import wilson
from flywheel.policy import Policy
from flywheel.policy.scripted import ScriptedPolicy
from flywheel.splits import combination, fingerprint, split_of
from flywheel.tools import command
from flywheel.train import load_policy, train_sft, untrained
from schemas.attempt import Sampling, Turn, TurnStatus
from schemas.base import content_id, seed_from
from schemas.config import TrainConfig
from schemas.file import File
from schemas.lineage import Split
from schemas.task import Budget, Source, SourceKind, TaskManifest
from schemas.tool import SUBMIT
from schemas.training import Provenance, SftExample

NAMES = ("orders", "logs", "config")
"""Families whose tools and grader run in this process."""
TASKS = 150
"""In each evaluation."""
SOURCE = Source(kind=SourceKind.SEED, uri="benchmark:embedded", licence="Apache-2.0")
MISSING = "keep-last"
"""The rule that the repaired policy has never been shown."""
GREEDY = Sampling(temperature=0.0)


def tasks(
    many: int, split: Split, wanted: Callable[[str, Rules], bool], seed: int
) -> list[TaskManifest]:
    """Make `many` tasks of families in turn, with the combinations of rules that are wanted."""
    rng, made = Random(seed), list[TaskManifest]()
    for number, name in zip(count(), cycle(NAMES)):
        family = FAMILIES[name]
        size = rng.randint(1, 3)
        cells = [
            rules
            for rules in map(frozenset, combinations(family.rules, size))
            if family.allows(rules) and wanted(family.name, rules)
        ]
        if len(made) == many:
            return made
        if cells:
            try:
                rules = rng.choice(cells)
                task = make_task(family, rules, number, Lexicon(split), Budget(), SOURCE)
            except ManifestError:
                continue
            made.append(task)
    raise AssertionError("unreachable")


def in_training(family: str, rules: Rules) -> bool:
    return split_of(combination(family, rules)) is Split.TRAIN


def is_one_of(cells: Container[tuple[str, Rules]], family: str, rules: Rules) -> bool:
    return (family, rules) in cells


def run(task: TaskManifest, policy: Policy) -> tuple[bool, tuple[Turn, ...]]:
    """Let `policy` act on `task` in a folder, run its calls here, and grade what it leaves.

    In this process, since nothing here is untrusted; seeded as the one attempt of the task.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "artifacts", task.brief.environment.files)
        turns = tuple(act(task, policy, folder / "artifacts"))
        write(folder / "expected" / "inputs", task.brief.environment.files)
        write(folder / "expected" / "output", task.sealed.grader.expected)
        paths = [str(folder / "artifacts"), str(folder / "expected")]
        graded = call("flywheel.graders.compare", [*paths, *task.sealed.grader.checks], folder)[1]
    return "\tfail\t" not in graded and graded.endswith("graded"), turns


def act(task: TaskManifest, policy: Policy, folder: Path) -> Iterator[Turn]:
    turns: list[Turn] = []
    seed = seed_from(task.version_id)
    for _ in range(task.brief.budget.steps):
        action = policy.act(task.brief, turns, GREEDY, seed)
        if action.call is None:
            raise AssertionError("neither policy here says nothing")
        status, said = TurnStatus.SUBMITTED, ""
        if action.call != SUBMIT:
            (tool,) = (tool for tool in task.brief.tools if tool.name == action.call.tool)
            program, *argv = command(tool, action.call)
            code, said = call(f"flywheel.tools.programs.{program}", argv, folder)
            status = TurnStatus.TOOL_ERROR if code else TurnStatus.OK
        turn = Turn(
            call=action.call,
            raw=action.raw,
            status=status,
            observation=said,
            policy_version=policy.version,
            tokens=action.tokens,
        )
        turns.append(turn)
        yield turn
        if status is TurnStatus.SUBMITTED:
            return


def call(module: str, argv: list[str], folder: Path) -> tuple[int, str]:
    """Run a program's `main` in `folder`; return its exit code and what it printed."""
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        code = import_module(module).main(argv)
    return code, printed.getvalue().strip()


def write(folder: Path, files: Iterable[File]) -> None:
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.path).write_bytes(file.data())


def demonstrations(wanted: Iterable[TaskManifest]) -> list[SftExample]:
    """Run each task's reference, which has to pass."""
    return [demonstration(task) for task in wanted]


def demonstration(task: TaskManifest) -> SftExample:
    passed, turns = run(task, ScriptedPolicy("reference", task.sealed.reference))
    if not passed:
        raise AssertionError(f"the reference of {task.family} {task.rules} failed")
    provenance = Provenance(
        attempt_id=content_id("att", task.version_id),
        task_id=task.task_id,
        version_id=task.version_id,
        family=task.family,
        rules=task.rules,
        source=SOURCE.uri,
        licence=SOURCE.licence,
        split=Split.TRAIN,
        fingerprint=fingerprint(task).combination,
        teacher="reference",
        grader_version=task.sealed.grader.version,
        trust="generated",
        instrument=None,
        simulated=(),
        filter="benchmark",
    )
    return SftExample(
        cycle_id="benchmark",
        arm="none",
        goal=task.brief.goal,
        tools=task.brief.tools,
        turns=turns,
        provenance=provenance,
    )


def success(policy: Policy, wanted: Sequence[TaskManifest]) -> str:
    """Return `rate passed/tasks [95 % Wilson interval]`."""
    passed, n = sum(run(task, policy)[0] for task in wanted), len(wanted)
    low, high = wilson(passed, n)
    return f"{passed / n:.2f} {passed}/{n} [{low:.2f}, {high:.2f}]"


def learning(folder: Path, config: TrainConfig) -> None:
    """Print success after one training from scratch, by number of demonstrations."""
    print("\nLearning from scratch: seconds wall and CPU, success")
    parent = untrained(folder, 0).version
    pool = tasks(96, Split.TRAIN, in_training, 1)
    unseen = tasks(TASKS, Split.DEV, lambda f, r: not in_training(f, r), 2)
    rows = demonstrations(pool)
    for number in (0, 24, 48, 96):
        cells = {(task.family, frozenset(task.rules)) for task in pool[: number or None]}
        seen = tasks(TASKS, Split.DEV, partial(is_one_of, cells), 3)
        version, wall, cpu = parent, 0.0, time.process_time()
        if number:
            made = train_sft(folder, parent, rows[:number], (), config, 1)
            version, wall = made.version, made.seconds
        cpu = time.process_time() - cpu
        policy = load_policy(folder, version)
        scores = [success(policy, wanted) for wanted in (seen, unseen)]
        print(f"{number:3} rows  {wall:5.1f} {cpu:5.1f}  seen {scores[0]}  unseen {scores[1]}")


def repair(folder: Path, config: TrainConfig) -> None:
    """Print what new demonstrations of a missing rule do to it and to all others."""
    print(f"\nRepair of {MISSING} in a policy that never saw it: success with it, without it")
    old = demonstrations(
        tasks(96, Split.TRAIN, lambda f, r: in_training(f, r) and MISSING not in r, 4)
    )
    new = demonstrations(tasks(48, Split.TRAIN, lambda f, r: in_training(f, r) and MISSING in r, 5))
    with_it = tasks(TASKS // 2, Split.DEV, lambda _, r: MISSING in r, 6)
    without = tasks(TASKS // 2, Split.DEV, lambda _, r: MISSING not in r, 7)

    def report(name: str, version: str) -> None:
        policy = load_policy(folder, version)
        scores = [success(policy, wanted) for wanted in (with_it, without)]
        print(f"{name:28} with {scores[0]}  without {scores[1]}")

    start = train_sft(folder, untrained(folder, 0).version, old, (), config, 1).version
    report("parent", start)
    for number, share in ((12, 0.25), (12, 0.75), (48, 0.0), (48, 0.25), (48, 0.5), (48, 0.75)):
        changed = config.model_copy(update={"rehearsal": share})
        made = train_sft(folder, start, new[:number], old, changed, 2)
        report(f"{number} rows, rehearsal {share}", made.version)
    more = train_sft(folder, start, old[:48], old[48:], config, 2)
    report("48 old rows instead", more.version)


def speed(folder: Path) -> None:
    """Print how long one action takes in the middle of an attempt."""
    policy = load_policy(folder, untrained(folder, 0).version)
    (row,) = demonstrations(tasks(1, Split.TRAIN, in_training, 8))
    (task,) = tasks(1, Split.TRAIN, in_training, 8)
    times = []
    for number in range(200):
        began = time.perf_counter()
        policy.act(task.brief, row.turns[: number % len(row.turns)], Sampling(), number)
        times.append(1e3 * (time.perf_counter() - began))
    print(
        f"\nOne action: median {median(times):.1f} ms, 95th percentile {sorted(times)[190]:.1f} ms"
    )


def main() -> None:
    torch.set_num_threads(1)
    config = TrainConfig()
    print(f"{config!r}, one thread")
    with TemporaryDirectory() as name:
        learning(Path(name), config)
        repair(Path(name), config)
        speed(Path(name))


if __name__ == "__main__":
    main()
