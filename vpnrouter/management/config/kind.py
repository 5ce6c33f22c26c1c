"""A kind of object: where it is in the paths, what it is known by, what it has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vpnrouter.config.model import Model
from vpnrouter.management.config.attribute import Attribute
from vpnrouter.management.config.store import Store
from vpnrouter.management.paging import Key

Keys = tuple[Key, ...]
"""The key of an object and, before it, those of what it stands in: one for each kind of the chain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One kind. `attributes` holds those of its key too, by name.

    `absent` are attributes of the field that this router does not have, with the only value that is
    taken; `tolerated` deprecated ones of which every value is. Of a pair in `together` none is given
    alone. `above` is how many objects further up it stands in the document than in the paths. `built_in`
    exists without being written. `kept` are keys that replacing an object leaves alone.
    """

    collection: str
    title: str
    noun: str
    path: str
    store: Store
    parent: "Kind | None" = None
    above: int = 0
    attributes: Mapping[str, Attribute]
    absent: Mapping[str, Any] = field(default_factory=dict)
    tolerated: frozenset[str] = frozenset()
    together: tuple[tuple[str, str], ...] = ()
    changes: bool = True
    deprecated: bool = False
    built_in: str = ""
    kept: tuple[tuple[str, ...], ...] = ()
    model: type[Model] | None = None
    left: Mapping[str, str] = field(default_factory=dict)

    @property
    def chain(self) -> tuple["Kind", ...]:
        """What it stands in, outermost first, and itself."""
        return (*(() if self.parent is None else self.parent.chain), self)

    @property
    def holder(self) -> "Kind | None":
        """The kind in whose mapping of the document it stands."""
        place = self.parent
        for _ in range(self.above):
            place = None if place is None else place.parent
        return place

    @property
    def identity(self) -> tuple[Attribute, ...]:
        """The attributes of its key, in the key's order."""
        return tuple(each for each in self.attributes.values() if each.identifying)

    @property
    def values(self) -> tuple[Attribute, ...]:
        """The attributes that a document holds inside the object."""
        return tuple(each for each in self.attributes.values() if each.keys)

    @property
    def readable(self) -> tuple[str, ...]:
        """The attributes of an answer, those of the objects above included."""
        own = [each.name for each in self.attributes.values() if not each.write_only]
        return (*(name for kind in self.chain[:-1] for name in kind.key_names), *own)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of its key's attributes."""
        return tuple(each.name for each in self.identity)

    def known_by(self, keys: Keys) -> dict[str, str]:
        """The key's attributes of an object and of all above it, with their values."""
        named: dict[str, str] = {}
        for kind, key in zip(self.chain, keys, strict=True):
            named |= dict(zip(kind.key_names, key, strict=True))
        return named

    def told(self, keys: Keys) -> str:
        """An object in words."""
        parts = [
            f"{kind.noun} {','.join(key)}"
            for kind, key in zip(reversed(self.chain), reversed(keys), strict=True)
        ]
        return " in ".join(parts)


def by_name(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """Attributes by their names."""
    return {each.name: each for each in attributes}
