"""The words of a syntax error: what stands there, and what should."""

from collections.abc import Collection
from typing import Final

_GROUPS: Final[tuple[tuple[str, str, frozenset[str]], ...]] = (
    (
        "NUMBER",
        "a value",
        frozenset(
            {"ADD", "FALSE", "LPAR", "NAME", "NOT", "NUMBER", "QUOTED_NAME", "STRING", "TRUE"}
        ),
    ),
    (
        "COMPARISON",
        "an operator",
        frozenset(
            {"ADD", "AND", "BETWEEN", "COMPARISON", "IN", "IS", "LIKE", "MULTIPLY", "NOT", "OR"}
        ),
    ),
    ("MULTIPLY", "arithmetic", frozenset({"ADD", "MULTIPLY"})),
)
"""A terminal, the phrase that speaks for it and its like, and which those are."""

_PHRASES: Final[dict[str, str]] = {
    "STRING": "a string in single quotes",
    "LPAR": "'('",
    "COMMA": "','",
    "RPAR": "')'",
    "$END": "the end",
}

_HINTS: Final[dict[str, str]] = {
    "NULL": "; IS NULL asks for a missing property",
    "!": "; not equal is written <>",
    ".": '; a name that holds more than letters, digits, _ and $ stands in double quotes: "a.b"',
    "'": ": a string without its closing quote",
    '"': ": a name without its closing quote",
}
"""What helps with a text that is not expected."""

_SHOWN: Final = 24
"""Characters of the selector that an error repeats."""


def unexpected(found: str, accepted: Collection[str]) -> str:
    """One line: the names of terminals in `accepted` are expected, the text `found` is there.

    An empty `found` is the selector's end.
    """
    left = set(accepted)
    phrases = []
    for key, phrase, members in _GROUPS:
        if key in left:
            phrases.append(phrase)
            left -= members
    phrases.extend([_PHRASES.get(name, name) for name in sorted(left, key=_end_last)])
    listed = phrases[-1] if phrases else "nothing"
    if len(phrases) > 1:
        listed = f"{', '.join(phrases[:-1])} or {listed}"
    what = shown(found) if found else "the end"
    return f"expected {listed}, not {what}{_HINTS.get(found.upper(), '')}"


def shown(text: str) -> str:
    """A piece of the selector as an error shows it: short, printable, on one line."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _end_last(name: str) -> tuple[bool, str]:
    return name == "$END", name
