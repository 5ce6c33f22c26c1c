"""How a document changes when an object is created, changed, replaced or deleted.

Everything here works on plain data that is a copy: whoever raises leaves nothing half done.
"""

from collections.abc import Sequence
from typing import Any

from vpnrouter.config.document import Plain
from vpnrouter.config.problem import Path
from vpnrouter.management.config.attribute import OBJECT, Attribute
from vpnrouter.management.config.given import Given
from vpnrouter.management.config.kind import Keys, Kind
from vpnrouter.management.config.store import opened
from vpnrouter.management.faults import already_exists, not_allowed, not_found


def create(document: Plain, kind: Kind, keys: Keys, given: Given) -> None:
    """Make the object of these keys. Raises RequestError if it is there, or what it stands in is not."""
    holder = holder_of(document, kind, keys)
    if kind.store.find(holder, keys[-1]) is not None:
        raise already_exists(kind.told(keys))
    kind.store.add(holder, keys[-1], written_of(kind, given))


def patch(document: Plain, kind: Kind, keys: Keys, given: Given) -> None:
    """Change the attributes given. Raises RequestError if the object is not there."""
    holder = holder_of(document, kind, keys)
    there = kind.store.find(holder, keys[-1])
    if there is None:
        raise not_found(kind.told(keys))
    for name, value in given.items():
        _set(there, kind.attributes[name], value)


def replace(document: Plain, kind: Kind, keys: Keys, given: Given) -> None:
    """Give the object these attributes and no others, but what was write-only; make it if it is not there.

    A write-only attribute goes too where the one that it belongs to is not given (SEMP v2, note 4).
    """
    holder = holder_of(document, kind, keys)
    there = kind.store.find(holder, keys[-1])
    if there is None:
        kind.store.add(holder, keys[-1], written_of(kind, given))
        return
    paired = {name for pair in kind.together for name in pair}
    written = written_of(kind, given, whole=keys[-1][0] == kind.built_in)
    stay = [
        each.keys
        for each in kind.values
        if each.write_only and each.name not in given and each.name not in paired
    ]
    for path in (*kind.kept, *stay):
        held = _get(there, path)
        if held is not None:
            opened(written, path[:-1])[path[-1]] = held
    kind.store.put(holder, keys[-1], written)


def delete(document: Plain, kind: Kind, keys: Keys) -> None:
    """Take the object away. Raises RequestError if it is not there, or always is."""
    holder = holder_of(document, kind, keys)
    if kind.store.find(holder, keys[-1]) is None:
        raise not_found(kind.told(keys))
    if kind.built_in and keys[-1][0] == kind.built_in:
        raise not_allowed(f"{kind.told(keys)} always exists")
    kind.store.drop(holder, keys[-1])


def holder_of(document: Plain, kind: Kind, keys: Keys) -> Plain:
    """The mapping that holds the objects of a kind. Raises RequestError if one above them is not there."""
    holders = [document]
    for above, key in zip(kind.chain[:-1], keys, strict=False):
        place = holders[-1 - above.above]
        found = above.store.find(place, key)
        if found is None:
            raise not_found(above.told(keys[: len(above.chain)]))
        holders.append(found)
    return holders[-1 - kind.above]


def place_of(document: Plain, kind: Kind, keys: Keys) -> Path:
    """Where the object stands in the document, or would."""
    outer = kind.holder
    above = () if outer is None else place_of(document, outer, keys[: len(outer.chain)])
    return (*above, *kind.store.path(holder_of(document, kind, keys), keys[-1]))


def written_of(kind: Kind, given: Given, *, whole: bool = False) -> Plain:
    """The mapping of an object with these attributes; the others as the field starts them.

    A document starts some of them otherwise, so these are written out. `whole` writes all of them.
    """
    written: dict[str, Any] = {}
    for each in kind.values:
        if each.name in given:
            _set(written, each, given[each.name])
        elif (whole or each.default != each.written_default) and _is_plain(each):
            _set(written, each, each.default)
    return written


def _is_plain(attribute: Attribute) -> bool:
    """Whether its default can be written: secrets have none, and objects hold the field's anyway."""
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
