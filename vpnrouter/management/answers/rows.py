"""Rows of an answer, from status objects: attributes by their names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_type_hints
from urllib.parse import quote

from vpnrouter.text import camel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Row = dict[str, Any]
"""Attribute name in camelCase → text, number, truth value, or numbers by name."""

_JSON_TYPES: Final[dict[object, dict[str, object]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    dict[str, int]: {"type": "object", "additionalProperties": {"type": "integer"}},
}


@cache
def _columns(kind: type[DataclassInstance]) -> tuple[tuple[str, str], ...]:
    """Return the plain attributes of a status class, snake and camel; lists of further objects are left out."""
    hints = get_type_hints(kind)
    return tuple(
        (field.name, camel(field.name))
        for field in fields(kind)
        if hints[field.name] in _JSON_TYPES
    )


def row_of(status: DataclassInstance) -> Row:
    """Return the row of one status object."""
    return {name: getattr(status, attribute) for attribute, name in _columns(type(status))}


def names_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """Return the attribute names of a class of status objects, as a row has them."""
    return tuple(name for _, name in _columns(kind))


def schema_of(kind: type[DataclassInstance]) -> dict[str, object]:
    """Return the JSON schema of a row."""
    hints = get_type_hints(kind)
    return {
        "type": "object",
        "properties": {name: _JSON_TYPES[hints[attribute]] for attribute, name in _columns(kind)},
    }


Links = Mapping[str, str]
"""`uri` and `…Uri` of an object's children."""


def segment(*names: str) -> str:
    """Return a path segment of a compound key: its parts encoded, joined by commas."""
    return ",".join(quote(name, safe="") for name in names)
