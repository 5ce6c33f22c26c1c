"""Warns of keys that are accepted and have no effect in this version.

A row leaves this table in the change that brings the feature.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from vpnrouter.config.parse import Document, Plain
from vpnrouter.config.problem import Path, Problem

ANY: Final = "*"
"""In a path: every name or index at that place."""


def _says_something(value: object) -> bool:
    return value is not None and value is not False and value not in ({}, [])


class UnsupportedKey(NamedTuple):
    """One thing that is accepted and not done. `when` looks at the value that is written."""

    path: Path
    message: str
    when: Callable[[object], bool] = _says_something


_VPN: Final[Path] = ("msg_vpns", ANY)
_PROFILE: Final[Path] = (*_VPN, "client_profiles", ANY)

UNSUPPORTED: Final = (
    UnsupportedKey(
        (*_PROFILE, "eliding"), "eliding is not part of this version; every message is sent"
    ),
)


def unsupported_keys(document: Document) -> list[Problem]:
    """Return a warning for each place in the document that a row of the table describes."""
    return [
        Problem(document.key_at(path), "warning", f"{document.show(path)}: {row.message}")
        for row in UNSUPPORTED
        for path, value in _places(document.data, row.path)
        if row.when(value)
    ]


def _places(data: Plain, pattern: Path) -> Iterator[tuple[Path, Plain]]:
    """Yield the paths that fit the pattern, each with its value."""
    reached: list[tuple[Path, Plain]] = [((), data)]
    for step in pattern:
        further: list[tuple[Path, Plain]] = []
        for path, value in reached:
            if step == ANY and isinstance(value, dict):
                further.extend(((*path, name), inner) for name, inner in value.items())
            elif step == ANY and isinstance(value, list):
                further.extend(((*path, index), inner) for index, inner in enumerate(value))
            elif step != ANY and isinstance(value, dict) and step in value:
                further.append(((*path, step), value[step]))
        reached = further
    yield from reached
