"""Declares what `show` can show, and requests its rows from a router."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from vpnrouter.errors import OperationError
from vpnrouter.management.answers.conditions import matches
from vpnrouter.management.client import ManagementClient
from vpnrouter.settings.kinds import KINDS, Kind, plain_kinds


class What(StrEnum):
    """What can be shown."""

    VPNS = "vpns"
    CLIENTS = "clients"
    SUBSCRIPTIONS = "subscriptions"
    QUEUES = "queues"
    BRIDGES = "bridges"
    CONNECTORS = "connectors"
    TOPOLOGY = "topology"
    EVENTS = "events"
    # Kinds that are shown in no way of their own.
    _ignore_ = ["each"]  # noqa: RUF012 - Enum wants a list
    for each in plain_kinds():
        locals()[each.key.upper()] = each.word

    @property
    def kind(self) -> Kind | None:
        """The kind of configured objects that it is, None for what is not configured."""
        return _KINDS.get(self.value)

    @property
    def one(self) -> str:
        """The noun for one of them."""
        return self.value.removesuffix("s") if self.kind is None else self.kind.one

    @property
    def key(self) -> str:
        """The attribute that holds the name of one."""
        if self.kind is not None:
            return self.kind.identity[0].name
        return _KEYS.get(self, f"{self.one}Name")


_KINDS: Final[dict[str, Kind]] = {
    kind.word: kind for kind in KINDS if kind.tables or kind.has_pages
}

_KEYS: Final = {What.SUBSCRIPTIONS: "name", What.EVENTS: "event"}


class RowQuery(NamedTuple):
    """Which rows: of these names (`*` stands for any characters), of this VPN, at most so many (0: all)."""

    what: What
    name: str = ""
    msg_vpn: str = ""
    matching: str = ""
    most: int = 0


Row = dict[str, Any]


EVENTS: Final = 20
"""Events that are shown without --count."""


def rows_of(client: ManagementClient, query: RowQuery) -> Iterator[Row]:
    """Yield the rows, page by page. Raises OperationError where a name was given and nothing has it."""
    found = _found(client, query)
    yield from islice(found, query.most or None)


def _found(client: ManagementClient, query: RowQuery) -> Iterator[Row]:
    what, name = query.what, query.name
    names: list[str] = []
    found_any = False
    for row in _rows(client, query):
        key = row[what.key]
        if not name or matches(name, key):
            found_any = True
            yield row
        elif what.kind is not None:
            # There are so few that the error can list them.
            names.append(key)
    if name and not found_any:
        where = f" in message VPN {query.msg_vpn}" if query.msg_vpn and what != What.VPNS else ""
        have = ", ".join(dict.fromkeys(names)) or "none"
        known = "" if what.kind is None else f"; there are: {have}"
        kind = "subscription of" if what is What.SUBSCRIPTIONS else what.one
        raise OperationError(f"there is no {kind} {name}{where}{known}")


def _rows(client: ManagementClient, query: RowQuery) -> Iterable[Row]:
    msg_vpn = query.msg_vpn
    kind = query.what.kind
    if kind is not None and kind.is_of_vpn:
        return client.objects(kind.collection, msg_vpn)
    match query.what:
        case What.VPNS:
            return [row for row in client.msg_vpns() if msg_vpn in {"", row["msgVpnName"]}]
        case What.CLIENTS:
            return client.clients(msg_vpn, limit=_count(query), where=_where(query))
        case What.SUBSCRIPTIONS if query.matching:
            return _matching(client, query)
        case What.SUBSCRIPTIONS:
            return client.subscriptions(msg_vpn, limit=_count(query), where=_where(query))
        case _:
            return client.events(query.most or EVENTS, msg_vpn=msg_vpn)


def _matching(client: ManagementClient, query: RowQuery) -> Iterator[Row]:
    names = [query.msg_vpn] if query.msg_vpn else [row["msgVpnName"] for row in client.msg_vpns()]
    for msg_vpn in names:
        yield from client.matches(msg_vpn, query.matching)


def _where(query: RowQuery) -> str:
    """The name as a condition that the router looks at; "" for what the condition has no form for."""
    if not query.name or re.fullmatch(r"\*+", query.name) or "," in query.name:
        return ""
    return f"{query.what.key}=={query.name}"


def _count(query: RowQuery) -> int | None:
    """How many to ask for; None where some of them may not fit the name."""
    if query.name and not _where(query):
        return None
    return query.most or None
