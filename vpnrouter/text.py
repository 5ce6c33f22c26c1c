"""Makes text that a stranger chose safe for a terminal, a log or a page, and puts nouns behind numbers.

Clients choose client ids, topics and user properties, other routers their names and reasons, the author of a
YAML file its keys. Code that shows such a text to a person passes it through `printable` first.
"""

import json
import re
from typing import Final

from vpnrouter import limits

_CUT: Final = "…"

_SPACES: Final = frozenset("\u00a0\u1680\u202f\u205f\u3000") | {
    chr(at) for at in range(0x2000, 0x200B)
}
"""Spaces of several widths (Unicode Zs) are printed as they are: they are harmless, and some scripts need them."""


def printable(text: str, most: int = limits.PRINTED_CHARS) -> str:
    r"""`text` on one line of at most `most` characters, with escapes (`\x1b`, `\n`, `\u202e`) for all that does
    not print: C0 and C1 controls, DEL, what turns the direction of writing or hides, separators of lines, halves
    of characters and what Unicode has not assigned. A longer text ends in `…`. JSON gives texts exactly.
    """
    if len(text) > most:
        text = text[: most - 1] + _CUT
    if text.isprintable():
        return text
    escaped = _escaped(text, "")
    return escaped if len(escaped) <= most else escaped[: most - 1] + _CUT


def printable_lines(text: str) -> str:
    """As `printable`, for a whole text of several lines: line feeds and tabs stay, and nothing is cut."""
    return text if text.isprintable() else _escaped(text, "\n\t")


def ascii_json(value: object, indent: int | None = None) -> str:
    """JSON in printable ASCII alone: it is exact, and no control character reaches a terminal."""
    # JSON does not escape DEL, which can stand inside strings only.
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return `1 message`, `2,000 messages`; `plural` where an s does not make one."""
    return f"{count:,} {in_number(count, noun, plural)}"


def in_number(count: float, noun: str, plural: str = "") -> str:
    """Return the singular of a noun for 1 and its plural for all else."""
    return noun if count == 1 else plural or f"{noun}s"


def _escaped(text: str, kept: str) -> str:
    # Without the codec unicode_escape, a module that is loaded at its first use.
    return "".join(
        [
            one if one.isprintable() or one in _SPACES or one in kept else repr(one)[1:-1]
            for one in text
        ]
    )


def camel(name: str) -> str:
    """Return `lastRxAgeMs` for `last_rx_age_ms`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake(name: str) -> str:
    """Return `last_rx_age_ms` for `lastRxAgeMs`."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def split_placeholders(text: str) -> list[str]:
    """Return literals and placeholders of a text in turn: the even ones are literals. Raises ValueError."""
    parts: list[str] = []
    literal: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char not in "{}":
            literal.append(char)
        elif text.startswith(char, at):
            literal.append(char)
            at += 1
        elif char == "}":
            raise ValueError(f"has a }} without its {{ at character {at}; a literal one is }}}}")
        else:
            end = text.find("}", at)
            if end < 0:
                raise ValueError(
                    f"has a {{ without its }} at character {at}; a literal one is {{{{"
                )
            parts.append("".join(literal))
            parts.append(text[at:end])
            literal = []
            at = end + 1
    parts.append("".join(literal))
    return parts
