"""Declares object types of the configuration API: paths, keys, attributes, and the rows made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vpnrouter.config.model import Model, model_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.management.answers.pages import Key
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.config import unsupported_attributes
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.document_access import (
    DocumentAccess,
    Held,
    MappingAccess,
    RecordsAccess,
    TextsAccess,
    reached,
)
from vpnrouter.management.config.from_model import derived, left_out
from vpnrouter.settings.kinds import Form, KeyPart, Kind

Keys = tuple[Key, ...]
"""The key of an object and, before it, those of what it stands in: one for each kind of the chain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectType:
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
    store: DocumentAccess
    parent: ObjectType | None = None
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
    def chain(self) -> tuple[ObjectType, ...]:
        """What it stands in, outermost first, and itself."""
        return (*(() if self.parent is None else self.parent.chain), self)

    @property
    def holder(self) -> ObjectType | None:
        """The kind in whose mapping of the document it stands."""
        place = self.parent
        for _ in range(self.above):
            place = None if place is None else place.parent
        return place

    @property
    def identity(self) -> tuple[Attribute, ...]:
        """The attributes of its key, in the key's order."""
        return tuple(attribute for attribute in self.attributes.values() if attribute.identifying)

    @property
    def values(self) -> tuple[Attribute, ...]:
        """The attributes that a document holds inside the object."""
        return tuple(attribute for attribute in self.attributes.values() if attribute.keys)

    @property
    def readable(self) -> tuple[str, ...]:
        """The attributes of an answer, those of the objects above included."""
        own = [attribute.name for attribute in self.attributes.values() if not attribute.write_only]
        return (*(name for kind in self.chain[:-1] for name in kind.key_names), *own)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of its key's attributes."""
        return tuple(attribute.name for attribute in self.identity)

    def known_by(self, keys: Keys) -> dict[str, str]:
        """Return the key's attributes of an object and of all above it, with their values."""
        named: dict[str, str] = {}
        for kind, key in zip(self.chain, keys, strict=True):
            named |= dict(zip(kind.key_names, key, strict=True))
        return named

    def description(self, keys: Keys) -> str:
        """Return a description of an object for people."""
        parts = [
            f"{kind.noun} {','.join(key)}"
            for kind, key in zip(reversed(self.chain), reversed(keys), strict=True)
        ]
        return " in ".join(parts)


def by_name(attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """Return attributes by their names."""
    return {attribute.name: attribute for attribute in attributes}


def object_type(kind: Kind, parent: ObjectType | None, children: Sequence[Kind]) -> ObjectType:
    """Return the object type of a kind: its key, the attributes made of its settings, and those with one value."""
    identity = tuple(_key_attribute(part) for part in kind.identity)
    attributes: tuple[Attribute, ...] = ()
    left: dict[str, str] = {}
    model = None
    if kind.settings is not None:
        model = model_of(kind.settings)
        named = tuple(each.key for each in children if each.form is Form.NAMED)
        attributes = tuple(derived(kind.settings, model, named))
        left = left_out(kind.settings, named)
    known = {each.name for each in identity}
    own = tuple(
        replace(each, ours=each.ours or kind.ours) for each in attributes if each.name not in known
    )
    always = tuple(
        replace(_key_attribute(part), required=False, identifying=False) for part in kind.always
    )
    title = kind.title or kind.singular
    return ObjectType(
        collection=kind.collection,
        title=title if parent is None else parent.title + title[0].upper() + title[1:],
        noun=kind.singular,
        path=",".join(part.place for part in kind.identity),
        store=_access(kind),
        parent=parent,
        above=kind.above,
        attributes=by_name((*identity, *own, *always)),
        absent=unsupported_attributes.ABSENT.get(kind, {}),
        tolerated=unsupported_attributes.DEPRECATED.get(kind, frozenset()),
        together=kind.together,
        changes=kind.changes,
        deprecated=kind.deprecated,
        built_in=kind.built_in,
        kept=tuple(tuple(path.split(".")) for path in left),
        left=left,
        model=model,
    )


def _key_attribute(part: KeyPart) -> Attribute:
    if part.always is not None:
        return Attribute(
            name=part.name,
            form=TEXT,
            default=part.always,
            choices=(part.always,),
            required=part.always != "",
            identifying=True,
            fixed=True,
            says=part.doc,
        )
    return Attribute(
        name=part.name,
        form=TEXT,
        lengths=(1, part.most) if part.most else None,
        choices=part.choices,
        required=True,
        identifying=True,
        says=part.doc,
    )


def _access(kind: Kind) -> DocumentAccess:
    rest = tuple(part.always for part in kind.identity if part.always is not None)
    if kind.form is Form.NAMED:
        return MappingAccess(*kind.at, rest=rest, built_in=kind.built_in)
    if kind.form is Form.RECORDS:
        return RecordsAccess(*kind.at, fields=kind.list_keys, rest=rest)
    return TextsAccess(*kind.at, syntax=kind.syntax)


def object_at(config: RouterConfig, kind: ObjectType, keys: Keys) -> Held:
    """Return what the models hold for an object, None if it or one above it is not there."""
    holder = holding(config, kind, keys[:-1])
    return None if holder is None else kind.store.model(holder, keys[-1])


def holding(config: RouterConfig, kind: ObjectType, above: Keys) -> Held:
    """Return the model that holds the objects of a kind; None if an object above them is not there."""
    holders: list[Held] = [config]
    for each, key in zip(kind.chain[:-1], above, strict=True):
        model = each.store.model(holders[-1 - each.above], key)
        if model is None:
            return None
        holders.append(model)
    return holders[-1 - kind.above]


def keys_in(config: RouterConfig, kind: ObjectType, above: Keys) -> Sequence[Key] | None:
    """Return the keys of all objects of a kind; None if an object above them is not there."""
    holder = holding(config, kind, above)
    return None if holder is None else list(kind.store.keys(holder))


def row_at(config: RouterConfig, kind: ObjectType, keys: Keys) -> Row | None:
    """Return the attributes of an object, secrets left out; None if it is not there."""
    model = object_at(config, kind, keys)
    if model is None:
        return None
    row: Row = dict(kind.known_by(keys))
    for attribute in kind.attributes.values():
        if attribute.write_only or attribute.name in row:
            continue
        row[attribute.name] = (
            attribute.shown(reached(model, attribute.keys)) if attribute.keys else attribute.default
        )
    return row
