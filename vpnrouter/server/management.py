"""Serve the management API: Hypercorn's HTTP over connections that the router accepts and bounds.

Hypercorn's own worker would take any number of connections, and its writes are shielded from
cancellation: one peer that stops reading could keep the router from stopping. So the router accepts,
and each connection is closed under Hypercorn when a write takes too long or the router stops.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from contextvars import ContextVar
from socket import SHUT_WR
from typing import TYPE_CHECKING, Final, Protocol, cast, final

import trio

from vpnrouter import limits
from vpnrouter.core.barrier import REQUEST, described
from vpnrouter.core.discards import CLIENT_NOT_CONNECTED, NO_LOCAL_DELIVERY, TRANSMIT_CONGESTION
from vpnrouter.events.table import MANAGEMENT_FAULT
from vpnrouter.management.sources import MsgVpnStatus
from vpnrouter.server.events.narrate import tell
from vpnrouter.server.monitor.meters import VpnMeters

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hypercorn.typing import (
        ASGIFramework,
        ASGIReceiveCallable,
        ASGIReceiveEvent,
        ASGISendCallable,
        Scope,
    )

    from vpnrouter.bridges.status import (
        BridgeStatus,
        LocalSubscriptionStatus,
        RemoteSubscriptionStatus,
    )
    from vpnrouter.config.router import Management
    from vpnrouter.core.barrier import Barrier
    from vpnrouter.core.router import Router
    from vpnrouter.management.access import Access
    from vpnrouter.management.sources import Sources
    from vpnrouter.server.net.listeners import BoundListener

PROTOCOLS: Final = frozenset({"http", "https"})
"""Protocols of listeners that are served here."""

WRITE_S: Final = 10.0
"""Seconds that a peer has to take what is written to it; the answer is lost then, and the connection."""

IDLE_S: Final = 10.0
"""Seconds that a connection may wait for its first or its next request."""

HANDSHAKE_S: Final = 10.0
"""Seconds for a TLS handshake; the same bound as for a silent client."""

LAST_S: Final = 1.0
"""Seconds to answer a peer that will send nothing more. Hypercorn would keep the connection until it
counts as idle, and most peers that said their last have gone."""

WAITED_S: Final = 1.0
"""Seconds that a connection may wait for a request before it can lose its place to a new one."""

REST_S: Final = 0.1
"""Pause of the accept loop when the system is out of descriptors."""

NOT_SENT: Final = (TRANSMIT_CONGESTION, CLIENT_NOT_CONNECTED, NO_LOCAL_DELIVERY)
"""Discards of messages that were on their way to a client; all others are counted as they come in."""

SAMPLE_S: Final = 1.0
"""Seconds between samples of the bridges' counts."""


class HasContext(Protocol):
    """The TLS of a listener; its context may be replaced while the listener serves."""

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context for a new connection."""


def by_direction(discards: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Discards of a message VPN by reason: of messages on their way to a client, and of all others."""
    sent = {reason: count for reason, count in discards.items() if reason in NOT_SENT}
    return sent, {reason: count for reason, count in discards.items() if reason not in sent}


class BridgeSource(Protocol):
    """A bridge that can be asked how it stands."""

    def status(self, now_ns: int) -> BridgeStatus:
        """How it stands at `now_ns`, monotonic; counts since they were cleared."""

    def remote_subscriptions(self) -> Sequence[RemoteSubscriptionStatus]:
        """The subscriptions that it asks its remote for."""

    def local_subscriptions(self) -> Sequence[LocalSubscriptionStatus]:
        """What its remote's bridge asks for here."""

    def disconnect(self) -> bool:
        """Drop its connection; False when it has none."""

    def clear_stats(self) -> None:
        """Begin its counts anew."""

    def clear_event(self, event: str) -> None:
        """Take an event for seen, such as `ttl-exceeded`."""

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from."""


@final
class RouterMonitor:
    """The router as the management API sees it; `bridges` by message VPN and name, and may change."""

    def __init__(
        self,
        router: Router,
        bridges: Mapping[tuple[str, str], BridgeSource],
        clock_ns: Callable[[], int] = time.monotonic_ns,
        meters: VpnMeters | None = None,
    ) -> None:
        self._router = router
        self._bridges = bridges
        self._clock_ns = clock_ns
        self.meters = meters or VpnMeters(router, clock_ns)
        self.stopping = False

    def router_name(self) -> str:
        """Name of the router."""
        return self._router.name

    def is_ready(self) -> bool:
        """True until the router stops: nothing is served before all listeners are bound."""
        return not self.stopping

    def msg_vpn_names(self) -> Sequence[str]:
        """Names of all message VPNs."""
        return list(self._router.vpns)

    def msg_vpn(self, msg_vpn: str) -> MsgVpnStatus | None:
        """The state, counts and rates of one message VPN; None where there is none of that name."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return None
        sums = self.meters.totals(vpn)
        rates = self.meters.rates(vpn)
        not_sent, not_taken = by_direction(sums.discards)
        tx_discarded, rx_discarded = sum(not_sent.values()), sum(not_taken.values())
        return MsgVpnStatus(
            msg_vpn_name=vpn.name,
            enabled=vpn.enabled,
            state="up" if vpn.enabled else "down",
            msg_vpn_connections=len(vpn.publishers),
            subscription_count=vpn.subscription_count,
            max_connection_count=vpn.limits.max_connection_count,
            max_subscription_count=vpn.limits.max_subscription_count,
            bridge_count=len(self.bridge_names(msg_vpn)),
            rx_msg_count=sums.rx_msg_count,
            rx_byte_count=sums.rx_byte_count,
            tx_msg_count=sums.tx_msg_count,
            tx_byte_count=sums.tx_byte_count,
            discarded_msg_count=rx_discarded + tx_discarded,
            discarded=sums.discards,
            rx_discarded_msg_count=rx_discarded,
            tx_discarded_msg_count=tx_discarded,
            rx_discarded=not_taken,
            tx_discarded=not_sent,
            rejected_msg_count=vpn.rejected,
            msg_spool_usage=vpn.spooled_bytes,
            average_rx_byte_rate=rates.rx_byte.average,
            average_rx_msg_rate=rates.rx_msg.average,
            average_tx_byte_rate=rates.tx_byte.average,
            average_tx_msg_rate=rates.tx_msg.average,
            rx_byte_rate=rates.rx_byte.current,
            rx_msg_rate=rates.rx_msg.current,
            tx_byte_rate=rates.tx_byte.current,
            tx_msg_rate=rates.tx_msg.current,
        )

    def bridge_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the bridges in a message VPN; none where it does not exist."""
        return [name for place, name in self._bridges if place == msg_vpn]

    def bridge(self, msg_vpn: str, bridge: str) -> BridgeStatus | None:
        """The state, counts and rates of one bridge; None where there is none of that name."""
        source = self._bridges.get((msg_vpn, bridge))
        return None if source is None else source.status(self._clock_ns())

    def remote_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[RemoteSubscriptionStatus]:
        """What the bridge of this name asks its remote for; nothing where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        return () if source is None else source.remote_subscriptions()

    def local_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[LocalSubscriptionStatus]:
        """What the remote's bridge asks for here; nothing where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        return () if source is None else source.local_subscriptions()

    def disconnect_bridge(self, msg_vpn: str, bridge: str) -> bool:
        """Drop the connection of a bridge; False where it has none or does not exist."""
        source = self._bridges.get((msg_vpn, bridge))
        return source is not None and source.disconnect()

    def clear_bridge_stats(self, msg_vpn: str, bridge: str) -> bool:
        """Begin the counts of a bridge anew; False where there is none of that name."""
        source = self._bridges.get((msg_vpn, bridge))
        if source is not None:
            source.clear_stats()
        return source is not None

    def clear_bridge_event(self, msg_vpn: str, bridge: str, event: str) -> bool:
        """Mark an event of a bridge as seen; False where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        if source is not None:
            source.clear_event(event)
        return source is not None


async def keep_rates(sources: Callable[[], Iterable[BridgeSource]]) -> None:
    """Sample the counts of all bridges about once a second, for ever."""
    while True:
        now_ns = time.monotonic_ns()
        for source in sources():
            source.sample(now_ns)
        await trio.sleep(SAMPLE_S)


@final
class Place:
    """The place of one connection among those that a listener may have."""

    __slots__ = ("coming_since", "waiting_since")

    def __init__(self) -> None:
        self.waiting_since = trio.current_time()
        """When it began to wait for its first or its next request; infinite while it is served."""
        self.coming_since = math.inf
        """When the body of its request began to come; infinite while none does."""

    def leave(self) -> None:
        """Let another connection have the place, unless this one is being served: nothing more will come."""
        if self.waiting_since != math.inf:
            self.waiting_since = -math.inf


_PLACE: ContextVar[Place | None] = ContextVar("vpnrouter-management-place", default=None)
"""The place of the connection that a request came by."""


@final
class _Stream(trio.abc.HalfCloseableStream):
    """A TCP stream whose peer has WRITE_S to take what is written; `served` ends soon after it ended."""

    def __init__(self, inner: trio.SocketStream, served: trio.CancelScope, place: Place) -> None:
        self._inner = inner
        self._served = served
        self._place = place
        self._writers = 0
        self.socket = inner.socket

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._writers += 1
        try:
            with trio.move_on_after(WRITE_S) as waiting:
                await self._inner.send_all(data)
        finally:
            self._writers -= 1
        if waiting.cancelled_caught:
            self.socket.close()
            raise trio.BrokenResourceError(f"nothing taken within {WRITE_S:.0f} s")

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        # Hypercorn closes from one task while another is about to write. trio's own method counts as writing until
        # its next turn, and the other write would fail as if by a fault of ours.
        if self._writers:
            raise trio.BusyResourceError("something is being written")
        with suppress(OSError):
            self.socket.shutdown(SHUT_WR)
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytes(await self._inner.receive_some(max_bytes))
        if not data:
            self._served.deadline = min(self._served.deadline, trio.current_time() + LAST_S)
            self._place.leave()
        return data

    async def aclose(self) -> None:
        await self._inner.aclose()


@final
class _Contained:
    """An application whose faults end here: its client was answered 500, and the fault is told."""

    def __init__(self, app: ASGIFramework, barrier: Barrier | None) -> None:
        # Late, as for `_Http`.
        from starlette.requests import ClientDisconnect

        self._app = app
        self._barrier = barrier
        self._hung_up = ClientDisconnect

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        place = _PLACE.get()
        if place is not None:
            receive = _timed(receive, place)
        try:
            await self._app(scope, receive, send)
        except self._hung_up:
            # The client has gone in the middle of its request: there is nothing to answer, and no fault.
            return
        except Exception as error:  # noqa: BLE001 - given to the barrier
            self.fault(error, "one request")

    def fault(self, error: Exception, cost: str) -> None:
        """Count and tell an unexpected exception of one request or connection."""
        if self._barrier is not None:
            self._barrier.caught(error, REQUEST, "", "", cost)
        else:
            tell(MANAGEMENT_FAULT, described(error))


def _timed(receive: ASGIReceiveCallable, place: Place) -> ASGIReceiveCallable:
    """`receive`, which also notes when the body of the request began to come."""
    over = False

    async def timed() -> ASGIReceiveEvent:
        nonlocal over
        if over:
            return await receive()
        if place.coming_since == math.inf:
            place.coming_since = trio.current_time()
        try:
            event = await receive()
        except BaseException:
            place.coming_since = math.inf
            raise
        if event["type"] != "http.request" or not event.get("more_body", False):
            over = True
            place.coming_since = math.inf
        return event

    return timed


@final
class _Http:
    """Speaks HTTP/1.1 for one application."""

    def __init__(self, app: ASGIFramework) -> None:
        # Late (see `load`): who has no management listener does not load it.
        from hypercorn.app_wrappers import ASGIWrapper
        from hypercorn.config import Config
        from hypercorn.trio.worker_context import WorkerContext

        from vpnrouter.server.http1 import Http1Server

        settings = Config()
        settings.keep_alive_timeout = IDLE_S
        settings.ssl_handshake_timeout = HANDSHAKE_S
        settings.include_server_header = False
        self._server = Http1Server
        self._app = ASGIWrapper(app)
        self._settings = settings
        self._context = WorkerContext(None)

    async def converse(self, stream: trio.abc.Stream, place: Place) -> None:
        """Serve one connection until either side has enough of it."""
        # What it uses of a stream, ours has; its types name the two classes of its own worker.
        served = cast("trio.SSLStream[trio.SocketStream]", stream)
        await self._server(self._app, self._settings, self._context, served, place).run()


def load() -> None:
    """Load what serving needs. It takes some hundred milliseconds, so do it before anybody is told "ready"."""
    import vpnrouter.management.application
    import vpnrouter.server.http1  # noqa: F401


def answer_management(
    listeners: Iterable[BoundListener],
    written: Management,
    sources: Sources,
    nursery: trio.Nursery,
    barrier: Barrier | None = None,
) -> Access | None:
    """Begin to answer on those listeners that are for management, if there are any.

    Returns what admits requests there, None without such a listener.
    """
    mine = [bound for bound in listeners if bound.written.protocol in PROTOCOLS]
    if not mine:
        return None
    from vpnrouter.management.access import Access
    from vpnrouter.management.application import build_app

    access = Access.of(written)
    app = cast("ASGIFramework", build_app(sources, access))
    for bound in mine:
        most = bound.written.max_connection_count
        nursery.start_soon(serve_management, bound.sock, bound.context, most, app, barrier)
    return access


async def serve_management(
    sock: socket.socket,
    tls: HasContext | None,
    most: int,
    app: ASGIFramework,
    barrier: Barrier | None = None,
) -> None:
    """Answer HTTP on a bound, listening, non-blocking socket until cancelled.

    `tls` is that of an `https` listener, asked at each connection. Beyond `most` connections at a time, and
    beyond `limits.MANAGEMENT_CONNECTIONS`, a new one takes the place of the one that has waited longest for a
    request, or of the one whose body has been coming longest: a peer that opens many and sends little keeps nobody
    out. If none has waited for WAITED_S, the new one is closed at once. Unexpected exceptions are given to the
    `barrier`; without one they are only told.
    """
    contained = _Contained(app, barrier)
    http = _Http(contained)
    most = min(most, limits.MANAGEMENT_CONNECTIONS)
    taken: dict[trio.SocketStream, Place] = {}
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
    async with listener, trio.open_nursery() as connections:
        try:
            while True:
                try:
                    stream = await listener.accept()
                except OSError:
                    # Out of descriptors or buffers: let connections end before trying again.
                    await trio.sleep(REST_S)
                    continue
                if len(taken) >= most and not _make_room(taken):
                    await trio.aclose_forcefully(stream)
                    continue
                taken[stream] = place = Place()
                connections.start_soon(_serve_one, stream, place, tls, http, taken, contained)
        finally:
            for stream in taken:
                # Wakes writes that are shielded from cancellation.
                stream.socket.close()


def _make_room(taken: dict[trio.SocketStream, Place]) -> bool:
    """Close the connection that has waited longest for a request, or else for a body; False if all are busy or new."""
    oldest = min(taken, key=lambda stream: taken[stream].waiting_since)
    # One that was just made may have a request on its way.
    if taken[oldest].waiting_since > trio.current_time() - WAITED_S:
        oldest = min(taken, key=lambda stream: taken[stream].coming_since)
        if taken[oldest].coming_since > trio.current_time() - WAITED_S:
            return False
    del taken[oldest]
    oldest.socket.close()
    return True


async def _serve_one(
    accepted: trio.SocketStream,
    place: Place,
    tls: HasContext | None,
    http: _Http,
    taken: dict[trio.SocketStream, Place],
    contained: _Contained,
) -> None:
    served = trio.CancelScope()
    _PLACE.set(place)
    stream: trio.abc.Stream = _Stream(accepted, served, place)
    if tls is not None:
        stream = trio.SSLStream(stream, tls.context, server_side=True, https_compatible=True)
    try:
        with served:
            await http.converse(stream, place)
    except* trio.ClosedResourceError:
        # It lost its place, or the router stops.
        pass
    except* Exception as errors:  # noqa: BLE001 - whatever it is, the router goes on
        # A fault of one connection must not end the router.
        contained.fault(errors, "one connection is closed")
    finally:
        taken.pop(accepted, None)
        accepted.socket.close()
