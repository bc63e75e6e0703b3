"""Tools that plan and give permissions, kept in `.modes.json` between calls. Runs in a sandbox.

Literals are printed in backticks, as goals print them. Links are left alone.
"""

import json
import stat
import sys
from pathlib import Path

STATE = ".modes.json"
REST = {"private": 0o600, "shared": 0o644}


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def read_lines(file):
    """Return the lines of a text file that are not blank, or refuse."""
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, ValueError):
        raise Refused(f"cannot read `{file}`") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def load():
    """Return the policy and, once there is one, the plan: path → mode."""
    try:
        with Path(STATE).open(encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        raise Refused("no policy is loaded") from None


def plan_of(state):
    """Return the plan, or refuse."""
    if "plan" not in state:
        raise Refused("nothing is planned")
    return state["plan"]


def save(state, plan):
    """Keep the plan for the next call and say how many files it has."""
    state["plan"] = plan
    with Path(STATE).open("w", encoding="utf-8") as stream:
        json.dump(state, stream)
    return f"{len(plan)} files planned"


def tree(folder):
    """Return the paths of the files below a folder, or refuse."""
    if not Path(folder).is_dir():
        raise Refused(f"no folder `{folder}`")
    paths = Path(folder).rglob("*")
    return sorted(str(path) for path in paths if path.is_file() and not path.is_symlink())


def read_policy(file):
    """Load a policy: lines of a pattern and an octal mode."""
    policy = [line.rsplit(None, 1) for line in read_lines(file)]
    try:
        state = {"policy": [(pattern, int(mode, 8)) for pattern, mode in policy]}
    except ValueError:
        raise Refused(f"`{file}` has a line that is not a pattern and a mode") from None
    with Path(STATE).open("w", encoding="utf-8") as stream:
        json.dump(state, stream)
    return f"{len(policy)} lines"


def fitting(policy, path):
    """Return the modes of the lines that fit a path."""
    return [
        mode
        for pattern, mode in policy
        if (path.startswith(pattern) if pattern.endswith("/") else path.endswith(pattern))
    ]


def plan_modes(folder, several):
    """Plan the policy's modes."""
    state = load()
    plan = {}
    for path in tree(folder):
        modes = fitting(state["policy"], path)
        if len(modes) == 1 or (modes and several != "none"):
            plan[path] = modes[-1 if several == "last" else 0]
    return save({**state, "folder": folder}, plan)


def plan_rest(mode):
    """Plan a mode for the files that no line fits."""
    state = load()
    plan = plan_of(state)
    rest = [path for path in tree(state["folder"]) if not fitting(state["policy"], path)]
    return save(state, {**plan, **dict.fromkeys(rest, REST[mode])})


def is_script(path):
    """Tell whether a file begins with #!."""
    with Path(path).open("rb") as stream:
        return stream.read(2) == b"#!"


def run_scripts():
    """Let planned scripts be executed by all who may read them."""
    state = load()
    plan = plan_of(state)
    added = {path: mode | (mode & 0o444) >> 2 for path, mode in plan.items() if is_script(path)}
    return save(state, {**plan, **added})


def mode_of(path):
    """Return the permission bits that a file has."""
    return stat.S_IMODE(Path(path).stat().st_mode)


def limit_changes(to):
    """Let the plan take rights away only, or give rights only."""
    state = load()
    plan = plan_of(state)
    return save(
        state,
        {
            path: mode & mode_of(path) if to == "taking" else mode | mode_of(path)
            for path, mode in plan.items()
        },
    )


def narrow_plan(file, spare):
    """Take the listed files, or all others, out of the plan."""
    state, listed = load(), set(read_lines(file))
    plan = plan_of(state)
    kept = {path: mode for path, mode in plan.items() if (path in listed) != (spare == "listed")}
    return save(state, kept)


def apply_plan():
    """Give the planned modes."""
    changed = 0
    for path, mode in plan_of(load()).items():
        changed += mode_of(path) != mode
        Path(path).chmod(mode)
    return f"{changed} files changed"


COMMANDS = {
    "read-policy": read_policy,
    "plan-modes": plan_modes,
    "plan-rest": plan_rest,
    "run-scripts": run_scripts,
    "limit-changes": limit_changes,
    "narrow-plan": narrow_plan,
    "apply-plan": apply_plan,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except (Refused, OSError) as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
