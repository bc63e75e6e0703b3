"""A help desk for one requester. Runs inside a sandbox of its own.

`.helpdesk.json` holds what the desk knows: `answers`, and `after`, the topics that wait for
others. What has been told stands in `.helpdesk.log`, a topic a line.
"""

import json
import sys
from pathlib import Path

KNOWN = Path(".helpdesk.json")
LOG = Path(".helpdesk.log")


def told():
    """Return the topics that have been told, oldest first."""
    return LOG.read_text(encoding="utf-8").split("\n") if LOG.exists() else []


def ask(about):
    """Return what to say about a topic, and whether that is an answer."""
    desk = json.loads(KNOWN.read_text(encoding="utf-8"))
    topics = told()
    if about in topics:
        return f"As I said before: {desk['answers'][about]}", True
    try:
        text = desk["answers"][about]
    except KeyError:
        return "Sorry, I know nothing about that.", False
    if about in desk["after"] and desk["after"][about] not in topics:
        first = desk["after"][about]
        return f"I need to know what it is for. Please ask about {first} first.", False
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"{about}\n")
    return text, True


def main(argv):
    """Answer `ask --about=TOPIC`. Exit 2 where there is nothing to tell."""
    name, *options = argv
    arguments = dict(option.removeprefix("--").split("=", 1) for option in options)
    if name != "ask" or set(arguments) != {"about"}:
        print("usage: ask --about=TOPIC")
        return 2
    text, answered = ask(arguments["about"])
    print(text)
    return 0 if answered else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
