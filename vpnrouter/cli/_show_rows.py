"""Declares what `show` can show, and requests its rows from a router."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient
from vpnrouter.management.responses import matches


class What(StrEnum):
    """What can be shown."""

    VPNS = "vpns"
    CLIENTS = "clients"
    SUBSCRIPTIONS = "subscriptions"
    QUEUES = "queues"
    BRIDGES = "bridges"
    TOPOLOGY = "topology"
    EVENTS = "events"

    @property
    def one(self) -> str:
        """What one of them is called."""
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


SMALL: Final = frozenset({What.VPNS, What.BRIDGES, What.QUEUES})
"""Few enough that all names can be told to somebody who mistyped one."""

EVENTS: Final = 20
"""Events that are shown without --count."""


def rows_of(client: ManagementClient, asked: RowQuery) -> Iterator[Row]:
    """The rows, as they are taken. Raises OperationError where a name was given and nothing has it."""
    found = _found(client, asked)
    yield from islice(found, asked.most or None)


def _found(client: ManagementClient, asked: RowQuery) -> Iterator[Row]:
    what, name = asked.what, asked.name
    seen: list[str] = []
    some = False
    for row in _rows(client, asked):
        key = row[what.key]
        if not name or matches(name, key):
            some = True
            yield row
        elif what in SMALL:
            seen.append(key)
    if name and not some:
        where = f" in message VPN {asked.msg_vpn}" if asked.msg_vpn and what != What.VPNS else ""
        have = ", ".join(dict.fromkeys(seen)) or "none"
        said = f"; there are: {have}" if what in SMALL else ""
        kind = "subscription of" if what is What.SUBSCRIPTIONS else what.one
        raise OperationError(f"there is no {kind} {name}{where}{said}")


def _rows(client: ManagementClient, asked: RowQuery) -> Iterable[Row]:
    msg_vpn = asked.msg_vpn
    match asked.what:
        case What.VPNS:
            return [row for row in client.msg_vpns() if msg_vpn in {"", row["msgVpnName"]}]
        case What.CLIENTS:
            return client.clients(msg_vpn, wanted=_wanted(asked), where=_where(asked))
        case What.SUBSCRIPTIONS if asked.matching:
            return _matching(client, asked)
        case What.SUBSCRIPTIONS:
            return client.subscriptions(msg_vpn, wanted=_wanted(asked), where=_where(asked))
        case What.QUEUES:
            return client.queues(msg_vpn)
        case What.EVENTS:
            return client.events(asked.most or EVENTS, msg_vpn=msg_vpn)
        case _:
            return client.bridges(msg_vpn)


def _matching(client: ManagementClient, asked: RowQuery) -> Iterator[Row]:
    names = [asked.msg_vpn] if asked.msg_vpn else [row["msgVpnName"] for row in client.msg_vpns()]
    for msg_vpn in names:
        yield from client.matches(msg_vpn, asked.matching)


def _where(asked: RowQuery) -> str:
    """The name as a condition that the router looks at; "" for what the condition has no form for."""
    if not asked.name or re.fullmatch(r"\*+", asked.name) or "," in asked.name:
        return ""
    return f"{asked.what.key}=={asked.name}"


def _wanted(asked: RowQuery) -> int | None:
    """How many to ask for; None where some of them may not fit the name."""
    if asked.name and not _where(asked):
        return None
    return asked.most or None
