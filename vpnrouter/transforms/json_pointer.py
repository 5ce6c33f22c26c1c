"""Finds and sets values in JSON by pointers (RFC 6901)."""

from __future__ import annotations

from typing import Final

from vpnrouter.errors import TransformError

_APPEND: Final = "-"
"""What stands for the place behind the last element of an array (4)."""


def parse_pointer(text: str) -> list[str]:
    """Return the reference tokens of a pointer, [] for the whole document (3). Raises ValueError."""
    if not text:
        return []
    if not text.startswith("/"):
        raise ValueError(f"{text} is no JSON pointer: it begins with /")
    tokens: list[str] = []
    for part in text[1:].split("/"):
        if "~" in part.replace("~0", "").replace("~1", ""):
            raise ValueError(f"{text} is no JSON pointer: ~ is written ~0, and / is written ~1")
        tokens.append(part.replace("~1", "/").replace("~0", "~"))
    return tokens


def shown(tokens: list[str]) -> str:
    """Return the pointer with these tokens."""
    return "".join(["/" + token.replace("~", "~0").replace("/", "~1") for token in tokens])


def find(document: object, tokens: list[str]) -> object:
    """Return the value that a pointer names. Raises TransformError where there is none."""
    value = document
    for index, token in enumerate(tokens):
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list):
            value = value[_index(value, tokens, index)]
        else:
            raise _missing(tokens[: index + 1])
    return value


def put(document: object, tokens: list[str], value: object) -> object:
    """Return a document with a value at a place that has one, or in an object, or behind an array. Raises
    TransformError where the place in which it is to be is not there.
    """
    if not tokens:
        return value
    place = find(document, tokens[:-1])
    last = tokens[-1]
    if isinstance(place, dict):
        place[last] = value
    elif isinstance(place, list) and last == _APPEND:
        place.append(value)
    elif isinstance(place, list):
        place[_index(place, tokens, len(tokens) - 1)] = value
    else:
        raise _missing(tokens)
    return document


def take_out(document: object, tokens: list[str]) -> None:
    """Take a value out of its object or array; where it is not there, nothing is done."""
    try:
        place = find(document, tokens[:-1])
        if isinstance(place, dict):
            place.pop(tokens[-1], None)
        elif isinstance(place, list):
            del place[_index(place, tokens, len(tokens) - 1)]
    except TransformError:
        return


def _index(array: list[object], tokens: list[str], at: int) -> int:
    """Return which element of an array the token at `at` names (4: no leading zeros)."""
    token = tokens[at]
    if token.isascii() and token.isdigit() and str(int(token[:9])) == token:
        number = int(token)
        if number < len(array):
            return number
    raise _missing(tokens[: at + 1])


def _missing(tokens: list[str]) -> TransformError:
    return TransformError(f"the payload has nothing at {shown(tokens)}")
