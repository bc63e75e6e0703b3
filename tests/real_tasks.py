"""Real tasks, orders and faulty boundaries for tests that attempt them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flywheel.attempt import make_setting
from flywheel.collect import Order
from flywheel.families.catalogue import FAMILIES
from flywheel.families.lexicon import Lexicon
from flywheel.families.make import make_task
from flywheel.sandbox import ExecResult, OpenSandbox, Sandbox, SandboxSpec, Tree
from schemas.attempt import AttemptKey, Purpose, Sampling
from schemas.lineage import Split
from schemas.task import Budget, Source, SourceKind, TaskManifest

SEED = Source(kind=SourceKind.SEED, uri="family:test", licence="Apache-2.0")


def real_task(
    *rules: str,
    family: str = "orders",
    seed: int = 1,
    split: Split = Split.TRAIN,
    budget: Budget = Budget(),  # noqa: B008 (a frozen record)
    source: Source = SEED,
) -> TaskManifest:
    """A task of a shipped family with `rules` live."""
    wanted = frozenset(rules or ("keep-last",))
    return make_task(FAMILIES[family], wanted, seed, Lexicon(split), budget, source)


def order_for(task: TaskManifest, policy_version: str, index: int = 0) -> Order:
    """An order for one attempt at `task`."""
    setting = make_setting(task, policy_version, "env-test", Sampling(temperature=0.0))
    key = AttemptKey(
        run_id="run-test",
        purpose=Purpose.COLLECT,
        arm="none",
        task_id=task.task_id,
        version_id=task.version_id,
        setting_id=setting.setting_id,
        index=index,
    )
    return Order(task=task, setting=setting, key=key)


@dataclass
class FaultySandbox:
    """A real sandbox whose calls go through `meddle`: stands in for faults of the boundary."""

    inner: Sandbox
    meddle: Callable[[list[str], Callable[[], ExecResult]], ExecResult]

    def put(self, *args: object, **kwargs: object) -> None:
        self.inner.put(*args, **kwargs)  # type: ignore[arg-type]

    def call(self, argv: list[str], timeout: float, folder: str = ".") -> ExecResult:
        return self.meddle(argv, lambda: self.inner.call(argv, timeout, folder))

    def get(self, path: str) -> bytes:
        return self.inner.get(path)

    def tree(self, folder: str) -> Tree:
        return self.inner.tree(folder)


def faulty(
    open_sandbox: OpenSandbox,
    meddle: Callable[[list[str], Callable[[], ExecResult]], ExecResult],
) -> OpenSandbox:
    """Open sandboxes whose calls go through `meddle`."""

    @contextmanager
    def opened(spec: SandboxSpec) -> Iterator[Sandbox]:
        with open_sandbox(spec) as inner:
            yield FaultySandbox(inner, meddle)  # type: ignore[misc]

    return opened
