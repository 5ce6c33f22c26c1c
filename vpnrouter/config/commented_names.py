"""Warns of names that begin with `#` and lack their quotes: YAML takes them for comments."""

import re
from collections.abc import Iterator
from typing import Final

from vpnrouter.config.parse import Document
from vpnrouter.config.problem import Position, Problem

_EMPTY: Final = re.compile(
    r"^(?P<before>[^#\n]*):[ \t]*\r?\n(?P<indent>[ \t]*)(?P<name>#[\w.-]+):(?:[ \t\r]|$)",
    re.MULTILINE,
)
"""A line that ends with a key, and below it a comment that looks like one: `queues:`, `  #DEAD_MSG_QUEUE: {}`."""


def commented_names(document: Document, text: bytes) -> Iterator[Problem]:
    """Yield a warning for each key of the document that has no value, and such a comment below it in its `text`."""
    found = _EMPTY.finditer(text.decode("utf-8-sig", "replace"))
    comments = {match.string.count("\n", 0, match.start()) + 1: match for match in found}
    if not comments:
        return
    for path, key in document.places():
        match = comments.get(key.line)
        if (
            match is None
            or len(match["indent"]) < key.column
            or document.value_of(path) is not None
        ):
            continue
        place = Position(document.file, key.line + 1, len(match["indent"]) + 1)
        told = f'is empty, because {match["name"]}: below it is a comment; to mean a name, write "{match["name"]}":'
        yield Problem(place, "warning", f"{document.show(path)}: {told}")
