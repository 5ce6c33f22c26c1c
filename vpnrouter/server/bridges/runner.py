"""Runs one bridge as a trio task: turns what happens into inputs of the bridge's machine, and performs its actions."""

from __future__ import annotations

import random
from time import monotonic_ns
from typing import TYPE_CHECKING, final

import trio
from typing_extensions import override

from vpnrouter.bridges.driver import BridgeDriver
from vpnrouter.bridges.machine import DetachHalf, Machine
from vpnrouter.bridges.remote_links import RemoteLinks
from vpnrouter.config.configured_bridge import ConfiguredBridge
from vpnrouter.core.fault_barrier import BRIDGE
from vpnrouter.errors import OperationError
from vpnrouter.server.events.event_context import raise_event
from vpnrouter.server.net.dial import TlsSettings
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.bridges.machine import Dial
    from vpnrouter.bridges.remote_order import Remote
    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.events.table import EventType
    from vpnrouter.server.bridges.flows import BridgeFlows
    from vpnrouter.server.net.dial import Dialler
    from vpnrouter.settings.listener import ListenerTls
    from vpnrouter.settings.message_vpn import TlsServerCert


@final
class BridgeRunner(BridgeDriver):
    """One bridge of the configuration. `draw` gives random numbers in [0, 1), `clock` nanoseconds of monotonic time."""

    def __init__(
        self,
        book: LinkRegistry,
        dialler: Dialler,
        vpn_name: str,
        name: str,
        bridge: BridgeConfig,
        server_cert: TlsServerCert,
        draw: Callable[[], float] = random.random,
        flows: BridgeFlows | None = None,
        clock: Callable[[], int] = monotonic_ns,
    ) -> None:
        self.vpn = book.router.vpns[vpn_name]
        self.name = name
        self.configured = ConfiguredBridge(name, bridge, server_cert)
        self._clock = clock
        machine = Machine(
            self.configured.facts(book.router.name, vpn_name),
            self.configured.settings(vpn_enabled=self.vpn.enabled),
            clock(),
        )
        super().__init__(machine, RemoteLinks(book, self.vpn, self.configured))
        self.flow = None if flows is None else flows.of(self.vpn, name, bridge)
        self._dialler = dialler
        self._draw = draw
        self._wake = trio.Event()
        self._dialling: dict[int, trio.CancelScope] = {}
        self._nursery: trio.Nursery | None = None

    @override
    def now_ns(self) -> int:
        return self._clock()

    @property
    @override
    def taker(self) -> FlowReceiver | None:
        return None if self.flow is None else self.flow.taker

    @property
    def identity(self) -> ListenerTls | None:
        """The router's own certificate, for a bridge that logs in by certificate and has none."""
        return self.configured.identity

    @identity.setter
    def identity(self, identity: ListenerTls | None) -> None:
        self.configured.identity = identity

    @override
    def poke(self) -> None:
        self._wake.set()

    @override
    def tell(self, kind: EventType, text: str) -> None:
        raise_event(kind, text, self.vpn.name, self.name)

    def change(self, bridge: BridgeConfig, server_cert: TlsServerCert, *, reconnect: bool) -> None:
        """Go on under a changed configuration; `reconnect` where the connection itself changes."""
        self.configured = ConfiguredBridge(self.name, bridge, server_cert, self.identity)
        self.links.take(self.configured)
        if self.flow is not None:
            self.flow.change(bridge)
        facts = self.configured.facts(self.links.book.router.name, self.vpn.name)
        settings = self.configured.settings(vpn_enabled=self.vpn.enabled)
        self.perform(self.machine.configure(facts, settings, self.now_ns(), reconnect=reconnect))
        flush_ready(self.vpn.context)
        self.poke()

    def remove(self) -> None:
        """Log out at once, for good: the bridge was removed from the configuration. The task ends."""
        self.links.forget()
        self.perform(self.machine.remove())
        flush_ready(self.vpn.context)
        self.poke()

    # -- the task --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the bridge connected until cancelled or removed."""
        book = self.links.book
        book.watch(self.vpn.name, self)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                while not self.machine.removed:
                    try:
                        self._dialler.set_clocks()
                        self.work(self._draw())
                    except Exception as error:  # noqa: BLE001 - given to the barrier
                        self._begin_anew(error)
                    flush_ready(self.vpn.context)
                    await self._pause()
                nursery.cancel_scope.cancel()
        finally:
            book.unwatch(self.vpn.name, self)
            self.remove()

    async def _pause(self) -> None:
        """Wait for an event, or for the time that the machine waits for."""
        wake_ns = self.machine.wake_ns
        limit_s = float("inf") if wake_ns < 0 else max(0.0, (wake_ns - self.now_ns()) / SECOND_NS)
        with trio.move_on_after(limit_s):
            await self._wake.wait()
        self._wake = trio.Event()

    def _begin_anew(self, error: Exception) -> None:
        """Release everything after an unexpected exception."""
        context = self.vpn.context
        barrier = context.barrier
        fault = barrier.caught(error, BRIDGE, self.name, self.vpn.name, "the bridge begins anew")
        try:
            why = f"fault {fault} of the router"
            actions = self.machine.broken(why, self.now_ns(), self._draw())
        except Exception as other:  # noqa: BLE001 - the same
            barrier.caught(other, BRIDGE, self.name, self.vpn.name)
            self.machine.wake_ns = self.now_ns() + SECOND_NS
            return
        for action in actions:
            try:
                self.do(action)
            except Exception as other:  # noqa: BLE001 - the same
                half = self.halves.get(action.number) if isinstance(action, DetachHalf) else None
                if half is None:
                    barrier.caught(other, BRIDGE, self.name, self.vpn.name)
                else:
                    barrier.end(half.link, other)

    # -- dialling --------------------------------------------------------------------------------

    @override
    def begin_dialling(self, action: Dial) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(self._dial, action, name="bridges")

    @override
    def give_up_dialling(self, number: int) -> None:
        scope = self._dialling.get(number)
        if scope is not None:
            scope.cancel()

    async def _dial(self, action: Dial) -> None:
        number = action.number
        with trio.CancelScope() as scope:
            self._dialling[number] = scope
            try:
                if self.machine.login(number) is not None:
                    await self._open(action)
            except OperationError as error:
                self.machine.failed(number, str(error), self.now_ns())
            except Exception as error:  # noqa: BLE001 - given to the barrier
                self._begin_anew(error)
            finally:
                del self._dialling[number]
                self.poke()

    async def _open(self, action: Dial) -> None:
        """Connect, and say HELLO where the machine still wants it. Raises OperationError that says what failed."""
        number, remote, dialler = action.number, action.remote, self._dialler
        host, port = self.links.address(remote)

        def resolved() -> None:
            self.machine.resolved(number, self.now_ns())

        transport = await dialler.open(
            host, port, self._tls(remote), resolved, (self.vpn.name, remote.location)
        )
        if not self.machine.reached(number, self.now_ns(), self.links):
            dialler.drop(transport)
            return
        try:
            dialler.set_clocks()
            half = self.greet(action, host, port)
            link = half.link
            link.address, link.interface = dialler.ends(transport, link.peer)
            self.begun(number, half)
            dialler.serve(transport, link)
        except BaseException:
            dialler.drop(transport)
            raise
        flush_ready(link.context)

    def _tls(self, remote: Remote) -> TlsSettings | None:
        if not remote.tls:
            return None
        configured = self.configured
        # A peer may say where a router is, but only a certificate proves which router it is.
        return TlsSettings(
            configured.server_cert,
            configured.client_cert(remote),
            remote.router_at,
            configured.bridge.tls_cipher_suite_list,
        )
