"""Makes the object types of the configuration API: one of each kind of object, in the order of their paths."""

from __future__ import annotations

from typing import Final

from vpnrouter.management.config.object_type import ObjectType, object_type
from vpnrouter.settings import kinds


def _made() -> dict[kinds.Kind, ObjectType]:
    made: dict[kinds.Kind, ObjectType] = {}
    for kind in kinds.api_kinds():
        parent = None if kind.parent is None else made[kind.parent]
        made[kind] = object_type(kind, parent, kinds.children_of(kind))
    return made


TYPES: Final = _made()
"""The object type of each kind."""

KINDS: Final = tuple(TYPES.values())
"""All object types, each behind the one that it stands in."""

MSG_VPN: Final = TYPES[kinds.MSG_VPN]


def children_of(kind: ObjectType) -> tuple[ObjectType, ...]:
    """Return the object types directly below one."""
    return tuple(each for each in KINDS if each.parent is kind)
