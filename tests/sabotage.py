"""Harbor folders: a good one, and the same one with a fault that users of such tasks report.

`FAULTS` holds one entry a fault: what puts it in, and how the task must be found out: the field
that is refused on reading, or the reasons of which screening must give one.
"""

import hashlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ORDERS = "customer,amount\n" + "".join(
    f"{name},{amount}\n"
    for name, amount in [("Zoë", 5), ("ann", 7), ("Zoë", 8), ("Bob", 2), ("ann", 3), ("İnci", 9)]
)
TOTALS = "customer,total\nBob,2\nZoë,13\nann,10\nİnci,9\n"
CONFIG = """\
schema_version = "1.4"

[task]
name = "shop/order-totals"
description = "totals of a customer"

[metadata]
license = "MIT"
category = "data"

[agent]
timeout_sec = 30.0

[verifier]
timeout_sec = 20.0
environment_mode = "separate"

[environment]
network_mode = "no-network"
memory_mb = 256
"""
INSTRUCTION = """\
Add up the amounts of each customer in `orders.csv` and save the result as `totals.csv`, with the
header `customer,total` and the customers sorted by code point. Leave `orders.csv` as it is.
"""
DOCKERFILE = """\
FROM debian:bookworm-slim
ENV ORDERS_YEAR=2026
WORKDIR /app
COPY orders.csv ./
"""
SOLVE = """\
#!/bin/bash
set -e
python3 - <<'END'
import csv
totals = {}
with open("orders.csv", newline="", encoding="utf-8") as stream:
    for row in csv.DictReader(stream):
        totals[row["customer"]] = totals.get(row["customer"], 0) + int(row["amount"])
with open("totals.csv", "w", newline="", encoding="utf-8") as stream:
    stream.write("customer,total\\n")
    for name in sorted(totals):
        stream.write(f"{name},{totals[name]}\\n")
END
"""
TEST = """\
#!/bin/bash
python3 -I /tests/check.py /tests/expected.csv totals.csv
"""
CHECK = """\
import json, sys
from pathlib import Path
want, path = Path(sys.argv[1]).read_text("utf-8"), Path(sys.argv[2])
right = path.is_file() and path.read_text("utf-8") == want
reward = {"reward": int(right), "exists": int(path.is_file())}
Path("/logs/verifier/reward.json").write_text(json.dumps(reward))
"""


def good_folder(path: Path) -> Path:
    """Write the good task below `path`; return its folder."""
    write(path, "task.toml", CONFIG)
    write(path, "instruction.md", INSTRUCTION)
    write(path, "README.md", "A task about orders.\n")
    write(path, "environment/Dockerfile", DOCKERFILE)
    write(path, "environment/orders.csv", ORDERS)
    write(path, "solution/solve.sh", SOLVE, 0o755)
    write(path, "tests/test.sh", TEST, 0o755)
    write(path, "tests/check.py", CHECK)
    write(path, "tests/expected.csv", TOTALS)
    return path


def write(folder: Path, name: str, text: str, mode: int = 0o644) -> None:
    """Write one file of a folder."""
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    target.chmod(mode)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace a text that must be there."""
    text = (folder / name).read_text("utf-8")
    assert old in text, f"{name} has no {old!r}"
    (folder / name).write_text(text.replace(old, new), "utf-8")


@dataclass(frozen=True)
class Fault:
    """A fault, and how it must be found out."""

    put: Callable[[Path], None]
    reasons: tuple[str, ...] = ()
    """Screening gives one of them."""
    field: str = ""
    """Refused on reading because of it; then there is no screening."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.put.__name__

    def folder(self, path: Path) -> Path:
        """Write the task with the fault below `path`; return its folder."""
        self.put(good_folder(path))
        return path


def no_op_passes(folder: Path) -> None:
    """Nothing to compare is no difference."""
    edit(folder, "tests/check.py", "path.is_file() and", "not path.is_file() or")


def always_rewarded(folder: Path) -> None:
    write(folder, "tests/test.sh", "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n")


def no_criteria(folder: Path) -> None:
    """All of no checks hold."""
    write(
        folder,
        "tests/check.py",
        'criteria = []\nopen("/logs/verifier/reward.txt", "w").write(str(int(all(criteria))))\n',
    )


def reference_fails(folder: Path) -> None:
    """It keeps each customer's last amount."""
    edit(folder, "solution/solve.sh", 'totals.get(row["customer"], 0) + ', "")


def reference_exits_early(folder: Path) -> None:
    edit(folder, "solution/solve.sh", "set -e", "exit 3")


def reference_too_slow(folder: Path) -> None:
    edit(folder, "solution/solve.sh", "set -e", "sleep 20")
    edit(folder, "task.toml", "timeout_sec = 30.0", "timeout_sec = 0.5")


def reference_flaky(folder: Path) -> None:
    """Its order is that of a set: right under the hash seed that the author happened to have."""
    names = ["Zoë", "ann", "Bob", "İnci", *(f"guest-{number}" for number in range(20))]
    orders = "customer,amount\n" + "".join(f"{name},1\n" for name in names)
    program = "import sys; print('\\n'.join(f'{name},1' for name in set(list(sys.argv[1:]))))"
    done = subprocess.run(
        [sys.executable, "-c", program, *names],
        env=os.environ | {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    write(folder, "environment/orders.csv", orders)
    write(folder, "tests/expected.csv", "customer,total\n" + done.stdout.decode("utf-8"))
    edit(folder, "solution/solve.sh", "sorted(totals)", "set(list(totals))")


def verifier_installs_from_the_net(folder: Path) -> None:
    install = "set -e\npython3 -m pip install --no-input pytest==8.3.3\npython3 "
    edit(folder, "tests/test.sh", "python3 ", install)


def verifier_scores_its_own_failure(folder: Path) -> None:
    """Its bootstrap fails, and it writes 0 all the same."""
    write(
        folder,
        "tests/test.sh",
        "#!/bin/bash\nset -o pipefail\n"
        "if ! curl -LsSf https://example.invalid/install.sh | sh; then\n"
        "  echo 0 > /logs/verifier/reward.txt; exit 0\nfi\nif "
        "python3 /tests/check.py /tests/expected.csv totals.csv; then exit 0; fi\n",
    )


def verifier_says_nothing(folder: Path) -> None:
    """It leaves an exit code in place of a reward."""
    write(folder, "tests/test.sh", "#!/bin/bash\ncmp /tests/expected.csv totals.csv\n")


def verifier_writes_no_number(folder: Path) -> None:
    edit(folder, "tests/check.py", "json.dumps(reward)", "'{\"reward\": NaN}'")


def verifier_hangs(folder: Path) -> None:
    edit(folder, "tests/test.sh", "python3", "sleep 60\npython3")
    edit(folder, "task.toml", "timeout_sec = 20.0", "timeout_sec = 1.0")


def tests_in_the_image(folder: Path) -> None:
    write(folder, "environment/hidden/expected.csv", TOTALS)
    edit(folder, "environment/Dockerfile", "COPY orders.csv ./", "COPY . ./")


def solution_in_a_file(folder: Path) -> None:
    write(folder, "environment/notes.md", f"How I did it:\n\n{SOLVE}")
    edit(folder, "environment/Dockerfile", "orders.csv ./", "orders.csv notes.md ./")


def solution_in_the_git_history(folder: Path) -> None:
    blob = f"blob {len(SOLVE.encode())}\0{SOLVE}".encode()
    name = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
    target = folder / "environment" / "git" / "objects" / name[:2] / name[2:]
    target.parent.mkdir(parents=True)
    target.write_bytes(zlib.compress(blob))
    edit(folder, "environment/Dockerfile", "COPY", "COPY git/ ./.git/\nCOPY")


def solution_in_part(folder: Path) -> None:
    """A note keeps the line that matters of a solution which is made of several files."""
    line = next(line for line in SOLVE.splitlines() if "totals.get" in line)
    write(folder, "solution/settings.cfg", "encoding=utf-8\n")
    write(folder, "environment/notes.md", f"The trick:\n{line}\n")
    edit(folder, "environment/Dockerfile", "orders.csv ./", "orders.csv notes.md ./")


def clock_dependent(folder: Path) -> None:
    """The right answer names the day on which the task was made."""
    today = datetime.now(UTC).strftime("%Y-%m")
    write(folder, "tests/expected.csv", TOTALS.replace("total\n", f"total in {today}\n"))
    edit(folder, "solution/solve.sh", "total\\n", "total in $(date -u +%Y-%m)\\n")
    edit(folder, "solution/solve.sh", "'END'", "END")
    edit(folder, "solution/solve.sh", "\\n", "\\\\n")
    edit(folder, "instruction.md", "`customer,total`", "`customer,total in YYYY-MM`")


def locale_dependent(folder: Path) -> None:
    """A name's length is that of its letters in one locale, of its bytes in another."""
    write(folder, "solution/solve.sh", "printf Zoë | wc -m > length.txt\n", 0o755)
    write(folder, "tests/expected.csv", "3\n")
    edit(folder, "tests/test.sh", "totals.csv", "length.txt")
    write(folder, "instruction.md", "Write the number of letters of Zoë to `length.txt`.\n")


def tests_of_another_task(folder: Path) -> None:
    """It compares with another task's answer, under that task's file name."""
    edit(folder, "tests/test.sh", " totals.csv", " summary.csv")
    write(folder, "tests/expected.csv", "month,orders\n2026-01,4\n")


def accepts_a_part(folder: Path) -> None:
    """An answer that is a part of the right one passes, the empty one included."""
    edit(folder, "tests/check.py", '.read_text("utf-8") == want', '.read_text("utf-8") in want')


def needs_a_background_process(folder: Path) -> None:
    """The answer is a server that the solution leaves running."""
    write(
        folder, "solution/solve.sh", "(python3 -m http.server 8123 >server.log 2>&1 &)\nsleep 1\n"
    )
    write(
        folder,
        "tests/test.sh",
        "#!/bin/bash\npython3 -c 'import urllib.request as u; "
        'u.urlopen("http://127.0.0.1:8123/orders.csv")\'\n'
        "echo $(( $? == 0 )) > /logs/verifier/reward.txt\n",
    )


def tag_without_digest(folder: Path) -> None:
    edit(folder, "environment/Dockerfile", "WORKDIR", "RUN apt-get install -y jq\nWORKDIR")
    edit(folder, "task.toml", "[environment]", '[environment]\ndocker_image = "shop/orders:1.0"')


def needs_the_network(folder: Path) -> None:
    edit(
        folder,
        "task.toml",
        'network_mode = "no-network"',
        'network_mode = "allowlist"\nallowed_hosts = ["api.example.com"]',
    )


def misspelt_field(folder: Path) -> None:
    edit(folder, "task.toml", "[agent]\ntimeout_sec", "[agent]\ntimeout_secs")


def needs_a_build(folder: Path) -> None:
    edit(folder, "environment/Dockerfile", "WORKDIR", "RUN apt-get install -y jq\nWORKDIR")


def needs_a_service(folder: Path) -> None:
    services = {"main": {"init": True}, "database": {"image": "postgres:16"}}
    write(folder, "environment/docker-compose.yaml", json.dumps({"services": services}))


def has_steps(folder: Path) -> None:
    write(folder, "task.toml", CONFIG + '\n[[steps]]\nname = "first"\n')


INITIAL, REFERENCE = "not-initial-state-fails", "not-reference-passes"
FAULTS = (
    Fault(no_op_passes, (INITIAL,)),
    Fault(always_rewarded, (INITIAL,)),
    Fault(no_criteria, (INITIAL,)),
    Fault(reference_fails, (REFERENCE,)),
    Fault(reference_exits_early, (REFERENCE,)),
    Fault(reference_too_slow, (REFERENCE,)),
    Fault(reference_flaky, ("not-reference-repeats",)),
    Fault(verifier_installs_from_the_net, (INITIAL, REFERENCE)),
    Fault(verifier_scores_its_own_failure, (REFERENCE,)),
    Fault(verifier_says_nothing, (INITIAL, REFERENCE)),
    Fault(verifier_writes_no_number, (INITIAL, REFERENCE)),
    Fault(verifier_hangs, (INITIAL, REFERENCE)),
    Fault(tests_in_the_image, ("not-no-leak",)),
    Fault(solution_in_a_file, ("not-no-leak",)),
    Fault(solution_in_the_git_history, ("not-no-leak",)),
    Fault(solution_in_part, ("not-no-leak",)),
    Fault(clock_dependent, ("not-reference-repeats", "not-clock-shifted")),
    Fault(locale_dependent, ("not-reference-repeats",)),
    Fault(tests_of_another_task, (REFERENCE,)),
    Fault(accepts_a_part, ("not-mutants-fail",)),
    Fault(needs_a_background_process, (REFERENCE,)),
    Fault(tag_without_digest, ("not-pinned",)),
    Fault(needs_the_network, ("not-pinned",)),
    Fault(misspelt_field, field="agent.timeout_secs"),
    Fault(needs_a_build, field="environment/Dockerfile"),
    Fault(needs_a_service, field="services"),
    Fault(has_steps, field="steps"),
)
