"""Tools on one set of settings, kept in `.settings.json` between calls. Runs inside a sandbox."""

import configparser
import json
import sys
from pathlib import Path

SETTINGS = ".settings.json"


class Refused(Exception):
    """A call that can't be done; the message is the observation."""


def parse(file):
    """Return an INI file as `section.name` → text, in the file's order."""
    parser = configparser.ConfigParser(interpolation=None, default_section="\0")
    parser.optionxform = str
    try:
        with Path(file).open(encoding="utf-8") as stream:
            parser.read_file(stream)
    except OSError as error:
        raise Refused(f"cannot open `{file}`: {error.strerror}") from None
    except configparser.Error:
        raise Refused(f"`{file}` is not an INI file") from None
    return {
        f"{section}.{name}": value
        for section in parser.sections()
        for name, value in parser.items(section)
    }


def load():
    """Return the settings in hand."""
    try:
        with Path(SETTINGS).open(encoding="utf-8") as stream:
            return dict(json.load(stream))
    except (OSError, ValueError):
        raise Refused("no settings are loaded") from None


def save(settings):
    """Keep the settings for the next call."""
    with Path(SETTINGS).open("w", encoding="utf-8") as stream:
        json.dump(settings, stream)
    return "done"


def existing(settings, key):
    """Return the value of a setting, or refuse."""
    if key not in settings:
        raise Refused(f"no setting `{key}`")
    return settings[key]


def read_ini(file):
    """Load an INI file as the settings."""
    settings = parse(file)
    save(settings)
    return f"settings {' '.join(f'`{key}`' for key in settings)}"


def merge_ini(file, prefer):
    """Add the settings of another file; `prefer` says whose value wins."""
    settings, added = load(), parse(file)
    return save(settings | added if prefer == "added" else added | settings)


def rename_key(key, to):
    """Give a setting a name that no other has."""
    settings = load()
    existing(settings, key)
    if to in settings:
        raise Refused(f"there is a setting `{to}` already")
    return save({to if name == key else name: value for name, value in settings.items()})


def drop_key(key):
    """Remove a setting."""
    settings = load()
    existing(settings, key)
    del settings[key]
    return save(settings)


def scale_key(key, factor):
    """Multiply a whole number."""
    settings = load()
    value = existing(settings, key)
    try:
        settings[key] = str(int(value) * int(factor))
    except ValueError:
        raise Refused(f"`{value}` is not a whole number") from None
    return save(settings)


def set_default(key, value):
    """Set a value where the setting is missing."""
    return save({key: value} | load())


def write_settings(file, format):
    """Save the settings as one JSON object, or as lines SECTION_NAME=value."""
    settings = load()
    if format == "json":
        text = json.dumps(settings, indent=1)
    else:
        names = {key: key.upper().replace(".", "_") for key in settings}
        text = "".join(f"{names[key]}={value}\n" for key, value in settings.items())
    try:
        with Path(file).open("w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise Refused(f"cannot open `{file}`: {error.strerror}") from None
    return "written"


COMMANDS = {
    "read-ini": read_ini,
    "merge-ini": merge_ini,
    "rename-key": rename_key,
    "drop-key": drop_key,
    "scale-key": scale_key,
    "set-default": set_default,
    "write-settings": write_settings,
}


def main(argv):
    """Run one subcommand: `NAME --option=value …`. Exit 2 where it can't be done."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    try:
        print(COMMANDS[name](**arguments))
    except Refused as refusal:
        print(refusal)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
