"""Runs one connection of a connector as a trio task: dials the provider, and performs what its machine decides."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, final

import trio
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.config.configured_connector import (
    attempts_of,
    links_of,
    login_of,
    provider_settings_of,
    session_name,
)
from vpnrouter.connectors.amqp.client import AmqpProvider
from vpnrouter.connectors.connector_links import ConnectorLinks
from vpnrouter.connectors.http.provider import HttpProvider
from vpnrouter.connectors.link_state import LinkCounters, LinkState
from vpnrouter.connectors.machine import Machine, State
from vpnrouter.connectors.mqtt.client import LEVELS, MqttClient
from vpnrouter.connectors.provider import ConnectorCallbacks
from vpnrouter.connectors.provider_session import ProviderSession
from vpnrouter.core.fault_barrier import CONNECTOR
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.errors import OperationError
from vpnrouter.events.table import (
    CONNECTOR_DOWN,
    CONNECTOR_LINK_HELD,
    CONNECTOR_LINK_REFUSED,
    CONNECTOR_LINK_RELEASED,
    CONNECTOR_MESSAGE_REFUSED,
    CONNECTOR_MESSAGE_STAYS,
    CONNECTOR_UP,
)
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.dial import Proxy, TlsSettings, WebSocketTarget
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.settings.connector import AMQP, HTTP, MQTT, parse_proxy, parse_url
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vpnrouter.config.connector import Connector
    from vpnrouter.connectors.provider import Loss, Provider
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.router import Router
    from vpnrouter.events.table import EventType
    from vpnrouter.server.net.dial import Dialler, Transport
    from vpnrouter.settings.message_vpn import TlsServerCert


def _proxy_of(connector: Connector) -> Proxy | None:
    written = connector.provider.proxy
    if written.url is None:
        return None
    url = parse_proxy(written.url)
    password = "" if written.password is None else written.password.reveal()
    return Proxy(url.host, url.port, written.url, written.username or "", password)


QUICK_RETRIES: Final = 3
"""Times in a row that a connection which the provider has ended is made again at once: it may have ended it for a
message, and what is behind that is not to wait."""


@final
class ConnectionRunner(ConnectorCallbacks):
    """One connection of the connector `name`: that of the links that share one (`link` ""), or of a link that has its
    own. `session` is what the store has of it, None for nothing; `after` is one that was removed and had the same
    login: it ends the session at the provider first. `counters` has those of all links of the connector by name;
    `draw` gives random numbers in [0, 1), `clock` nanoseconds of monotonic time.

    What its links take out of topics is kept from now on, whether the provider is there or not.
    """

    def __init__(
        self,
        router: Router,
        dialler: Dialler,
        vpn_name: str,
        name: str,
        link: str,
        connector: Connector,
        server_cert: TlsServerCert,
        counters: dict[str, LinkCounters],
        session: ProviderSession | None = None,
        after: ConnectionRunner | None = None,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.router = router
        self.vpn = router.vpns[vpn_name]
        self.name = name
        self.link = link
        self.configured = connector
        client_name = session_name(name, link)
        spool = spool_of(self.vpn.context)
        self.session = session or ProviderSession(spool, vpn_name, client_name)
        home = self.vpn.memory.of(CONNECTOR_PREFIX + name)
        self.memory = MemoryAccount(client_name, limits.CLIENT_MEMORY, home)
        self.client: Provider | None = None
        self._counters = counters
        self._states: dict[str, LinkState] = {}
        self._server_cert = server_cert
        self._dialler = dialler
        self._draw = draw
        self._clock = clock
        self._version = 0
        self._quick = 0
        self._crossed = 0
        self._leaving = False
        self._removed = False
        self._bequeathed = False
        self._bequest: ProviderSession | None = None
        self._after = after
        # For connections beside the first one, while the task runs.
        self._nursery: trio.Nursery | None = None
        self.ended = trio.Event()
        self._wake = trio.Event()
        self._scope = trio.CancelScope()
        self.machine = Machine(attempts_of(connector, vpn_enabled=self.vpn.enabled), clock())
        self.links = self._make_links()

    def _make_links(self) -> ConnectorLinks:
        self._states.clear()
        terms = links_of(self.configured, self.link)
        return ConnectorLinks(self, self.vpn, self.name, terms, self._counters, self.link)

    # -- changes ---------------------------------------------------------------------------------

    def take(self, connector: Connector) -> None:
        """Take a changed configuration, in which no more than what is paused is another for this connection."""
        self.configured = connector
        self.links.pause(links_of(connector, self.link))

    def begin_anew(self, connector: Connector, server_cert: TlsServerCert) -> None:
        """Go on under a changed configuration, or the same one, over a new connection."""
        self.configured = connector
        self._server_cert = server_cert
        self.leave("the connector was changed")
        self._version = 0
        self.links.close()
        self.links = self._make_links()
        self.machine.configure(attempts_of(connector, vpn_enabled=self.vpn.enabled), self._clock())
        self._wake.set()

    @property
    def login(self) -> tuple[str, str]:
        """The provider, and the client id there."""
        return login_of(self.router.name, self.vpn.name, self.name, self.configured, self.link)

    def remove(self, *, bequeaths: bool = False) -> None:
        """End for good: the configuration has it no more, and what was kept for it goes.

        The session at the provider is ended too, if that can be reached now; or it is left (`bequeaths`) to another
        connection that has the same login.
        """
        self._removed = True
        self._bequeathed = bequeaths
        self.leave("the connector was removed")
        self.links.close()
        if bequeaths:
            self._bequest = self.session
        else:
            self.session.leave()
        self._wake.set()

    def bequest(self) -> ProviderSession | None:
        """Return the session that it leaves to another connection, once; None for none."""
        session, self._bequest = self._bequest, None
        return session

    def leave(self, why: str) -> None:
        """Log out, or give up the attempt."""
        client = self.client
        self._scope.cancel()
        if client is not None:
            self._leaving = True
            client.end(why)
            self._leaving = False
            flush_ready(self.vpn.context)

    # -- the task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep it connected until cancelled or removed."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await self._run()
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()

    async def _run(self) -> None:
        try:
            if self._after is not None:
                await self._after.ended.wait()
                self._after = None
            while not self._removed:
                self._dialler.set_clocks()
                if self.machine.begin(self._clock()) or self.machine.due(self._clock()):
                    await self._dial()
                    continue
                await self._pause()
            await self._end_session()
        finally:
            self.leave("the router stops")
            self.ended.set()

    async def _end_session(self) -> None:
        """Have the provider forget the session of a connector that was removed, with what waits for it there."""
        urls = self.machine.attempts.urls
        keeps = bool(urls) and (urls[0].protocol == MQTT or bool(self.session.asked))
        if self.configured.enabled and keeps and not self._bequeathed:
            if self.session.releasing:
                # It has messages that are not here any more, and gives them out when they are released.
                await self._say_goodbye()
                self.session.releasing.clear()
            await self._say_goodbye()
        self.memory.end()

    async def _say_goodbye(self) -> None:
        with trio.move_on_after(limits.CONNECT_TIMEOUT_S), suppress(OperationError):
            await self._guarded(self._log_in_and_out)
        self.leave("the connector was removed")

    async def _log_in_and_out(self) -> None:
        await self._open(leaving=True)
        while self.client is not None:
            self._wake = trio.Event()
            await self._wake.wait()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> str:
        """Do `work`. Returns the id of a fault of the router, "" for none. Raises OperationError as the work does."""
        try:
            await work()
        except OperationError:
            raise
        except Exception as error:  # noqa: BLE001 - given to the barrier
            barrier = self.vpn.context.barrier
            cost = "the connector begins anew"
            return barrier.caught(error, CONNECTOR, self.name, self.vpn.name, cost)
        return ""

    async def _pause(self) -> None:
        wake_ns = self.machine.wake_ns
        limit_s = float("inf") if wake_ns < 0 else max(0.0, (wake_ns - self._clock()) / SECOND_NS)
        with trio.move_on_after(limit_s):
            await self._wake.wait()
        self._wake = trio.Event()

    async def _dial(self) -> None:
        """Connect and send CONNECT; what follows comes by the callbacks."""
        machine = self.machine
        self._scope = trio.CancelScope()
        with self._scope:
            try:
                fault = await self._guarded(self._open)
            except OperationError as error:
                self._attempt_failed(str(error))
                return
            if fault and machine.state not in (State.WAITING, State.STOPPED, State.DISABLED):
                self._attempt_failed(f"fault {fault} of the router")

    def _attempt_failed(self, why: str) -> None:
        self.links.attempt_failed()
        self._quick = 0
        self._failed(why)

    async def _open(self, *, leaving: bool = False) -> None:
        machine = self.machine
        settings = provider_settings_of(
            self.router.name, self.vpn.name, self.name, self.configured, self.link
        )
        transport = await self._reach()
        try:
            self._dialler.set_clocks()
            if not leaving:
                machine.reached(self._clock())
            client = self._new_client(settings, leaving=leaving)
            self.client = client
            connection = client.added()
            client.begin()
            self._dialler.serve(transport, connection)
        except BaseException:
            self.client = None
            self._dialler.drop(transport)
            raise
        flush_ready(self.vpn.context)

    async def _reach(self) -> Transport:
        """Return a connection to the address in use. Raises OperationError."""
        url = self.machine.url
        configured = self.configured.provider
        tls = None
        if url.tls:
            name = configured.tls.server_name or ""
            certificates = self._server_cert, configured.client_cert
            tls = TlsSettings(*certificates, name, alpn=configured.tls.alpn)
        written = next(
            text
            for text in (configured.url, *configured.failover_urls)
            if text and parse_url(text) == url
        )
        return await self._dialler.open(
            url.host,
            url.port,
            tls,
            lambda: None,
            (self.vpn.name, written),
            configured.interface or "",
            _proxy_of(self.configured),
            WebSocketTarget(url.authority, url.base or "/", AMQP) if url.websocket else None,
        )

    @override
    def more_connections(self, provider: Provider, count: int) -> None:
        if self._nursery is not None:
            for _ in range(count):
                self._nursery.start_soon(self._dial_more, provider)

    async def _dial_more(self, provider: Provider) -> None:
        """Make one more connection to a provider that takes several."""
        try:
            fault = await self._guarded(partial(self._add, provider))
            why = f"fault {fault} of the router" if fault else ""
        except OperationError as error:
            why = str(error)
        if why and provider is self.client:
            self._dialler.set_clocks()
            provider.not_reached(why)
            flush_ready(self.vpn.context)

    async def _add(self, provider: Provider) -> None:
        transport = await self._reach()
        if provider is not self.client:
            self._dialler.drop(transport)
            return
        self._dialler.set_clocks()
        connection = provider.added()
        try:
            self._dialler.serve(transport, connection)
        except BaseException:
            self._dialler.drop(transport)
            connection.lost("it could not be served")
            raise
        flush_ready(self.vpn.context)

    def _new_client(self, settings: ProviderSettings, *, leaving: bool) -> Provider:
        """Return a connection that speaks what the address in use says."""
        if self.machine.url.protocol == AMQP:
            return AmqpProvider(
                owner=self,
                vpn=self.vpn,
                peer=str(self.machine.url),
                host=self.machine.url.host,
                session=self.session,
                home=self.memory,
                inward=self.links.inward,
                outward=self.links.outward,
                settings=settings,
                derivations=self.router.derivations,
                leaving=leaving,
            )
        if self.machine.url.protocol == HTTP:
            return HttpProvider(
                owner=self,
                vpn=self.vpn,
                peer=str(self.machine.url),
                authority=self.machine.url.authority,
                publisher=self.links.publisher,
                home=self.memory,
                settings=settings,
            )
        return MqttClient(
            owner=self,
            vpn=self.vpn,
            peer=str(self.machine.url),
            session=self.session,
            home=self.memory,
            inward=self.links.inward,
            outward=self.links.outward,
            settings=settings,
            level=self._level(),
            beside=[
                link
                for link in links_of(self.configured)
                if link.enabled and not (link.inbound or link.name in self.links.all)
            ],
            leaving=leaving,
        )

    def _level(self) -> int:
        """Return the version to speak: that of the configuration, else the one that worked last, else the next one."""
        wanted = self.configured.provider.mqtt_version
        if wanted == "5":
            return LEVELS[0]
        first = 1 if wanted == "3.1.1" else 0
        known = self.session.level
        order = list(LEVELS[first:])
        if known in order:
            order.remove(known)
            order.insert(0, known)
        return order[self._version % len(order)]

    # -- what the connection tells ---------------------------------------------------------------

    @override
    def joined(self, provider: Provider) -> None:
        if provider is not self.client:
            return
        self._version = 0
        self.machine.joined(self._clock())
        self._tell(CONNECTOR_UP, f"up: {self.machine.url}, {provider.protocol}")
        self.links.connected(provider)

    @override
    def lost(self, provider: Provider, loss: Loss) -> None:
        if provider is not self.client:
            return
        self.client = None
        self.links.disconnected(loss)
        if self._removed or self._leaving:
            self._wake.set()
            return
        if loss.other_version and self.configured.provider.mqtt_version != "5":
            self._version += 1
            if self._version % len(LEVELS):
                # Another version at once: the provider is there.
                self.machine.again(self._clock())
                self._wake.set()
                return
        self._quick = self._quick + 1 if loss.message_id or loss.asked else 0
        if loss.renews or 0 < self._quick <= QUICK_RETRIES:
            self.machine.again(self._clock())
            self._wake.set()
            return
        self._failed(loss.why)

    @override
    def link_changed(self, link: str) -> None:
        status = self.links.all[link].status
        before = self._states.get(link, LinkState.DOWN)
        state = status.state
        self._states[link] = state
        if state is before and state is not LinkState.REFUSED:
            return
        if state is LinkState.HELD:
            self._tell(CONNECTOR_LINK_HELD, f"link {link} is held: {status.reason}")
        elif state in (LinkState.REFUSED, LinkState.STOPPED):
            self._tell(CONNECTOR_LINK_REFUSED, f"link {link}: {status.reason}")
        elif before is LinkState.HELD:
            self._tell(CONNECTOR_LINK_RELEASED, f"link {link} is not held any more")

    @override
    def gave_up(self, link: str, text: str) -> None:
        self._tell(CONNECTOR_MESSAGE_REFUSED, f"link {link}: {text}")

    @override
    def not_delivered(self, link: str, text: str) -> None:
        self._tell(CONNECTOR_MESSAGE_STAYS, f"link {link}: {text}")

    def _failed(self, why: str) -> None:
        machine = self.machine
        told = machine.failure
        machine.failed(why, self._clock(), self._draw())
        if machine.failure != told:
            self._tell(CONNECTOR_DOWN, f"down: {machine.failure}")
        self._wake.set()

    def _tell(self, kind: EventType, text: str) -> None:
        which = f" (connection of link {self.link})" if self.link else ""
        text = f"VPN {self.vpn.name} connector {self.name}{which} {text}"
        raise_event_in(self.vpn.context, kind, text, self.vpn.name, self.name)

    def rest(self, now_ns: int) -> None:
        """Close a connection that nothing needs, and have it made again when a message waits."""
        if not self.machine.attempts.idle_timeout_ns:
            return
        crossed = sum(self.carried())
        waits = any(
            link.terms.enabled and link.endpoint is not None and link.endpoint.spooled_count
            for link in self.links.outward
        )
        busy = waits or crossed != self._crossed or self.configured.paused
        self._crossed = crossed
        if self.machine.rests(now_ns, busy=busy):
            self._tell(
                CONNECTOR_DOWN,
                f"idle: nothing has crossed for {self.configured.provider.connect.idle_timeout} s",
            )
            self.leave("nothing crosses")
        elif self.machine.state is State.WAITING:
            self._wake.set()

    def carried(self) -> tuple[int, int, int, int]:
        """Return messages and bytes that came in, messages that were sent and accepted, and bytes taken out."""
        inward = [link.counters for link in self.links.inward]
        outward = [link.counters for link in self.links.outward]
        return (
            sum(each.messages for each in inward),
            sum(each.bytes_ for each in inward),
            sum(each.delivered for each in outward),
            sum(each.bytes_ for each in outward),
        )
