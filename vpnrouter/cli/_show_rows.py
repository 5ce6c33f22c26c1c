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

    @property
    def one(self) -> str:
        """The noun for one of them."""
        return "message VPN" if self is What.VPNS else self.value.removesuffix("s")

    @property
    def key(self) -> str:
        """The attribute that holds the name of one."""
        return _KEYS.get(self, f"{self.one}Name")


_KEYS: Final = {What.VPNS: "msgVpnName", What.SUBSCRIPTIONS: "name", What.EVENTS: "event"}


class RowQuery(NamedTuple):
    """Which rows: of these names (`*` stands for any characters), of this VPN, at most so many (0: all)."""

    what: What
    name: str = ""
    msg_vpn: str = ""
    matching: str = ""
    most: int = 0


Row = dict[str, Any]


SMALL: Final = frozenset({What.VPNS, What.BRIDGES, What.CONNECTORS, What.QUEUES})
"""Kinds with so few objects that an error for a wrong name lists all names."""

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
        elif what in SMALL:
            names.append(key)
    if name and not found_any:
        where = f" in message VPN {query.msg_vpn}" if query.msg_vpn and what != What.VPNS else ""
        have = ", ".join(dict.fromkeys(names)) or "none"
        known = f"; there are: {have}" if what in SMALL else ""
        kind = "subscription of" if what is What.SUBSCRIPTIONS else what.one
        raise OperationError(f"there is no {kind} {name}{where}{known}")


def _rows(client: ManagementClient, query: RowQuery) -> Iterable[Row]:
    msg_vpn = query.msg_vpn
    match query.what:
        case What.VPNS:
            return [row for row in client.msg_vpns() if msg_vpn in {"", row["msgVpnName"]}]
        case What.CLIENTS:
            return client.clients(msg_vpn, limit=_count(query), where=_where(query))
        case What.SUBSCRIPTIONS if query.matching:
            return _matching(client, query)
        case What.SUBSCRIPTIONS:
            return client.subscriptions(msg_vpn, limit=_count(query), where=_where(query))
        case What.QUEUES:
            return client.queues(msg_vpn)
        case What.CONNECTORS:
            return client.connectors(msg_vpn)
        case What.EVENTS:
            return client.events(query.most or EVENTS, msg_vpn=msg_vpn)
        case _:
            return client.bridges(msg_vpn)


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
