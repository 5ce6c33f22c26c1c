"""Makes the pages of the API for kinds of objects that have none of their own: lists, and one object.

What is shown of a kind is its status class, or what is configured where it names none. Actions, and objects below
others, are for pages of its own.
"""

from __future__ import annotations

import re
from dataclasses import make_dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter

from vpnrouter.management.collections import (
    Collection,
    Found,
    name_in_path,
    serve,
    serve_all,
)
from vpnrouter.management.config.attribute import NUMBER, TEXT, TRUTH, Attribute
from vpnrouter.management.config.document_access import reached
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.settings.kinds import KINDS, Kind, loaded
from vpnrouter.settings.shown import fill, read

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from vpnrouter.management.api_context import ApiContext

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


@cache
def status_of(kind: Kind) -> type[DataclassInstance]:
    """Return the class that declares what is shown of one object of a kind."""
    if kind.status:
        found: type[DataclassInstance] = loaded(kind.status)
        return found
    fields: list[tuple[str, type, Any]] = [
        ("msg_vpn_name", str, read(lambda one: str(one.path[1]), "")),
        (_snake(kind.identity[0].name), str, read(lambda one: str(one.path[-1]), "")),
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


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _found(kind: Kind, context: ApiContext, msg_vpn: str) -> Found:
    objects = context.edge.objects.get(kind)
    here = {name: one for vpn, name, one in (objects.items() if objects else ()) if vpn == msg_vpn}
    of = status_of(kind)
    return Found(lambda: here, lambda name: fill(of, here[name]) if name in here else None)


def _made(kind: Kind) -> APIRouter:
    routes = APIRouter()
    vowel = kind.one[0] in "aeiouAEIOU"
    collection = Collection(
        path=kind.collection,
        tag=kind.singular,
        key=kind.identity[0].name,
        kind=status_of(kind),
        one=kind.one,
        many=f"{kind.one}s",
        article="an" if vowel else "a",
        description=f"The {kind.one}s of a message VPN.",
        open=partial(_found, kind),
    )
    serve(routes, collection, name_in_path(collection))
    serve_all(routes, collection, f"The {kind.one}s of all message VPNs that the user sees.")
    return routes
