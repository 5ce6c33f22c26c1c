"""What a request gives an object: known names, values of the right kind, nothing that cannot be."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vpnrouter import limits
from vpnrouter.config.document import Plain
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.kind import Keys, Kind
from vpnrouter.management.faults import invalid, not_supported_here
from vpnrouter.management.paging import Key
from vpnrouter.text import printable

Given = dict[str, Plain]
"""Attribute name → value as a document has it. What has no place in a document is checked and left out."""

_COMPARED: Final = 100
"""Characters of an unknown name that are compared with the known ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a body is read: whether it makes an object, and whether whoever sends it may name files."""

    creates: bool = False
    replaces: bool = False
    may_name_files: bool = True


def read_given(
    kind: Kind, known: Mapping[str, str], body: Mapping[str, Any], asked: Asked
) -> Given:
    """The attributes in a body. `known` are those that the path has said already: they cannot be others.

    Raises RequestError for an unknown name, a wrong value, one that this router does not have.
    """
    given: Given = {}
    for name, value in body.items():
        if name in known:
            if value != known[name]:
                raise invalid(
                    f"{name}: cannot be changed; the path says {printable(known[name], limits.NAME_SHOWN_CHARS)}"
                )
        elif name in kind.attributes:
            _read_one(kind.attributes[name], value, given, asked)
        elif name in kind.absent:
            _refuse_other(name, value, kind.absent[name])
        elif name not in kind.tolerated:
            raise invalid(_unknown(kind, name))
    if asked.creates:
        _demand(kind, known, body)
    for pair in kind.together:
        _demand_both(pair, body)
    return given


def key_of(kind: Kind, body: Mapping[str, Any]) -> Key:
    """The key of an object to be made. Raises RequestError if it is not there or wrong."""
    key = []
    for each in kind.identity:
        if each.name not in body and not each.required:
            key.append(str(each.default))
            continue
        if each.name not in body:
            raise invalid(f"{each.name}: is missing")
        if each.fixed and body[each.name] != each.default and isinstance(body[each.name], str):
            _refuse_other(each.name, body[each.name], each.default)
        key.append(each.taken(body[each.name]))
    return tuple(key)


def known_by_path(kind: Kind, keys: Keys) -> dict[str, str]:
    """What a path says of an object to be made in `keys`, those of the objects above."""
    return {} if kind.parent is None else kind.parent.known_by(keys)


def _read_one(attribute: Attribute, value: Plain, given: Given, asked: Asked) -> None:
    if attribute.fixed:
        _refuse_other(attribute.name, value, attribute.default)
        return
    taken = attribute.taken(value)
    if attribute.identifying:
        return
    if attribute.file and taken and not asked.may_name_files:
        raise not_supported_here(
            f"{attribute.name}: names a file of the router's machine; only users of all message VPNs may"
        )
    given[attribute.name] = taken


def _refuse_other(name: str, value: Plain, only: Plain) -> None:
    # 1 == True for Python, and for nobody else.
    if value != only or isinstance(value, bool) is not isinstance(only, bool):
        shown = f'"{only}"' if isinstance(only, str) else str(only).lower()
        raise not_supported_here(f"{name}: this router has it only as {shown}")


def _demand(kind: Kind, known: Mapping[str, str], body: Mapping[str, Any]) -> None:
    missing = [
        each.name
        for each in kind.attributes.values()
        if each.required and each.name not in body and each.name not in known
    ]
    if missing:
        raise invalid(f"{', '.join(missing)}: missing, and required to create a {kind.noun}")


def _demand_both(pair: tuple[str, str], body: Mapping[str, Any]) -> None:
    there = [name for name in pair if name in body]
    if len(there) == 1:
        other = pair[1] if there[0] == pair[0] else pair[0]
        raise invalid(f"{there[0]}: needs {other} beside it in the same request")


def _unknown(kind: Kind, name: str) -> str:
    names = {each.lower(): each for each in (*kind.attributes, *kind.absent)}
    near = difflib.get_close_matches(name[:_COMPARED].lower(), names, n=1, cutoff=0.8)
    hint = f"; did you mean {names[near[0]]}?" if near else ""
    return f"there is no attribute {printable(name, limits.NAME_SHOWN_CHARS)}{hint}"


def passwords_in(kind: Kind, given: Given) -> list[str]:
    """The attributes given that are stored as hashes."""
    return [
        name
        for name, value in given.items()
        if kind.attributes[name].hashed and kind.attributes[name].form == TEXT and value
    ]
