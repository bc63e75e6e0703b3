"""How fast sandboxes are here: a dated figure, not a gate.

Run it on an idle machine: python benchmarks/sandbox_speed.py
One attempt is an agent's sandbox with five calls and one artifact taken out, then a grader's
sandbox with that artifact put in and one call.
"""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from flywheel.errors import ConfigError
from flywheel.sandbox import Backend, SandboxSpec
from flywheel.sandbox.choose import open_backend
from schemas.file import File

BOOTS = 20
CALLS = 200
SECONDS = 5.0
"""How long each number of threads is tried."""
TOOL = """
import csv
def main(argv):
    with open('in.csv') as source, open('out.csv', 'w', newline='') as target:
        csv.writer(target).writerows(sorted(csv.reader(source)))
"""
GRADER = """
import csv, json
def main(argv):
    with open('out.csv') as source:
        print(json.dumps({'rows': len(list(csv.reader(source)))}))
"""
ROWS = File.of("in.csv", b"".join(b"%d,%d\n" % (n * 7 % 101, n) for n in range(200)))


def spec(name: str, program: str) -> SandboxSpec:
    return SandboxSpec({name: program}, 120.0, {"run": "benchmark", "attempt": name})


def attempt(backend: Backend) -> None:
    with backend.open(spec("tool", TOOL)) as agent:
        agent.put([ROWS])
        for _ in range(5):
            agent.call(["tool"], 10.0)
        artifact = agent.get("out.csv")
    with backend.open(spec("grader", GRADER)) as grader:
        grader.put([File.of("out.csv", artifact)], read_only=True)
        assert grader.call(["grader"], 10.0).output == b'{"rows": 200}\n'


def milliseconds(act: Callable[[], object], times: int) -> float:
    """Return the median duration of `act`."""
    durations = []
    for _ in range(times):
        started = time.perf_counter()
        act()
        durations.append(time.perf_counter() - started)
    return statistics.median(durations) * 1000


def boot(backend: Backend) -> None:
    with backend.open(SandboxSpec({}, 60.0, {"run": "benchmark", "attempt": "boot"})):
        pass


def attempts_per_second(backend: Backend, threads: int) -> float:
    end = time.perf_counter() + SECONDS

    def work() -> int:
        count = 0
        while time.perf_counter() < end:
            attempt(backend)
            count += 1
        return count

    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        counts = [pool.submit(work) for _ in range(threads)]
        total = sum(count.result() for count in counts)
    return total / (time.perf_counter() - started)


def main() -> None:
    print("backend     boot+close ms  forked call ms  /bin/true ms  attempts/s at 1, 2, 4 threads")
    for kind in ("bubblewrap", "docker"):
        try:
            backend = open_backend(kind)
        except ConfigError as problem:
            print(f"{kind:10}  {problem}")
            continue
        started = milliseconds(partial(boot, backend), BOOTS)
        with backend.open(spec("tool", "def main(argv):\n    pass\n")) as box:
            forked = milliseconds(partial(box.call, ["tool"], 5.0), CALLS)
            executed = milliseconds(partial(box.call, ["/bin/true"], 5.0), CALLS)
        rates = "  ".join(f"{attempts_per_second(backend, threads):5.1f}" for threads in (1, 2, 4))
        print(f"{kind:10}  {started:13.1f}  {forked:14.2f}  {executed:12.2f}  {rates}")


if __name__ == "__main__":
    main()
