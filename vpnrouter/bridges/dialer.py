"""The end of a link in the local message VPN: logs in to the remote one, subscribes, takes messages in."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.bridges.link import Link
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.bridges.loops import vpn_id, why_not
from vpnrouter.core.discards import MSG_TOO_BIG, TOPIC_PARSE_ERROR, Discards
from vpnrouter.core.message import Message
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.totals import absorb
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.trace.events import BRIDGE_RECEIVE, DIRECT, LINK_DOWN, LINK_UP
from vpnrouter.trace.recorder import Context
from vpnrouter.trace.sampler import Sampler
from vpnrouter.wire.link import close_codes, encode, frames
from vpnrouter.wire.link.agree import agreed_max_frame
from vpnrouter.wire.link.batches import subscribe_frames, unsubscribe_frames
from vpnrouter.wire.link.order import DIALER, UP
from vpnrouter.wire.mqtt.publish_block import split_publish_properties

if TYPE_CHECKING:
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.wire.link.decode import Frame

SECOND_NS: Final = 1_000_000_000


class LinkEvent(StrEnum):
    """What a dialled link tells its owner."""

    WELCOMED = "welcomed"
    SUBSCRIBED = "subscribed"
    """All subscriptions asked for so far are answered; a reason tells of a refused one."""
    REFUSED = "refused"
    VERSION_MISMATCH = "version-mismatch"
    LOST = "lost"
    """The last event: the link is over."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Owner:
    """Whoever runs the bridge and wants to know how its link fares."""

    __slots__ = ()

    def link_event(self, event: LinkEvent, reason: str) -> None:
        """`reason` is for people, "" where nothing is wrong."""


@final
class BridgeTerms:
    """What a bridge asks of its remote message VPN; filters are in `*` `>` dialect with their flags."""

    __slots__ = (
        "bridge",
        "client_username",
        "filters",
        "heartbeat_ms",
        "max_ttl",
        "password",
        "remote_router",
        "remote_vpn",
        "tls",
    )

    def __init__(
        self,
        bridge: str,
        remote_vpn: str,
        remote_router: str,
        client_username: str,
        password: str,
        filters: list[tuple[int, str]],
        max_ttl: int = limits.HOPS,
        heartbeat_ms: int = limits.LINK_HEARTBEAT_MS,
        tls: bool = False,
    ) -> None:
        self.bridge = bridge
        self.remote_vpn = remote_vpn
        self.remote_router = remote_router
        self.client_username = client_username
        self.password = password
        self.filters = filters
        self.max_ttl = max_ttl
        self.heartbeat_ms = heartbeat_ms
        self.tls = tls


@final
class DialedLink(Link):
    """The link of one bridge, over a connection that was dialled.

    `discards` counts messages that came and were not delivered; `granted` whether every subscription
    was accepted so far. `received_*` are set when the link ends.
    """

    __slots__ = (
        "_pending",
        "_received",
        "_refusal",
        "_request_id",
        "client",
        "discards",
        "owner",
        "peer_router",
        "peer_vpn",
        "received_bytes",
        "received_msgs",
        "send_most",
        "terms",
        "vpn",
    )

    def __init__(self, vpn: MessageVpn, peer: str, terms: BridgeTerms, owner: Owner) -> None:
        super().__init__(vpn.plane, peer, DIALER)
        self.vpn = vpn
        self.terms = terms
        self.owner = owner
        self.client: LinkClient | None = None
        self.discards = Discards()
        self.peer_router = ""
        self.peer_vpn = ""
        self.received_msgs = 0
        self.received_bytes = 0
        self.send_most = limits.LINK_FRAME_BYTES
        self._pending = 0
        self._refusal = ""
        self._request_id = 0
        self._received: Context | None = None
        self.say(
            encode.hello(
                frames.Hello(
                    vpn.plane.router_name,
                    terms.bridge,
                    vpn.name,
                    terms.remote_vpn,
                    remote_router=terms.remote_router,
                    client_username=terms.client_username,
                    password=terms.password,
                    tls=terms.tls,
                    heartbeat_ms=terms.heartbeat_ms,
                    incarnation=vpn.plane.ids.high,
                )
            )
        )

    def password_verified(self, good: bool) -> None:
        """See Connection.password_verified; nobody logs in at this end."""
        raise AssertionError(good)

    # -- control ---------------------------------------------------------------------------------

    def on_frame(self, frame: Frame) -> None:
        """See Link.on_frame."""
        if isinstance(frame, frames.Welcome):
            self._welcomed(frame)
        elif isinstance(frame, frames.Refuse):
            event = (
                LinkEvent.VERSION_MISMATCH
                if frame.code == close_codes.VERSION_MISMATCH
                else LinkEvent.REFUSED
            )
            self.owner.link_event(event, frame.reason)
            self.end(frame.reason)
        elif isinstance(frame, frames.Subscribed):
            self._subscribed(frame)

    def _welcomed(self, welcome: frames.Welcome) -> None:
        terms = self.terms
        # The acceptor's half of the handshake is over: a fault is told with CLOSE from here on.
        self.phase = UP
        if terms.remote_router and welcome.router != terms.remote_router:
            raise ProtocolError(
                close_codes.WRONG_ROUTER,
                f"{close_codes.REASONS[close_codes.WRONG_ROUTER]}: not {terms.remote_router}",
            )
        try:
            vpn_id(welcome.router, welcome.vpn)
        except ValueError as error:
            raise ProtocolError(
                close_codes.PROTOCOL_ERROR, "LINK-31: a VPN that no path can name"
            ) from error
        if welcome.vpn != terms.remote_vpn or welcome.minor > frames.MINOR or welcome.features:
            raise ProtocolError(
                close_codes.PROTOCOL_ERROR, "LINK-19: WELCOME answers another HELLO"
            )
        self.peer_router = welcome.router
        self.peer_vpn = welcome.vpn
        self.send_most = agreed_max_frame(welcome.max_frame)
        vpn = self.vpn
        name = f"#bridge/{terms.bridge}"
        client = LinkClient(vpn, name, self.outbox, terms.bridge, welcome.router, welcome.vpn)
        self.client = client
        vpn.clients[name] = client
        most = min(vpn.limits.max_msg_size, limits.LINK_FRAME_BYTES)
        publisher = Publisher(vpn, client, None, 1, most)
        # Who traces was decided where the message first entered a router.
        publisher.sampler = Sampler(0.0, 1)
        publisher.path = [client.vpn_id]
        vpn.publishers[name] = publisher
        self.publisher = publisher
        self.up(welcome.heartbeat_ms)
        self.owner.link_event(LinkEvent.WELCOMED, "")
        self._trace(LINK_UP, "")
        self.subscribe(terms.filters)
        if not terms.filters:
            self.owner.link_event(LinkEvent.SUBSCRIBED, "")

    def subscribe(self, filters: list[tuple[int, str]]) -> None:
        """Ask the remote message VPN for more (flags, filter)."""
        for frame in subscribe_frames(self._request_id + 1, filters, self.send_most):
            self._request_id = frame.request_id
            self._pending += 1
            self.say(encode.subscribe(frame))

    def unsubscribe(self, filters: list[str]) -> None:
        """Ask the remote message VPN for less."""
        for frame in unsubscribe_frames(self._request_id + 1, filters, self.send_most):
            self._request_id = frame.request_id
            self._pending += 1
            self.say(encode.unsubscribe(frame))

    def _subscribed(self, answer: frames.Subscribed) -> None:
        if self._pending == 0:
            raise ProtocolError(close_codes.PROTOCOL_ERROR, "LINK-25: SUBSCRIBED without a request")
        self._pending -= 1
        self._refusal = self._refusal or answer.reason
        if self._pending == 0:
            refusal = self._refusal
            self._refusal = ""
            self.owner.link_event(LinkEvent.SUBSCRIBED, refusal)

    # -- messages --------------------------------------------------------------------------------

    def on_message(self, frame: frames.Direct, length: int) -> None:
        """See Link.on_message: what has properties, an extension, or a topic that is no good here."""
        publisher = self.publisher
        client = self.client
        if publisher is None or client is None:
            return
        vpn = self.vpn
        publisher.messages += 1
        publisher.bytes_ += length
        message = Message(frame.topic, frame.payload, frame.properties, False, client)
        message.path = publisher.path
        message.hops = 1
        extension = frame.extension
        if extension is not None:
            if extension.path:
                message.path = extension.path
            message.hops = extension.hops
            message.retain = extension.retain
            message.trace_high = extension.trace_high
            message.trace_low = extension.trace_low
            message.message_id = extension.message_id
            message.origin_router = extension.origin_router
            message.origin_vpn = extension.origin_vpn
            message.origin_ts_ns = extension.origin_ts_ns
        message.ingress_ns = self.plane.wall_ns
        if frame.properties:
            _, _, expiry_s = split_publish_properties(frame.properties, 0, len(frame.properties))
            if expiry_s >= 0:
                message.expires_ns = self.plane.now_ns + expiry_s * SECOND_NS
        if message.traced:
            self._trace_received(message)
        reason = self._obstacle(message)
        if not reason:
            try:
                vpn.publish(message)
            except TopicError:
                # Good enough for the sender's VPN but not for ours: no reason to lose the link.
                reason = TOPIC_PARSE_ERROR
            else:
                return
        self.discards.add(reason)
        vpn.discards.add(reason)
        vpn.trace_discard(message, reason)

    def _obstacle(self, message: Message) -> str:
        """Why `message` may not enter this VPN, or "" (LINK-36)."""
        if len(message.payload) > self.vpn.limits.max_msg_size:
            return MSG_TOO_BIG
        return why_not(message.path, message.hops, self.vpn.vpn_id, self.terms.max_ttl)

    # -- end and traces --------------------------------------------------------------------------

    def on_end(self, why: str) -> None:
        """See Link.on_end."""
        client = self.client
        self.client = None
        if client is not None:
            vpn = self.vpn
            client.connected = False
            vpn.drop(client)
            if vpn.clients.get(client.client_name) is client:
                del vpn.clients[client.client_name]
            publisher = vpn.publishers.pop(client.client_name, None)
            if publisher is not None:
                absorb(vpn, publisher)
                self.received_msgs = publisher.messages
                self.received_bytes = publisher.bytes_
            self._trace(LINK_DOWN, why)
        self.owner.link_event(LinkEvent.LOST, why)

    def _trace(self, event: int, why: str) -> None:
        plane = self.plane
        if plane.tracing:
            plane.recorder.record(
                self._context(event, why, 0, ""), plane.wall_ns, b"", 0, 0, 0, -1, -1, 0
            )

    def _context(self, event: int, reason: str, hops: int, path: str) -> Context:
        return Context(
            event,
            self.vpn.name,
            DIRECT,
            bridge=self.terms.bridge,
            peer_router=self.peer_router,
            peer_vpn=self.peer_vpn,
            reason=reason,
            hops=hops,
            path=path,
        )

    def _trace_received(self, message: Message) -> None:
        plane = self.plane
        context = self._received
        path = ">".join(message.path)
        if (
            context is None
            or context.path != path
            or context.origin_router != message.origin_router
            or context.origin_vpn != message.origin_vpn
        ):
            context = self._context(BRIDGE_RECEIVE, "", message.hops, path)
            context.origin_router = message.origin_router
            context.origin_vpn = message.origin_vpn
            self._received = context
        plane.recorder.record(
            context,
            plane.wall_ns,
            message.topic,
            message.trace_high,
            message.trace_low,
            message.message_id,
            len(message.payload),
            0,
            message.origin_ts_ns,
        )
