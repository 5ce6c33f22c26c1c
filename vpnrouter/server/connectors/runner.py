"""Runs one connector as a trio task: dials its provider, and performs what its machine decides."""

from __future__ import annotations

import random
from time import monotonic_ns
from typing import TYPE_CHECKING, final

import trio
from typing_extensions import override

from vpnrouter.config.configured_connector import (
    attempts_of,
    links_of,
    needs_no_local,
    provider_settings_of,
)
from vpnrouter.connectors.machine import Machine, State
from vpnrouter.connectors.mqtt_client import (
    LEVELS,
    ConnectorCallbacks,
    MqttClient,
    attract,
    session_of,
)
from vpnrouter.connectors.status import ConnectorLinkStatus, ConnectorStatus
from vpnrouter.core.fault_barrier import CONNECTOR
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK, QUEUE
from vpnrouter.errors import OperationError
from vpnrouter.events.table import CONNECTOR_DOWN, CONNECTOR_LINK_REFUSED, CONNECTOR_UP
from vpnrouter.management.server_hooks import RunningConnector
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.dial import TlsSettings
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.connector import Connector, ConnectorLink
    from vpnrouter.core.router import Router
    from vpnrouter.events.table import EventType
    from vpnrouter.server.net.dial import Dialler
    from vpnrouter.settings.message_vpn import TlsServerCert


@final
class ConnectorRunner(ConnectorCallbacks, RunningConnector):
    """One connector of the configuration. `draw` gives random numbers in [0, 1), `clock` nanoseconds of monotonic time.

    What its links take out of topics is kept from now on, whether the provider is there or not.
    """

    def __init__(
        self,
        router: Router,
        dialler: Dialler,
        vpn_name: str,
        name: str,
        connector: Connector,
        server_cert: TlsServerCert,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.router = router
        self.vpn = router.vpns[vpn_name]
        self.name = name
        self.configured = connector
        self.refused: dict[str, str] = {}
        self.session = session_of(self.vpn, name)
        self._server_cert = server_cert
        self._dialler = dialler
        self._draw = draw
        self._clock = clock
        self._client: MqttClient | None = None
        self._version = 0
        self._removed = False
        self._wake = trio.Event()
        self._scope = trio.CancelScope()
        self.machine = Machine(attempts_of(connector, vpn_enabled=self.vpn.enabled), clock())
        self._take_links()

    def _take_links(self) -> None:
        links = links_of(self.configured)
        self._links = links
        self.session.renames = any(link.rule is not None for link in links if not link.inbound)
        self.refused.clear()
        attract(self.session, links, no_local=needs_no_local(self.configured))

    # -- changes ---------------------------------------------------------------------------------

    def change(self, connector: Connector, server_cert: TlsServerCert) -> None:
        """Go on under a changed configuration, over a new connection."""
        self.configured = connector
        self._server_cert = server_cert
        self._leave("the connector was changed")
        self._version = 0
        self._take_links()
        self.machine.configure(attempts_of(connector, vpn_enabled=self.vpn.enabled), self._clock())
        self._wake.set()

    @override
    def reconnect(self) -> None:
        self.change(self.configured, self._server_cert)

    def remove(self) -> None:
        """End for good: the connector was removed from the configuration, and what was kept for it goes."""
        self._removed = True
        self._leave("the connector was removed")
        self.session.end()
        self._wake.set()

    def _leave(self, why: str) -> None:
        """Log out, or give up the attempt."""
        client, self._client = self._client, None
        self._scope.cancel()
        if client is not None:
            client.end(why)
            flush_ready(self.vpn.context)

    # -- the task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the connector connected until cancelled or removed."""
        try:
            while not self._removed:
                self._dialler.set_clocks()
                if self.machine.begin(self._clock()) or self.machine.due(self._clock()):
                    await self._dial()
                    continue
                await self._pause()
        finally:
            self._leave("the router stops")

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
                await self._open()
            except OperationError as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier = self.vpn.context.barrier
                fault = barrier.caught(
                    error, CONNECTOR, self.name, self.vpn.name, "the connector begins anew"
                )
                if machine.state not in (State.WAITING, State.STOPPED, State.DISABLED):
                    self._failed(f"fault {fault} of the router")

    async def _open(self) -> None:
        machine = self.machine
        url = machine.url
        level = LEVELS[self._version]
        configured = self.configured.provider
        settings = provider_settings_of(self.router.name, self.vpn.name, self.name, self.configured)
        if settings.level:
            level = settings.level
        tls = TlsSettings(self._server_cert, configured.client_cert) if url.tls else None
        transport = await self._dialler.open(url.host, url.port, tls, lambda: None)
        try:
            self._dialler.set_clocks()
            machine.reached(self._clock())
            client = MqttClient(
                self, self.router, str(url), self.session, self.name, self._links, settings, level
            )
            self._client = client
            client.begin()
            self._dialler.serve(transport, client.connection)
        except BaseException:
            self._client = None
            self._dialler.drop(transport)
            raise
        flush_ready(self.vpn.context)

    # -- what the connection tells ---------------------------------------------------------------

    @override
    def joined(self, client: MqttClient) -> None:
        if client is not self._client:
            return
        self.machine.joined(self._clock())
        self._tell(CONNECTOR_UP, f"up: {self.machine.url}, {client.connection.platform}")

    @override
    def lost(self, client: MqttClient, why: str, *, other_version: bool) -> None:
        if client is not self._client:
            return
        self._client = None
        if other_version and self.configured.provider.mqtt_version == "auto":
            self._version = (self._version + 1) % len(LEVELS)
            if self._version:
                # Another version at once: the provider is there.
                self.machine.again(self._clock())
                self._wake.set()
                return
        self._failed(why)

    @override
    def link_refused(self, link: str, why: str) -> None:
        before = self.refused.pop(link, "")
        if why:
            self.refused[link] = why
            if why != before:
                self._tell(CONNECTOR_LINK_REFUSED, f"link {link}: {why}")

    def _failed(self, why: str) -> None:
        machine = self.machine
        told = machine.failure
        machine.failed(why, self._clock(), self._draw())
        if machine.failure != told:
            self._tell(CONNECTOR_DOWN, f"down: {machine.failure}")
        self._wake.set()

    def _tell(self, kind: EventType, text: str) -> None:
        text = f"VPN {self.vpn.name} connector {self.name} {text}"
        raise_event_in(self.vpn.context, kind, text, self.vpn.name, self.name)

    # -- for monitoring --------------------------------------------------------------------------

    @override
    def status(self) -> ConnectorStatus:
        machine = self.machine
        up = machine.state is State.UP
        connection = None if self._client is None else self._client.connection
        publisher = None if connection is None else connection.publisher
        urls = machine.attempts.urls
        links = [self._link(name, link) for name, link in self.configured.links.items()]
        return ConnectorStatus(
            self.vpn.name,
            self.name,
            self.configured.enabled,
            machine.state.value,
            str(machine.url) if urls else "",
            connection.platform if up and connection is not None else "",
            (self._clock() - machine.since_ns) // SECOND_NS if up else 0,
            machine.failure,
            machine.failures,
            self.session.client_name,
            0 if publisher is None else publisher.messages,
            0 if connection is None else connection.outbox.messages,
            sum(link.waiting_msg_count for link in links),
            self.session.memory_held,
            links,
        )

    def _link(self, name: str, link: ConnectorLink) -> ConnectorLinkStatus:
        source, target = link.source, link.target
        place = (CONNECTOR_LINK, f"{self.name}/{name}")
        if source.queue is not None:
            place = (QUEUE, source.queue)
        endpoint = endpoints_of(self.vpn).get(place)
        return ConnectorLinkStatus(
            self.vpn.name,
            self.name,
            name,
            "in" if link.inbound else "out",
            source.address or source.queue or source.topic or "",
            (target.queue or target.topic) if link.inbound else target.address,
            link.quality_of_service,
            link.enabled,
            0 if endpoint is None else endpoint.spooled_count,
            self.refused.get(name, ""),
        )
