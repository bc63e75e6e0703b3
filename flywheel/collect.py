"""Many attempts at once, with retries where a fault can't be the policy's doing."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from flywheel.attempt import attempt
from flywheel.difficulty import final_tries
from flywheel.policy import Policy
from flywheel.sandbox import OpenSandbox
from schemas.attempt import Attempt, AttemptKey, InfraStage, InfraStatus, Setting
from schemas.task import TaskManifest


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to be made."""

    task: TaskManifest
    setting: Setting
    key: AttemptKey
    """Of the first try."""


def collect(
    orders: Sequence[Order],
    policy: Policy,
    open_sandbox: OpenSandbox,
    clock: Callable[[], float],
    *,
    workers: int,
    retries: int,
    on_attempt: Callable[[], None],
) -> tuple[Attempt, ...]:
    """Make every attempt ordered, `workers` at a time; every try is kept.

    Args:
        orders: what to attempt.
        policy: who acts; its `act` is called from several threads.
        open_sandbox: starts sandboxes.
        clock: seconds since the epoch.
        workers: attempts in flight.
        retries: further tries after a retryable infrastructure fault.
        on_attempt: called once an order is done, for progress.

    Returns:
        The attempts in the order of `orders`, the tries of one order in a row.
    """

    def fulfil(order: Order) -> list[Attempt]:
        tries = list(_tries(order, policy, open_sandbox, clock, retries))
        on_attempt()
        return tries

    with ThreadPoolExecutor(workers) as pool:
        return tuple(made for tries in pool.map(fulfil, orders) for made in tries)


def _tries(
    order: Order,
    policy: Policy,
    open_sandbox: OpenSandbox,
    clock: Callable[[], float],
    retries: int,
) -> Iterator[Attempt]:
    died = False
    first = order.key.try_number
    for number in range(first, first + retries + 1):
        made = attempt(
            order.task,
            policy,
            open_sandbox,
            order.setting,
            order.key.model_copy(update={"try_number": number}),
            clock,
            died_before=died,
        )
        yield made
        if made.infra is None or not made.infra.retryable:
            return
        died = made.infra.stage is InfraStage.TOOL


def order_again(order: Order, tries: Sequence[Attempt]) -> Order:
    """Return the order for a further try, after those that were made."""
    latest = max(made.key.try_number for made in tries)
    return replace(order, key=order.key.model_copy(update={"try_number": latest + 1}))


def infrastructure_faults(attempts: Sequence[Attempt]) -> tuple[InfraStatus, ...]:
    """Return the faults that no retry got rid of."""
    return tuple(made.infra for made in final_tries(attempts) if made.infra is not None)
