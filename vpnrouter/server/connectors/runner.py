"""Runs one connector: the connection that its links share, and those of links that have their own."""

from __future__ import annotations

import random
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.bridges.status import Rate, RateMeter
from vpnrouter.config.configured_connector import (
    all_links,
    connection_of,
    connections_of,
    needs_no_local,
)
from vpnrouter.connectors.machine import State
from vpnrouter.connectors.status import ConnectorLinkLook, ConnectorLook
from vpnrouter.events.table import CONNECTOR_PAUSED, CONNECTOR_RESUMED
from vpnrouter.server.connectors.connection_runner import ConnectionRunner
from vpnrouter.server.connectors.provider_logins import ProviderLogins
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.reactor import flush_ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vpnrouter.config.connector import Connector, ConnectorLink
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.link_state import LinkCounters
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.core.router import Router
    from vpnrouter.server.net.dial import Dialler
    from vpnrouter.settings.message_vpn import TlsServerCert

WORST_FIRST: Final = (
    State.STOPPED,
    State.WAITING,
    State.CONNECTING,
    State.LOGGING_IN,
    State.DISABLED,
    State.IDLE,
    State.UP,
)
"""Of the states of its connections a connector shows the one that comes first here."""

WHOLE: Final = ""
"""Instead of the name of a link that was changed: everything was."""


@final
class ConnectorRunner:
    """One connector of the configuration. `logins` has the sessions of connections that are not there any more; `draw`
    gives random numbers in [0, 1), `clock` nanoseconds of monotonic time.
    """

    def __init__(
        self,
        router: Router,
        dialler: Dialler,
        vpn_name: str,
        name: str,
        connector: Connector,
        server_cert: TlsServerCert,
        logins: ProviderLogins | None = None,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.router = router
        self.vpn = router.vpns[vpn_name]
        self.name = name
        self.configured = connector
        self._logins = ProviderLogins({}) if logins is None else logins
        self._counters: dict[str, LinkCounters] = {}
        self._meter = RateMeter()
        self._meters: dict[str, RateMeter] = {}
        self._server_cert = server_cert
        self._dialler = dialler
        self._draw = draw
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._removed = trio.Event()
        # By the name of the link that has it to itself, and the shared one by "".
        self.connections = {link: self._connection(link) for link in connections_of(connector)}

    def _connection(self, link: str) -> ConnectionRunner:
        place = self.router.name, self.vpn.name, self.name
        session, after = self._logins.inherit(place, self.configured, link)
        return ConnectionRunner(
            self.router,
            self._dialler,
            self.vpn.name,
            self.name,
            link=link,
            connector=self.configured,
            server_cert=self._server_cert,
            counters=self._counters,
            session=session,
            after=after,
            draw=self._draw,
            clock=self._clock,
        )

    # -- changes ---------------------------------------------------------------------------------

    def change(
        self, connector: Connector, server_cert: TlsServerCert, changed: Iterable[str] = (WHOLE,)
    ) -> None:
        """Go on under a changed configuration. The connections of the links that are `changed`, by name, are made anew,
        WHOLE for all; those of the others stay, as where only what is paused has changed.
        """
        before = self.configured
        self._tell_pauses(before, connector)
        self.configured = connector
        self._server_cert = server_cert
        changed = set(changed)
        anew = {connection_of(each, link) for each in (before, connector) for link in changed}
        if WHOLE in changed or needs_no_local(before) is not needs_no_local(connector):
            anew |= self.connections.keys()
        wanted = connections_of(connector)
        for link in [link for link in self.connections if link not in wanted]:
            self._logins.leave(self.connections.pop(link))
        for link, connection in self.connections.items():
            if link in anew:
                connection.begin_anew(connector, server_cert)
            else:
                connection.take(connector)
        self._forget_links()
        begun = {link: self._connection(link) for link in wanted if link not in self.connections}
        self.connections = {link: self.connections.get(link) or begun[link] for link in wanted}
        if self._nursery is not None:
            for connection in begun.values():
                self._nursery.start_soon(connection.run)
        flush_ready(self.vpn.context)

    def _forget_links(self) -> None:
        """Count nothing more for links that are not configured any more: one of that name begins anew."""
        there = all_links(self.configured)
        for name in [name for name in self._counters if name not in there]:
            del self._counters[name]
            self._meters.pop(name, None)

    def has(self, link: str) -> bool:
        """Return whether the connector has this link."""
        return link in all_links(self.configured)

    def reconnect(self, link: str = WHOLE) -> None:
        """Connect anew, beginning with the first address: the connection of `link`, or all."""
        for which, connection in self.connections.items():
            if link == WHOLE or which == connection_of(self.configured, link):
                connection.begin_anew(self.configured, self._server_cert)

    def remove(self) -> None:
        """End for good: the connector was removed from the configuration, and what was kept for it goes."""
        for connection in self.connections.values():
            self._logins.leave(connection)
        self._removed.set()

    def leave(self, why: str) -> None:
        """Log out, or give up the attempts."""
        for connection in self.connections.values():
            connection.leave(why)

    async def run(self) -> None:
        """Keep the connector connected until cancelled or removed."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for connection in self.connections.values():
                nursery.start_soon(connection.run)
            await self._removed.wait()
            self._nursery = None

    # -- for monitoring --------------------------------------------------------------------------

    @property
    def links(self) -> dict[str, InwardLink | OutwardLink]:
        """The links by name, in the order of the configuration."""
        found = {
            name: link
            for connection in self.connections.values()
            for name, link in connection.links.all.items()
        }
        return {name: found[name] for name in all_links(self.configured)}

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from, at `now_ns` (monotonic)."""
        for connection in self.connections.values():
            for name, link in connection.links.all.items():
                counters = link.counters
                meter = self._meters.setdefault(name, RateMeter())
                meter.sample(now_ns, counters.messages, counters.bytes_)
            connection.rest(now_ns)
        self._meter.sample(now_ns, *self._carried())

    def _carried(self) -> tuple[int, int, int, int]:
        """Return messages and bytes that came in, messages that were sent and accepted, and bytes taken out."""
        each = [connection.carried() for connection in self.connections.values()]
        rx_msgs, rx_bytes, tx_msgs, tx_bytes = map(sum, zip(*each, strict=True))
        return rx_msgs, rx_bytes, tx_msgs, tx_bytes

    def look(self) -> ConnectorLook:
        """Return what monitoring shows of the connector and of its links."""
        connections = list(self.connections.values())
        shown = min(connections, key=lambda each: WORST_FIRST.index(each.machine.state))
        links = self.links
        clients = [each.client for each in connections if each.client is not None]
        return ConnectorLook(
            msg_vpn=self.vpn.name,
            name=self.name,
            written=self.configured,
            machine=shown.machine,
            provider=shown.client,
            links=[
                self._link(name, link, links[name])
                for name, link in all_links(self.configured).items()
            ],
            carried=self._carried(),
            unclaimed=sum(count for client in clients for count in client.unclaimed.values()),
            memory_bytes=sum(each.memory.held for each in connections),
            rates=self._meter.bridge_rates().attributes(),
            now_ns=self._clock(),
        )

    def _link(
        self, name: str, link: ConnectorLink, running: InwardLink | OutwardLink
    ) -> ConnectorLinkLook:
        meter = self._meters.get(name)
        msgs, size = (() if meter is None else meter.rates()) or (Rate(), Rate())
        connection = self.connections[connection_of(self.configured, name)]
        return ConnectorLinkLook(
            msg_vpn=self.vpn.name,
            connector=self.name,
            name=name,
            written=link,
            running=running,
            machine=connection.machine,
            rates={
                "average_byte_rate": size.average,
                "average_msg_rate": msgs.average,
                "byte_rate": size.current,
                "msg_rate": msgs.current,
            },
            now_ns=self._clock(),
        )

    def _tell_pauses(self, before: Connector, after: Connector) -> None:
        """Tell what is paused now and was not before, and what goes on."""
        switches = [("", before.paused, after.paused)]
        switches += [
            (f"link {name} ", link.paused, after.links[name].paused)
            for name, link in before.links.items()
            if name in after.links
        ]
        for which, was_paused, paused in switches:
            if paused is not was_paused:
                kind = CONNECTOR_PAUSED if paused else CONNECTOR_RESUMED
                said = f"{which}{'is paused' if paused else 'goes on'}"
                text = f"VPN {self.vpn.name} connector {self.name} {said}"
                raise_event_in(self.vpn.context, kind, text, self.vpn.name, self.name)
