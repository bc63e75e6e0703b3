"""INI settings → JSON or env file.

Goal: Convert `reef.ini`, whose settings are called section.name. Add the settings of `oak.ini`;
where both have one, the value of `oak.ini` counts. Save the result as JSON in `plume.json`.
"""

import json
from dataclasses import dataclass
from itertools import groupby
from random import Random

from flywheel.families import Axis, Family, Rules, by_python, say
from flywheel.families.lexicon import Lexicon
from flywheel.tools import pick
from flywheel.tools.settings import SETTINGS_TOOLS
from schemas.file import File
from schemas.task import Requirement
from schemas.tool import Script, ToolCall

Settings = tuple[tuple[str, str], ...]
"""`section.name` and value, in a file's order; a section's settings stand together."""


@dataclass(frozen=True)
class Config:
    """A base file, an override file where a rule merges one, and what to do with them."""

    base: str
    override: str
    output: str
    base_settings: Settings
    override_settings: Settings
    """Empty: there is no override file."""
    renamed: tuple[str, str]
    """Old and new key."""
    seconds: str
    """The key whose value is in seconds."""
    default: tuple[str, str]
    """A key that no file has, and its value."""


_MERGES = frozenset({"override-wins", "base-wins"})


def build(rules: Rules, rng: Random, lexicon: Lexicon) -> Config:
    """Draw 7 to 9 settings in three sections, and an override file with three conflicts."""
    words = lexicon.words(rng, 24)
    files, sections, names, values = words[:3], words[3:6], words[6:15], words[15:20]
    keys = [f"{sections[at // 3]}.{name}" for at, name in enumerate(names)]
    base = keys[: rng.randrange(7, 10)]
    renamed, seconds = rng.sample(base[1:], 2)
    added = f"{sections[0]}.{words[20]}"
    conflicts = sorted(rng.sample(base[1:], 3), key=keys.index)

    def drawn(chosen: list[str]) -> Settings:
        numbers = {seconds: str(rng.randrange(2, 90))}
        return tuple((key, numbers.get(key) or rng.choice(values)) for key in chosen)

    return Config(
        base=f"{files[0]}.ini",
        override=f"{files[1]}.ini",
        output=f"{files[2]}.{'env' if 'as-env' in rules else 'json'}",
        base_settings=drawn(base),
        override_settings=drawn([added, *conflicts]) if rules & _MERGES else (),
        renamed=(renamed, f"{renamed.split('.')[0]}.{words[21]}"),
        seconds=seconds,
        default=(f"{sections[2]}.{words[22]}", words[23]),
    )


def inputs(case: Config) -> tuple[File, ...]:
    """Return the base file and, where there is one, the override file."""
    base = File(path=case.base, content=_ini(case.base_settings))
    if not case.override_settings:
        return (base,)
    return (base, File(path=case.override, content=_ini(case.override_settings)))


def _ini(settings: Settings) -> str:
    """Write settings under their sections."""
    sections = groupby(settings, key=lambda setting: setting[0].split(".")[0])
    return "\n".join(
        f"[{section}]\n" + "".join(f"{key.split('.')[1]} = {value}\n" for key, value in members)
        for section, members in sections
    )


_SENTENCES = {
    "override-wins": (
        "Add the settings of {override}; where both have one, the value of {override} counts.",
        "Add the settings of {override}, whose values replace those of {base}.",
    ),
    "base-wins": (
        "Add the settings of {override}; where both have one, the value of {base} counts.",
        "Add the settings of {override} where {base} does not have them.",
    ),
    "rename-key": (
        "Rename {old} to {new}.",
        "Give {old} the name {new}.",
    ),
    "drop-key": (
        "Remove the first setting of {base}.",
        "Leave out the setting that comes first in {base}.",
    ),
    "to-milliseconds": (
        "Change {seconds} from seconds to milliseconds.",
        "{seconds} is in seconds: make it milliseconds.",
    ),
    "default-if-missing": (
        "Where {missing} is missing set it to {default}.",
        "Give {missing} the value {default} if it is missing.",
    ),
    "as-env": (
        "Save the result as lines name=value in {output}, names in capitals, an underscore for "
        "the dot.",
        "Save the result in {output}, one line name=value a setting; names get capitals, and an "
        "underscore for the dot.",
    ),
}


def goal(case: Config, rules: Rules, rng: Random) -> tuple[Requirement, ...]:
    """State the files, each rule in the order of application, and the output."""
    said = say(
        _SENTENCES,
        rules,
        rng,
        ("rows",),
        base=f"`{case.base}`",
        override=f"`{case.override}`",
        old=f"`{case.renamed[0]}`",
        new=f"`{case.renamed[1]}`",
        seconds=f"`{case.seconds}`",
        missing=f"`{case.default[0]}`",
        default=f"`{case.default[1]}`",
        output=f"`{case.output}`",
    )
    saving = said.pop("as-env", None) or Requirement(
        sentence=f"Save the result as JSON, section.name to value, in `{case.output}`."
    )
    opening = rng.choice(("Convert the settings of", "Migrate the settings in"))
    return (
        Requirement(
            sentence=f"{opening} `{case.base}`; no file that is there may change.",
            checks=("input-unchanged",),
        ),
        Requirement(sentence="A setting is called section.name."),
        *([Requirement(sentence="Follow these rules in order.")] if len(said) > 1 else []),
        *said.values(),
        saving.model_copy(update={"checks": ("exists", "columns", "rows")}),
    )


def reference(case: Config, rules: Rules) -> Script:
    """Read, apply the rules in order, write."""
    old, new = case.renamed
    missing, default = case.default
    steps = {
        "override-wins": ToolCall(
            tool="merge-ini", arguments={"file": case.override, "prefer": "added"}
        ),
        "base-wins": ToolCall(
            tool="merge-ini", arguments={"file": case.override, "prefer": "loaded"}
        ),
        "rename-key": ToolCall(tool="rename-key", arguments={"key": old, "to": new}),
        "drop-key": ToolCall(tool="drop-key", arguments={"key": case.base_settings[0][0]}),
        "to-milliseconds": ToolCall(
            tool="scale-key", arguments={"key": case.seconds, "factor": "1000"}
        ),
        "default-if-missing": ToolCall(
            tool="set-default", arguments={"key": missing, "value": default}
        ),
    }
    form = "env" if "as-env" in rules else "json"
    return (
        ToolCall(tool="read-ini", arguments={"file": case.base}),
        *(call for rule, call in steps.items() if rule in rules),
        ToolCall(tool="write-settings", arguments={"file": case.output, "format": form}),
    )


def alternative(case: Config, rules: Rules) -> Script:
    """Solve it by a program of its own, which reads the files by configparser."""
    arguments = {
        "base": case.base,
        "override": case.override,
        "output": case.output,
        "rules": sorted(rules),
        "renamed": case.renamed,
        "seconds": case.seconds,
        "default": case.default,
    }
    return by_python("config", arguments)


def target(case: Config, rules: Rules) -> tuple[File, ...]:
    """Work the settings out without the tools, sorted by key."""
    layers = [case.base_settings]
    if "override-wins" in rules:
        layers = [case.base_settings, case.override_settings]
    if "base-wins" in rules:
        layers = [case.override_settings, case.base_settings]
    result = {key: value for layer in layers for key, value in layer}
    if "rename-key" in rules:
        old, new = case.renamed
        result[new] = result.pop(old)
    if "drop-key" in rules:
        del result[case.base_settings[0][0]]
    if "to-milliseconds" in rules:
        result[case.seconds] += "000"
    if "default-if-missing" in rules:
        key, value = case.default
        result.setdefault(key, value)
    if "as-env" in rules:
        lines = (f"{'_'.join(key.split('.')).upper()}={result[key]}\n" for key in sorted(result))
        return (File(path=case.output, content="".join(lines)),)
    return (File(path=case.output, content=json.dumps(result, sort_keys=True) + "\n"),)


def checks(rules: Rules) -> tuple[str, ...]:
    """Return the same for all rules: settings have no order."""
    return ("input-unchanged", "exists", "columns", "rows")


FAMILY = Family(
    name="config",
    tools=pick(SETTINGS_TOOLS, *(tool.name for tool in SETTINGS_TOOLS)),
    rules={
        "override-wins": Axis.PRIORITY,
        "base-wins": Axis.PRIORITY,
        "rename-key": Axis.SCOPE,
        "drop-key": Axis.SCOPE,
        "to-milliseconds": Axis.UNITS,
        "default-if-missing": Axis.MISSING,
        "as-env": Axis.OUTPUT,
    },
    neighbours={"override-wins": "base-wins", "base-wins": "override-wins"},
    build=build,
    inputs=inputs,
    goal=goal,
    reference=reference,
    alternative=alternative,
    target=target,
    artifacts=lambda case: (case.output,),
    protected=lambda case: tuple(file.path for file in inputs(case)),
    checks=checks,
)
