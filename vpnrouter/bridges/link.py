"""Runs one connection between two routers: framing, handshake, heartbeats, time-outs and close.

The own half receives what the own bridge attracts; the peer's half sends what the peer's bridge attracts. A link begins
with the half of the side that dialled, and may take the other one as well (LINK-39). Both halves share one client in
the message VPN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.bridges.counters import ControlTally
from vpnrouter.bridges.half_events import HalfEvent
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.bridges.link_end import LinkEnd
from vpnrouter.bridges.own_half import OwnHalf
from vpnrouter.bridges.peer_half import PeerHalf
from vpnrouter.bridges.remote_settings import BridgeEnds
from vpnrouter.core.connection import Connection
from vpnrouter.core.fault_barrier import CONNECTION, ReleaseStep
from vpnrouter.core.forward import scan
from vpnrouter.core.memory_account import OUTGROWN, MemoryAccount
from vpnrouter.core.pre_login_limits import NO_MEMORY
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import ProtocolError
from vpnrouter.trace.sampler import Sampler
from vpnrouter.units import MILLISECOND_NS
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.compressed import LinkPacker, LinkUnpacker
from vpnrouter.wire.link.decode import decode, link_frame_at
from vpnrouter.wire.link.order import (
    ASKING,
    FLOWING,
    PACKED,
    REUSABLE,
    SERVING,
    STRANGE,
    UP,
    accepted,
    check_order,
)

if TYPE_CHECKING:
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.half_events import HalfCallbacks
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.bridges.remote_settings import RemoteSettings
    from vpnrouter.core.login import Admission
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.link.decode import Frame


HANDSHAKE_TIMER: Final = 0
HEARTBEAT_TIMER: Final = 1
PARTED_TIMER: Final = 2


MISSED: Final = 3
"""Heartbeat intervals of silence after which the peer counts as dead (LINK-22)."""


PART_NS: Final = 1_000_000_000
"""After so long a silence nothing more is expected over a connection that another one has taken over."""

PART_MOST_NS: Final = 10_000_000_000
"""Messages that were on the way may come over such a connection for this long."""


@final
class LinkClock(TimerTarget):
    """Times out the handshake of `link`, and sends heartbeats after `beat`."""

    __slots__ = ("_interval_ns", "_link", "_parted_ns", "_parting", "_said", "_timer")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._interval_ns = 0
        self._said = -1
        self._parted_ns = 0
        self._parting = ""
        context = link.context
        self._timer: Timer | None = context.timers.arm(
            context.now_ns + limits.CONNECT_TIMEOUT_S * 1000 * MILLISECOND_NS, self, HANDSHAKE_TIMER
        )

    def stop(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def beat(self, interval_ms: int) -> None:
        """Send a heartbeat after `interval_ms` of silence; 0 for never."""
        self.stop()
        if interval_ms:
            self._interval_ns = interval_ms * MILLISECOND_NS
            context = self._link.context
            self._timer = context.timers.arm(
                context.now_ns + self._interval_ns, self, HEARTBEAT_TIMER
            )

    def owning_connection(self) -> Connection | None:
        """The link that is timed."""
        return self._link

    def part(self, why: str) -> None:
        """End the link, for `why`, when its peer falls silent."""
        self.stop()
        context = self._link.context
        self._parting = why
        self._parted_ns = context.now_ns
        self._timer = context.timers.arm(context.now_ns + PART_NS, self, PARTED_TIMER)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Close a link that had no handshake in time, or see to heartbeats."""
        link = self._link
        self._timer = None
        if link.ended:
            return
        if kind == HANDSHAKE_TIMER:
            _close(link, codes.HANDSHAKE_TIMEOUT)
            return
        if link.peer_half is not None and link.peer_half.flows is not None:
            link.peer_half.flows.tell()
        silent_ns = now_ns - link.heard_ns
        if kind == PARTED_TIMER:
            if silent_ns >= PART_NS or now_ns - self._parted_ns >= PART_MOST_NS:
                link.end(self._parting)
            else:
                self._timer = link.context.timers.arm(now_ns + PART_NS, self, PARTED_TIMER)
            return
        if link.silent_at(MISSED * self._interval_ns, now_ns) <= now_ns:
            _close(link, codes.HEARTBEAT_TIMEOUT)
            return
        # A peer with more to send than the way takes asks behind all that: it has to hear of us before.
        mute = self._said == link.control_tx_msgs + link.outbox.messages
        if silent_ns >= self._interval_ns or mute:
            link.say(encode.heartbeat(frames.Heartbeat(now_ns & 0xFFFF_FFFF, answer=False)))
        self._said = link.control_tx_msgs + link.outbox.messages
        # A dead peer is to be missed after three intervals, not at the beat after.
        at_ns = now_ns + self._interval_ns
        dead_ns = link.heard_ns + MISSED * self._interval_ns
        if now_ns < dead_ns < at_ns:
            at_ns = dead_ns
        self._timer = link.context.timers.arm(at_ns, self, HEARTBEAT_TIMER)


def _close(link: Link, code: int) -> None:
    link.goodbye(code, codes.REASONS[code])


FRAME_WORK: Final = 5
"""What a frame costs that is handled alone, in parts of a turn (TurnContext.work)."""

TLS_HANDSHAKE: Final = 0x16
"""First byte of a TLS connection (RFC 8446, 5.1)."""


@final
class Link(LinkEnd):
    """One end of a link. `doing` is a set of flags of order.py.

    `peer` is the remote that was dialled, as it is configured, `address` its IP address and port; `interface` is
    the address of this end, "" where the peer dialled.

    `raw` is the handshake frame that is being handled, `bond` a digest of what both sides said until the first half
    was logged in.

    `publisher` is set while frames may cross in batches; `sink` is the same publisher for the link's
    whole life.
    """

    __slots__ = (
        "_accepts",
        "_clock",
        "_control",
        "_left",
        "_shunned_ns",
        "_unpacker",
        "address",
        "admission",
        "bond",
        "book",
        "client",
        "control_rx_bytes",
        "control_rx_msgs",
        "doing",
        "features",
        "hello",
        "interface",
        "login_rx_msgs",
        "login_tx_msgs",
        "max_frame",
        "own_half",
        "peer_half",
        "publisher",
        "raw",
        "send_most",
        "sink",
        "tls",
    )

    def __init__(self, book: LinkRegistry, peer: str, vpn: MessageVpn | None, *, tls: bool) -> None:
        super().__init__(book.router, peer, vpn)
        self.admission: Admission | None = None
        self.address = peer
        self.interface = ""
        self.book = book
        self.tls = tls
        self.doing = ASKING if self.dialed else STRANGE
        self._accepts = accepted(self.doing)
        self.max_frame = limits.LINK_HANDSHAKE_BYTES
        self.send_most = limits.LINK_FRAME_BYTES
        self.features = 0
        self.client: LinkClient | None = None
        self.publisher: Publisher | None = None
        self.sink: Publisher | None = None
        self.own_half: OwnHalf | None = None
        self.peer_half: PeerHalf | None = None
        self.hello: frames.Hello | None = None
        self.control_rx_msgs = 0
        self.control_rx_bytes = 0
        self.login_rx_msgs = 0
        self.login_tx_msgs = 0
        self._control = ControlTally()
        self._unpacker: LinkUnpacker | None = None
        # The rest of a COMPRESSED frame in which a pause began.
        self._left = b""
        self._shunned_ns = 0
        self.raw = b""
        self.bond = b""
        self._clock = LinkClock(self)
        if not self.dialed:
            self.hold_in(book.router.pre_login_limits.held)

    # -- what it is doing ------------------------------------------------------------------------

    def now_does(self, flags: int) -> None:
        """Add flags of order.py."""
        self.doing |= flags
        self._accepts = accepted(self.doing)

    def no_more_does(self, flags: int) -> None:
        """Take flags of order.py away."""
        self.doing &= ~flags
        self._accepts = accepted(self.doing)

    def can_attach(self) -> bool:
        """Whether a bridge of ours may log in over this connection, which serves the peer's."""
        return (
            not self.ended
            and self.own_half is None
            and self.peer_half is not None
            and not self.doing & ASKING
            and self.features & frames.REUSE != 0
            and self.context.now_ns >= self._shunned_ns
        )

    def shun(self) -> None:
        """Do not use this connection for a while: a bridge of ours could not log in over it. The peer has dialled, and
        it must not be able to keep the bridge from dialling.
        """
        self._shunned_ns = self.context.now_ns + limits.LINK_SHUNNED_S * 1_000_000_000

    def peer_ends(self) -> BridgeEnds:
        """The peer's bridge, for the test of compatibility. One that names no router means this one."""
        hello = self.hello
        vpn = self.vpn
        if hello is None or vpn is None:
            return BridgeEnds("", "", "", "", self.tls)
        named = hello.remote_router or self.book.router.name
        return BridgeEnds(self.peer_router, self.peer_vpn, named, vpn.name, self.tls)

    # -- input -----------------------------------------------------------------------------------

    @override
    def largest(self) -> int:
        return self.max_frame

    @override
    def consume(self, data: bytes, pos: int) -> int:
        try:
            pos = self._handle(data, pos)
        except ProtocolError as error:
            if error.reason_code == codes.NOT_A_LINK and data[0] == TLS_HANDSHAKE:
                self.book.log.tls_met(self.peer)
            self._broken(error.reason_code, str(error))
            return -1
        own = self.own_half
        if own is not None and own.flow is not None:
            # Messages and their positions go into one commit. A half that has ended has done this.
            own.flow.taker.flush()
        return pos

    def _handle(self, data: bytes, pos: int) -> int:
        end = len(data)
        context = self.context
        while pos < end and not self.paused:
            if context.work > context.allowance:
                self.rest()
                break
            publisher = self.publisher
            if publisher is not None:
                pos = scan(publisher, data, pos, end)
                if pos >= end:
                    break
            kind = data[pos]
            if kind not in self._accepts:
                check_order(self.doing, kind)
            length = link_frame_at(data, pos, end, self.max_frame)
            if length == 0:
                break
            frame = decode(data, pos, length)
            pos += length
            if isinstance(frame, frames.Direct):
                self._on_message(frame, length)
            elif isinstance(frame, frames.Guaranteed):
                if self.own_half is not None:
                    self.own_half.on_guaranteed(frame, length)
            elif isinstance(frame, frames.Compressed):
                self._unpack(frame.body)
            else:
                self.control_rx_msgs += 1
                self.control_rx_bytes += length
                context.work += FRAME_WORK + (length >> 6)
                if kind in frames.HANDSHAKE:
                    self.raw = data[pos - length : pos]
                self._on_control(frame)
            if self.ended:
                return -1
        return pos

    def _unpack(self, body: bytes) -> None:
        """Handle the whole frames inside a COMPRESSED one (LINK-44)."""
        if self._unpacker is None:
            self._unpacker = LinkUnpacker(self.max_frame)
        self._within(self._unpacker.unpack(body))

    def _within(self, data: bytes) -> None:
        """Handle the frames within a COMPRESSED frame. Those behind a pause wait until it is over."""
        pos = self._handle(data, 0)
        if self.paused and 0 <= pos < len(data):
            self._left = data[pos:]

    def resume(self) -> None:
        """Go on after a pause, first with the rest of a COMPRESSED frame."""
        if self.held:
            return
        if self._left:
            left = self._left
            self._left = b""
            self.paused = False
            try:
                self._within(left)
            except ProtocolError as error:
                self._broken(error.reason_code, str(error))
                return
            if self.paused:
                return
        super().resume()

    def _on_message(self, frame: frames.Direct, length: int) -> None:
        own = self.own_half
        if own is not None:
            own.on_message(frame, length)

    def _on_control(self, frame: Frame) -> None:
        if self.doing & PACKED and self.outbox.packer is None:
            # The peer has answered the handshake: nothing of ours that must be plain waits.
            self.outbox.packer = LinkPacker(self.send_most)
        if isinstance(frame, frames.Heartbeat):
            if not frame.answer:
                self.say(encode.heartbeat(frames.Heartbeat(frame.token, answer=True)))
        elif isinstance(frame, frames.Close):
            self.end(frame.reason)
        elif isinstance(frame, frames.Hello):
            self.login_rx_msgs += 1
            self.hello = frame
            self.peer_half = PeerHalf(self, frame)
            self.peer_half.log_in()
        elif isinstance(
            frame, (frames.Welcome, frames.Refuse, frames.Challenge, frames.Subscribed)
        ):
            own = self.own_half
            if own is not None:
                own.on_frame(frame)
        elif isinstance(frame, (frames.Subscribe, frames.Unsubscribe, frames.Detach, frames.Proof)):
            peer = self.peer_half
            if peer is not None:
                peer.on_frame(frame)
        elif not isinstance(frame, frames.Skipped):
            self._on_flow(frame)

    def _on_flow(self, frame: Frame) -> None:
        """Give a frame of a guaranteed flow to its half: the sender's side has the ids of its parity (LINK-40)."""
        sends = isinstance(frame, (frames.Bind, frames.Ack, frames.Reject, frames.Settled))
        if isinstance(frame, (frames.Unbind, frames.Unbound)):
            sends = (frame.flow_id & 1 == 1) == self.dialed
        if sends:
            if self.peer_half is not None:
                self.peer_half.on_frame(frame)
        elif self.own_half is not None:
            self.own_half.on_frame(frame)

    def log_identity(self) -> tuple[str, str]:
        """Who the peer is, with its address, and the message VPN that it is logged in to."""
        client, vpn = self.client, self.vpn
        name = self.peer if client is None else f"{client.client_name} at {self.peer}"
        return name, "" if vpn is None else vpn.name

    def password_verified(self, good: bool) -> None:
        """Pass the verdict on to the peer's half."""
        if self.peer_half is not None:
            self.peer_half.password_verified(good)

    # -- output ----------------------------------------------------------------------------------

    def say_login(self, data: bytes) -> None:
        """Queue a frame of a login."""
        self.login_tx_msgs += 1
        self.say(data)

    def login_refused(self, code: int, text: str) -> None:
        """Refuse the login of the peer's half."""
        if self.peer_half is not None and not self.ended:
            self.peer_half.login_refused(code, text)

    def open_account(self) -> MemoryAccount | None:
        """Make the account of the link, in that of its client."""
        client = self.client
        if client is None or self.ended:
            return None
        home = client.vpn.memory.of(client.client_name)
        return MemoryAccount(client.client_name, limits.CLIENT_MEMORY, home, self)

    def crowded_out(self) -> None:
        """Close the link: its peer holds too much."""
        if not self.doing & UP:
            self.book.router.pre_login_limits.turned_away(NO_MEMORY, self.peer)
        self.goodbye(codes.QUOTA_EXCEEDED, f"503 {OUTGROWN}")
        self.release_resources()

    # -- the way up ------------------------------------------------------------------------------

    def join(self, vpn: MessageVpn, client_name: str, router: str, peer_vpn: str) -> LinkClient:
        """The link's client in `vpn`, made with the first half; `router`, `peer_vpn` are the peer's."""
        known = self.client
        if known is not None:
            return known
        while client_name in vpn.clients:
            # A bridge that moves is logged in twice for a moment.
            client_name += "'"
        self.vpn = vpn
        self.peer_router = router
        self.peer_vpn = peer_vpn
        client = LinkClient(vpn, client_name, self.outbox, router, peer_vpn)
        most = min(vpn.limits.max_msg_size, limits.LINK_FRAME_BYTES)
        sink = Publisher(vpn, client, None, 1, most)
        # Who traces was decided where the message first entered a router.
        sink.sampler = Sampler(0.0, 1)
        losses = vpn.context.discard_rows
        if losses is not None:
            self.outbox.losses = losses.of(vpn.name, client)
        sink.path = [client.vpn_id]
        client.takes_amqp = self.features & frames.AMQP != 0
        self.client = client
        self.sink = sink
        vpn.clients[client_name] = client
        vpn.publishers[client_name] = sink
        return client

    def up(self, peer_max_frame: int) -> None:
        """Finish the handshake of the first half. From here on a fault is reported with CLOSE."""
        self.send_most = min(peer_max_frame, limits.LINK_FRAME_BYTES)
        self.max_frame = limits.LINK_FRAME_BYTES
        self.no_more_does(STRANGE)
        self.now_does(UP)
        self._clock.stop()
        self.leave_strangers()
        self.hold_in_account()

    def agree(self, features: int, heartbeat_ms: int) -> None:
        """Apply what the first half agreed on; it holds for the second one as well."""
        self.features = features
        if features & frames.ZSTD:
            self.now_does(PACKED)
        if features & frames.FLOWS:
            self.now_does(FLOWING)
        if self.dialed and features & frames.REUSE:
            self.now_does(REUSABLE)
        if self.client is not None:
            self.client.bound_frames(self.send_most)
            self.client.takes_amqp = features & frames.AMQP != 0
        self._clock.beat(heartbeat_ms)

    # -- the way down ----------------------------------------------------------------------------

    def _broken(self, code: int, text: str) -> None:
        """Report a violation of the protocol to the peer and close."""
        self.book.router.protocol_errors += 0 if self.dialed else 1
        self.goodbye(code, text)

    def goodbye(self, code: int, text: str) -> None:
        """Close with a code and a reason (LINK-16); a stranger is closed without an answer (LINK-11)."""
        if self.ended:
            return
        if code != codes.NOT_A_LINK:
            if self.doing & UP:
                self.say(encode.close(frames.Close(code, text)))
            elif not self.dialed:
                self.say_login(encode.refuse(frames.Refuse(code, text)))
        self.end(text)

    def part(self, code: int, text: str) -> None:
        """Close this connection: the peer's half goes on over another one (LINK-20). Where the own half uses it as
        well, what the peer has sent before is still read: the peer closes after its last message, or falls silent.
        """
        own, peer, client, vpn = self.own_half, self.peer_half, self.client, self.vpn
        if (
            self.ended
            or own is None
            or not own.welcomed
            or peer is None
            or client is None
            or vpn is None
        ):
            self.goodbye(code, text)
            return
        self.say(encode.close(frames.Close(code, text)))
        self.parted = True
        peer.parted(text)
        self.no_more_does(SERVING)
        # The connection that takes over gets the name.
        self._rename(vpn, client)
        self._clock.part(text)
        own.owner.on_half_event(own, HalfEvent.PARTED, text)

    def _rename(self, vpn: MessageVpn, client: LinkClient) -> None:
        before = after = client.client_name
        while after in vpn.clients:
            after += "'"
        client.client_name = after
        vpn.clients[after] = client
        if vpn.clients.get(before) is client:
            del vpn.clients[before]
        if self.sink is not None and vpn.publishers.get(before) is self.sink:
            del vpn.publishers[before]
            vpn.publishers[after] = self.sink

    def end(self, why: str) -> None:
        """Stop: nothing more is read, the socket closes when the outbox is empty."""
        if self.ended:
            return
        self.ended = True
        self.closing = True
        self.publisher = None
        self.give_all_back(
            [
                ReleaseStep("resources", self.release_resources),
                ReleaseStep("peer's half", lambda: self._end_peer_half(why), again=True),
                ReleaseStep("client", self._leave, again=True),
                ReleaseStep("own half", lambda: self._end_own_half(why), again=True),
                ReleaseStep("clock", self._clock.stop),
            ]
        )

    def caught_at_end(self, error: Exception) -> None:
        """Count and report what a step of the end raised; the other steps follow."""
        self.report_fault(error, "the end of the link goes on")

    def report_fault(self, error: Exception, cost: str) -> None:
        """Count and report an error that was raised while the link or a half of it ended. The other steps go on."""
        self.faulty = True
        name, msg_vpn = self.log_identity()
        self.context.barrier.caught(error, CONNECTION, name, msg_vpn, cost)

    def _end_peer_half(self, why: str) -> None:
        if self.peer_half is not None:
            self.peer_half.end(why)

    def _end_own_half(self, why: str) -> None:
        if self.own_half is not None:
            self.own_half.end(why)

    def _leave(self) -> None:
        """Take the client out of the VPN."""
        client, sink, vpn = self.client, self.sink, self.vpn
        if client is None or sink is None or vpn is None:
            return
        client.connected = False
        vpn.forget(client)
        if vpn.clients.get(client.client_name) is client:
            del vpn.clients[client.client_name]
        if vpn.publishers.get(client.client_name) is sink:
            del vpn.publishers[client.client_name]
        self.client = None
        vpn.absorb(sink)

    def lost(self, reason: str) -> None:
        """End both halves and count messages that had not left."""
        self.end(reason)
        dropped = self.outbox.close()
        vpn = self.vpn
        if dropped and vpn is not None:
            vpn.count_lost(dropped, self.outbox)
        if self.peer_half is not None:
            self.peer_half.settle(dropped)
        self.tally()
        if self.faulty:
            # Messages that the fault cut off are counted as well (promise BALANCE).
            if self.own_half is not None:
                self.own_half.account()
            if self.peer_half is not None:
                self.peer_half.account()
        # They know the link, and hold all that the peer has asked for: together they would stay in memory until all
        # objects are walked.
        self.own_half = self.peer_half = self.sink = None

    def tally(self) -> None:
        """Update the counters of both halves' records."""
        own, peer = self.own_half, self.peer_half
        if own is not None:
            own.update_counters()
        if peer is not None:
            peer.update_counters()
        record = own.record if own is not None else None
        if record is None and peer is not None:
            record = peer.record
        if record is not None:
            self._control.update_counters(
                (
                    self.control_rx_msgs,
                    self.control_rx_bytes,
                    self.control_tx_msgs,
                    self.control_tx_bytes,
                    self.login_rx_msgs,
                    self.login_tx_msgs,
                ),
                record.counters,
            )


@final
class LinkFactory:
    """Makes the acceptor's end for each connection to one link listener; `tls` if it is encrypted."""

    def __init__(self, book: LinkRegistry, *, tls: bool) -> None:
        self.book = book
        self.tls = tls

    def connection(self, peer: str) -> Link:
        """The connection for a socket accepted from `peer`."""
        return Link(self.book, peer, None, tls=self.tls)


def dial(
    book: LinkRegistry,
    vpn: MessageVpn,
    peer: str,
    terms: RemoteSettings,
    owner: HalfCallbacks,
    record: Bridge,
    *,
    tls: bool,
    moves_from: OwnHalf | None = None,
) -> OwnHalf:
    """The bridge's half on a new connection to `peer`; its HELLO waits in the link's outbox."""
    return OwnHalf(Link(book, peer, vpn, tls=tls), terms, owner, record, moves_from)
