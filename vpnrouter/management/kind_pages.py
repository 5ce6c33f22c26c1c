"""Makes the pages of the API for kinds of objects that have none of their own: lists, and one object.

What is shown of a kind is its status class, or what is configured where it names none. Of the objects below one, the
status has a list under their key.
"""

from collections.abc import Sequence
from dataclasses import make_dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter

from vpnrouter.management.answers.rows import Row, row_of
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    Children,
    Collection,
    Found,
    name_in_path,
    serve,
    serve_all,
    serve_children,
)
from vpnrouter.management.config.attribute import NUMBER, TEXT, TRUTH, Attribute
from vpnrouter.management.config.document_access import reached
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.settings.kinds import KINDS, Form, Kind, children_of, loaded
from vpnrouter.settings.shown import fill, read
from vpnrouter.text import snake

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SHOWN: Final[dict[str, type]] = {TEXT: str, NUMBER: int, TRUTH: bool}
"""The types of attributes that monitoring shows, by their forms."""


def pages_of(kind: Kind) -> tuple[APIRouter, ...]:
    """Return the pages of a kind: its own, or those that are made of it."""
    if kind.pages:
        found: tuple[APIRouter, ...] = loaded(kind.pages)
        return found
    return (_made(kind),) if kind.has_pages else ()


def all_pages() -> list[APIRouter]:
    """Return the pages of all kinds, each once."""
    return list({id(page): page for kind in KINDS for page in pages_of(kind)}.values())


def running_in(kind: Kind, context: ApiContext, msg_vpn: str) -> dict[str, Any]:
    """Return the running objects of a message VPN by name."""
    objects = context.edge.objects.get(kind)
    found = () if objects is None else objects.items()
    return {name: one for vpn, name, one in found if vpn == msg_vpn}


@cache
def status_of(kind: Kind) -> "type[DataclassInstance]":
    """Return the class that declares what is shown of one object of a kind."""
    if kind.status:
        found: type[DataclassInstance] = loaded(kind.status)
        return found
    fields: list[tuple[str, type, Any]] = [
        ("msg_vpn_name", str, read(lambda one: str(one.path[1]), "")),
        (snake(kind.identity[0].name), str, read(lambda one: str(one.path[-1]), "")),
    ]
    fields += [
        (
            "_".join(each.keys),
            _SHOWN[each.form],
            read(partial(_configured, each), _SHOWN[each.form]()),
        )
        for each in TYPES[kind].values
        if each.form in _SHOWN and not each.write_only
    ]
    return make_dataclass(
        f"{kind.singular[0].upper()}{kind.singular[1:]}Status", fields, frozen=True
    )


def _configured(attribute: Attribute, one: Any) -> Any:  # noqa: ANN401 - a value of whichever attribute
    return attribute.shown(reached(one.settings, attribute.keys))


def _found(kind: Kind, context: ApiContext, msg_vpn: str) -> Found:
    here = running_in(kind, context, msg_vpn)

    def status(name: str) -> "DataclassInstance | None":
        one = here.get(name)
        return None if one is None else fill(status_of(kind), context.edge.objects[kind].look(one))

    return Found(lambda: here, status)


def _made(kind: Kind) -> APIRouter:
    routes = APIRouter()
    below = [each for each in children_of(kind) if each.form is Form.NAMED and each.status]
    collection = Collection(
        path=kind.collection,
        tag=kind.singular,
        key=kind.identity[0].name,
        kind=status_of(kind),
        one=kind.one,
        many=f"{kind.one}s",
        article="an" if kind.one[0] in "aeiouAEIOU" else "a",
        description=kind.about or f"The {kind.one}s of a message VPN.",
        open=partial(_found, kind),
        children=tuple(each.collection for each in below),
    )
    named = name_in_path(collection)
    serve(routes, collection, named)
    for each in below:
        serve_children(routes, collection, named, _children(kind, each))

    def row(status: "DataclassInstance") -> Row:
        return row_of(status) | {
            each.collection: [row_of(one) for one in getattr(status, each.key)] for each in below
        }

    with_those = "".join(f", each with its `{each.collection}`" for each in below)
    described = f"The {kind.one}s of all message VPNs that the user sees{with_those}."
    serve_all(routes, collection, described, row)
    return routes


def _children(kind: Kind, below: Kind) -> Children:
    def found(context: ApiContext, msg_vpn: str, name: str) -> "Sequence[DataclassInstance]":
        status = _found(kind, context, msg_vpn).status(name)
        return () if status is None else list(getattr(status, below.key))

    attribute = snake(below.identity[0].name)
    words = below.key.replace("_", " ")
    return Children(
        path=below.collection,
        kind=status_of(below),
        many=f"the {words} of a {kind.one}",
        name=f"{kind.section}_{below.key}",
        description=below.about or f"The {words} of a {kind.one}.",
        found=found,
        key=lambda one: (getattr(one, attribute),),
    )
