"""The clients of a running router as the management API sees them: the ClientSource."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.bridges.link import Link
from vpnrouter.core.guaranteed.spool import Receipt
from vpnrouter.core.guaranteed.terms import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.management import limits
from vpnrouter.server.client_rows import (
    BRIDGE,
    CLIENT,
    NOTHING,
    Counted,
    counted_by,
    holder_of,
    publisher_of,
    status_of,
    subscription_status,
)
from vpnrouter.server.flush import flush_ready
from vpnrouter.server.matching import matching
from vpnrouter.server.profile_rows import Profiles
from vpnrouter.server.session_rows import session_status
from vpnrouter.wire.link import codes
from vpnrouter.wire.mqtt import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.management.client_source import ClientStatus, SubscriptionStatus
    from vpnrouter.management.profile_status import (
        AclProfileStatus,
        ClientProfileStatus,
        ClientUsernameStatus,
    )
    from vpnrouter.management.session_status import MqttSessionStatus
    from vpnrouter.server.bridge_runner import BridgeRunner
    from vpnrouter.server.cleared import ClearedEndpoints

DISCONNECTED: Final = "disconnected by the operator"

PORTION: Final = 1_000
"""Subscriptions that are put in order before the router's other work has its turn."""


@final
class _Synced(Receipt):
    """Ends a wait when what was asked for is synced."""

    def __init__(self) -> None:
        self.done = trio.Event()

    def settled(self, token: int, outcome: int, reason: str) -> None:
        """Wake the request that waits for the sync."""
        self.done.set()


@final
class RouterClients:
    """The ClientSource of a router; `runners` are its own bridges and may change while it runs."""

    def __init__(
        self,
        book: LinkBook,
        runners: Sequence[BridgeRunner],
        cleared: ClearedEndpoints,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._book = book
        self._router = book.router
        self._runners = runners
        self._cleared = cleared
        self._clock_ns = clock_ns
        self._profiles = Profiles(book.router)
        # Names as they stood in the message VPN, and the same in order.
        self._ordered: dict[str, tuple[list[str], list[str]]] = {}
        # What is not shown of the counts, as long as the very connection lasts.
        self._bases: dict[tuple[str, str], tuple[Publisher, Counted]] = {}

    def _find(self, msg_vpn: str, client: str) -> Subscriber | None:
        vpn = self._router.vpns.get(msg_vpn)
        return None if vpn is None else vpn.clients.get(client)

    def _connection(self, client: Subscriber) -> Connection | None:
        if isinstance(client, MqttSession):
            return client.connection
        if not client.is_link:
            return None
        halves = [runner.half for runner in self._runners]
        halves += [each.standby.half for each in self._runners if each.standby is not None]
        links = [half.link for half in halves if half is not None]
        for link in (*self._book.serving.values(), *links):
            if link.client is client:
                return link
        return None

    # -- clients ---------------------------------------------------------------------------------

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            self._ordered.pop(msg_vpn, None)
            return ()
        names = list(vpn.clients)
        known = self._ordered.get(msg_vpn)
        # Comparing ten thousand names takes a tenth of the time that sorting them does.
        if known is None or known[0] != names:
            known = (names, sorted(names))
            self._ordered[msg_vpn] = known
        return known[1]

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """See ClientSource."""
        found = self._find(msg_vpn, client)
        if found is None:
            return None
        connection = self._connection(found)
        base = NOTHING if connection is None else self._base(msg_vpn, client, connection)
        return status_of(msg_vpn, found, connection, base, self._clock_ns())

    def _base(self, msg_vpn: str, client: str, connection: Connection) -> Counted:
        known = self._bases.get((msg_vpn, client))
        if known is None:
            return NOTHING
        publisher, base = known
        if publisher is publisher_of(connection):
            return base
        del self._bases[msg_vpn, client]
        return NOTHING

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        found = self._find(msg_vpn, client)
        return () if found is None else _rows(msg_vpn, found)

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        found = self._find(msg_vpn, client)
        connection = None if found is None else self._connection(found)
        if connection is None:
            return False
        if isinstance(connection, MqttConnection):
            connection.fail(reason.ADMINISTRATIVE_ACTION, DISCONNECTED)
        elif isinstance(connection, Link):
            connection.goodbye(codes.ADMINISTRATIVE, DISCONNECTED)
        flush_ready(self._router.plane)
        return True

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """See ClientSource."""
        found = self._find(msg_vpn, client)
        if found is None:
            return False
        connection = self._connection(found)
        publisher = None if connection is None else publisher_of(connection)
        key = (msg_vpn, client)
        self._bases.pop(key, None)
        if connection is not None and publisher is not None:
            if len(self._bases) >= limits.CLEARED_COUNTS:
                del self._bases[next(iter(self._bases))]
            self._bases[key] = (publisher, counted_by(connection))
        return True

    # -- subscriptions ---------------------------------------------------------------------------

    def subscription_count(self, msg_vpn: str) -> int:
        """See ClientSource."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return 0
        # Subscriptions of the configuration are not counted: they have no bound.
        return vpn.subscription_count + sum(
            one.configured
            for (kind, _), each in vpn.endpoints.items()
            if kind in (QUEUE, TOPIC_ENDPOINT)
            for one in each.subscriptions.values()
        )

    def holders(self, msg_vpn: str) -> Sequence[tuple[str, str]]:
        """See ClientSource."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        clients = vpn.clients
        names = [name for name in self.client_names(msg_vpn) if clients[name].subscriptions]
        bridges = [(BRIDGE, name) for name in names if clients[name].is_link]
        found = [(CLIENT, name) for name in names if not clients[name].is_link]
        ends = [
            holder_of(each)
            for (kind, _), each in vpn.endpoints.items()
            if kind in (QUEUE, TOPIC_ENDPOINT) and each.subscriptions
        ]
        # `bridge` and `client` stand before all kinds of endpoints, and are in order by themselves.
        return [*bridges, *found, *sorted(ends)]

    def held(self, msg_vpn: str, holder: str, name: str) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        found: Subscriber | None
        if holder == "queue":
            found = vpn.endpoints.get((QUEUE, name))
        elif holder == "topic-endpoint":
            found = vpn.endpoints.get((TOPIC_ENDPOINT, name))
        else:
            found = vpn.clients.get(name)
        return () if found is None or holder_of(found)[0] != holder else _rows(msg_vpn, found)

    async def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """See ClientSource."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        found = matching(vpn, topic)
        first: list[tuple[str, str, str, int]] = []
        for begin in range(0, len(found), PORTION):
            await trio.lowlevel.checkpoint()
            end = min(begin + PORTION, len(found))
            first += [
                (*holder_of(found[at].subscriber), found[at].key, at) for at in range(begin, end)
            ]
            first.sort()
            del first[most:]
        return [subscription_status(msg_vpn, found[key[-1]]) for key in first]

    # -- MQTT sessions ---------------------------------------------------------------------------

    def _session(self, msg_vpn: str, client_id: str) -> MqttSession | None:
        found = self._find(msg_vpn, client_id)
        return found if isinstance(found, MqttSession) else None

    def session_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        names = self.client_names(msg_vpn)
        # Only links have names of this kind.
        return [name for name in names if not name.startswith("#")]

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        """See ClientSource."""
        session = self._session(msg_vpn, client_id)
        return None if session is None else session_status(msg_vpn, session, self._cleared)

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        """See ClientSource."""
        session = self._session(msg_vpn, client_id)
        if session is None:
            return False
        if session.endpoint is not None:
            self._cleared.clear(session.endpoint)
        return self.clear_stats(msg_vpn, client_id)

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        """See ClientSource."""
        session = self._session(msg_vpn, client_id)
        if session is None or session.connection is not None:
            return False
        session.end()
        plane = self._router.plane
        flush_ready(plane)
        if plane.spool is not None:
            receipt = _Synced()
            plane.spool.when_synced(receipt, 0)
            if plane.committing is not None:
                plane.committing.step()
            await receipt.done.wait()
        return True

    # -- who clients may be ----------------------------------------------------------------------

    def username_names(self, msg_vpn: str) -> Sequence[str]:
        """See ClientSource."""
        return self._profiles.username_names(msg_vpn)

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        """See ClientSource."""
        return self._profiles.username(msg_vpn, username)

    def client_profiles(self, msg_vpn: str) -> Sequence[ClientProfileStatus]:
        """See ClientSource."""
        return self._profiles.client_profiles(msg_vpn)

    def acl_profiles(self, msg_vpn: str) -> Sequence[AclProfileStatus]:
        """See ClientSource."""
        return self._profiles.acl_profiles(msg_vpn)


def _rows(msg_vpn: str, subscriber: Subscriber) -> list[SubscriptionStatus]:
    held = subscriber.subscriptions
    return [subscription_status(msg_vpn, held[key]) for key in sorted(held)]
