"""What a request gives an object, and how a document changes by it.

Everything here works on plain data that is a copy: whoever raises leaves nothing half done.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vpnrouter import limits
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Path
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.config.attribute import OBJECT, TEXT, Attribute
from vpnrouter.management.config.document_access import opened
from vpnrouter.management.config.object_type import Keys, ObjectType
from vpnrouter.management.errors import (
    already_exists,
    invalid,
    not_allowed,
    not_found,
    not_supported_here,
)
from vpnrouter.text import printable

Given = dict[str, Plain]
"""Attribute name → value as a document has it. What has no place in a document is checked and left out."""

_COMPARED: Final = 100
"""Characters of an unknown name that are compared with the known ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """How a body is read: whether it makes an object, and whether whoever sends it may name files."""

    creates: bool = False
    replaces: bool = False
    may_name_files: bool = True


def read_given(
    kind: ObjectType, known: Mapping[str, str], body: Mapping[str, Any], query: WriteRequest
) -> Given:
    """Return the attributes in a body. `known` are those of the path: the body cannot change them.

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
            _read_one(kind.attributes[name], value, given, query)
        elif name in kind.absent:
            _refuse_other(name, value, kind.absent[name])
        elif name not in kind.tolerated:
            raise invalid(_unknown(kind, name))
    if query.creates:
        _demand(kind, known, body)
    for pair in kind.together:
        _demand_both(pair, body)
    return given


def key_of(kind: ObjectType, body: Mapping[str, Any]) -> Key:
    """Return the key of an object to be created. Raises RequestError if it is missing or wrong."""
    key = []
    for attribute in kind.identity:
        if attribute.name not in body and not attribute.required:
            key.append(str(attribute.default))
            continue
        if attribute.name not in body:
            raise invalid(f"{attribute.name}: is missing")
        if (
            attribute.fixed
            and body[attribute.name] != attribute.default
            and isinstance(body[attribute.name], str)
        ):
            _refuse_other(attribute.name, body[attribute.name], attribute.default)
        key.append(attribute.taken(body[attribute.name]))
    return tuple(key)


def known_by_path(kind: ObjectType, keys: Keys) -> dict[str, str]:
    """Return the attributes that the path gives of an object to be created in `keys`, those of the objects above."""
    return {} if kind.parent is None else kind.parent.known_by(keys)


def _read_one(attribute: Attribute, value: Plain, given: Given, query: WriteRequest) -> None:
    if attribute.fixed:
        _refuse_other(attribute.name, value, attribute.default)
        return
    taken = attribute.taken(value)
    if attribute.identifying:
        return
    if attribute.file and taken and not query.may_name_files:
        raise not_supported_here(
            f"{attribute.name}: names a file of the router's machine; only users of all message VPNs may"
        )
    given[attribute.name] = taken


def _refuse_other(name: str, value: Plain, only: Plain) -> None:
    # 1 == True for Python, and for nobody else.
    if value != only or isinstance(value, bool) is not isinstance(only, bool):
        shown = f'"{only}"' if isinstance(only, str) else str(only).lower()
        raise not_supported_here(f"{name}: this router has it only as {shown}")


def _demand(kind: ObjectType, known: Mapping[str, str], body: Mapping[str, Any]) -> None:
    missing = [
        attribute.name
        for attribute in kind.attributes.values()
        if attribute.required and attribute.name not in body and attribute.name not in known
    ]
    if missing:
        raise invalid(f"{', '.join(missing)}: missing, and required to create a {kind.noun}")


def _demand_both(pair: tuple[str, str], body: Mapping[str, Any]) -> None:
    present = [name for name in pair if name in body]
    if len(present) == 1:
        other = pair[1] if present[0] == pair[0] else pair[0]
        raise invalid(f"{present[0]}: needs {other} beside it in the same request")


def _unknown(kind: ObjectType, name: str) -> str:
    names = {each.lower(): each for each in (*kind.attributes, *kind.absent)}
    near = difflib.get_close_matches(name[:_COMPARED].lower(), names, n=1, cutoff=0.8)
    hint = f"; did you mean {names[near[0]]}?" if near else ""
    return f"there is no attribute {printable(name, limits.NAME_SHOWN_CHARS)}{hint}"


def passwords_in(kind: ObjectType, given: Given) -> list[str]:
    """Return the attributes of the request that are stored as hashes."""
    return [
        name
        for name, value in given.items()
        if kind.attributes[name].hashed and kind.attributes[name].form == TEXT and value
    ]


def create(document: Plain, kind: ObjectType, keys: Keys, given: Given) -> None:
    """Create the object of these keys. Raises RequestError if it exists, or the one that holds it does not."""
    holder = holder_of(document, kind, keys)
    if kind.store.find(holder, keys[-1]) is not None:
        raise already_exists(kind.description(keys))
    kind.store.add(holder, keys[-1], written_of(kind, given))


def patch(document: Plain, kind: ObjectType, keys: Keys, given: Given) -> None:
    """Change these attributes. Raises RequestError if the object does not exist."""
    holder = holder_of(document, kind, keys)
    item = kind.store.find(holder, keys[-1])
    if item is None:
        raise not_found(kind.description(keys))
    for name, value in given.items():
        _set(item, kind.attributes[name], value)


def replace(document: Plain, kind: ObjectType, keys: Keys, given: Given) -> None:
    """Replace the attributes of the object, except write-only ones; create it if it does not exist.

    A write-only attribute goes too where the one that it belongs to is not given (SEMP v2, note 4).
    """
    holder = holder_of(document, kind, keys)
    item = kind.store.find(holder, keys[-1])
    if item is None:
        kind.store.add(holder, keys[-1], written_of(kind, given))
        return
    paired = {name for pair in kind.together for name in pair}
    mapping = written_of(kind, given, whole=keys[-1][0] == kind.built_in)
    stay = [
        value.keys
        for value in kind.values
        if value.write_only and value.name not in given and value.name not in paired
    ]
    for path in (*kind.kept, *stay):
        write_only = _get(item, path)
        if write_only is not None:
            opened(mapping, path[:-1])[path[-1]] = write_only
    kind.store.put(holder, keys[-1], mapping)


def delete(document: Plain, kind: ObjectType, keys: Keys) -> None:
    """Delete the object. Raises RequestError if it does not exist, or is always there."""
    holder = holder_of(document, kind, keys)
    if kind.store.find(holder, keys[-1]) is None:
        raise not_found(kind.description(keys))
    if kind.built_in and keys[-1][0] == kind.built_in:
        raise not_allowed(f"{kind.description(keys)} always exists")
    kind.store.drop(holder, keys[-1])


def drop_empty(document: Plain, path: Path) -> None:
    """Take the mapping at `path` out of the document if it is one, and empty."""
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    if holder[path[-1]] == {}:
        del holder[path[-1]]


def holder_of(document: Plain, kind: ObjectType, keys: Keys) -> Plain:
    """Return the mapping that holds the objects of a kind. Raises RequestError if one above them is not there."""
    holders = [document]
    for above, key in zip(kind.chain[:-1], keys, strict=False):
        place = holders[-1 - above.above]
        holder = above.store.find(place, key)
        if holder is None:
            raise not_found(above.description(keys[: len(above.chain)]))
        holders.append(holder)
    return holders[-1 - kind.above]


def place_of(document: Plain, kind: ObjectType, keys: Keys) -> Path:
    """Return where the object is in the document, or would be."""
    outer = kind.holder
    above = () if outer is None else place_of(document, outer, keys[: len(outer.chain)])
    return (*above, *kind.store.path(holder_of(document, kind, keys), keys[-1]))


def written_of(kind: ObjectType, given: Given, *, whole: bool = False) -> Plain:
    """Return the mapping of an object with these attributes; the others as the field starts them.

    A document starts some of them otherwise, so these are written out. `whole` writes all of them.
    """
    mapping: dict[str, Any] = {}
    for value in kind.values:
        if value.name in given:
            _set(mapping, value, given[value.name])
        elif (whole or value.default != value.written_default) and _is_plain(value):
            _set(mapping, value, value.default)
    return mapping


def _is_plain(attribute: Attribute) -> bool:
    """Return whether its default can be written: secrets have none, and objects hold the field's anyway."""
    return not attribute.write_only and attribute.form != OBJECT


def _set(there: Plain, attribute: Attribute, value: Plain) -> None:
    *above, last = attribute.keys
    if value == "" and attribute.blank:
        if _get(there, attribute.keys) is not None:
            del opened(there, above)[last]
        return
    if attribute.form == OBJECT:
        # What is not named in it stays, as in the object above it.
        opened(there, attribute.keys).update(value)
        return
    opened(there, above)[last] = value


def _get(there: Plain, keys: Sequence[str]) -> Plain:
    for key in keys:
        if not isinstance(there, dict):
            return None
        there = there.get(key)
    return there
