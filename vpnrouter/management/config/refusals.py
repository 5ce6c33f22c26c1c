"""Why a configuration was refused, in the words of whoever sent attributes.

The problems that `check` finds name keys of a document, with the place in a file. Here the place goes, and
the keys of the object that was to change become its attributes.
"""

import re
from collections.abc import Mapping
from typing import Final

from vpnrouter.config.problem import Path, show_path
from vpnrouter.errors import ConfigError
from vpnrouter.management.attributes import camel
from vpnrouter.management.config.kind import Kind

_POSITION: Final = re.compile(r"^.*?:\d+:\d+: ")
_KEYS: Final = re.compile(r"[a-z]+(?:_[a-z]+)+(?:\.[a-z]+(?:_[a-z]+)*)*")

MOST_TOLD: Final = 10
"""Problems in one answer; the rest is counted."""


def told(error: ConfigError, kind: Kind, place: Path, within: str = "") -> str:
    """The problems as one text. `place` is where the object stands in the document.

    With `within`, a message VPN, what is wrong elsewhere is counted and not told.
    """
    words = _words(kind)
    lines: list[str] = []
    hidden = 0
    for problem in error.problems:
        line = _POSITION.sub("", problem)
        if within and not line.startswith((f"msg_vpns.{within}.", f"msg_vpns.{within}: ")):
            hidden += 1
            continue
        lines.append(_worded(line, kind, place, words))
    lines = list(dict.fromkeys(lines))
    more = len(lines) - MOST_TOLD
    told_lines = lines[:MOST_TOLD]
    if more > 0:
        told_lines.append(f"and {more} more")
    if hidden:
        told_lines.append(f"problems in other parts of the configuration: {hidden}")
    return "; ".join(told_lines)


def _words(kind: Kind) -> Mapping[str, str]:
    """Attribute names by keys joined by dots."""
    return {".".join(each.keys): each.name for each in kind.values}


def _worded(line: str, kind: Kind, place: Path, words: Mapping[str, str]) -> str:
    whole = show_path(place)
    above = show_path((*place[:-1],))
    if line.startswith(f"{whole}."):
        dotted, _, message = line.removeprefix(f"{whole}.").partition(": ")
        return f"{_name(dotted, words)}: {_replaced(message, dotted, words)}"
    if line.startswith(f"{whole}: "):
        name = kind.noun if kind.changes else kind.identity[-1].name
        return f"{name}: {_replaced(line.removeprefix(f'{whole}: '), '', words)}"
    if line.startswith(f"{above}: "):
        return f"{kind.identity[0].name}: {line.removeprefix(f'{above}: ')}"
    return line


def _name(dotted: str, words: Mapping[str, str]) -> str:
    return words.get(dotted, camel(dotted.replace(".", "_")))


def _replaced(message: str, dotted: str, words: Mapping[str, str]) -> str:
    """Keys inside a message as attributes, as far as there are such."""
    above = dotted.rpartition(".")[0]

    def named(found: re.Match[str]) -> str:
        key = found.group()
        for place in (f"{dotted}.{key}", f"{above}.{key}" if above else key, key):
            if place in words:
                return words[place]
        return key

    return _KEYS.sub(named, message)
