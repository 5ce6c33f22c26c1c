"""A bridge's client inside a message VPN: what a link looks like to the VPN it attracts messages from.

To the remote message VPN a bridge is a client like any other: it has a name, subscriptions and an
outbox. What is special: its frames are the link's, it carries the visited path, and it never gets back
what it brought (promise NOLOCAL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.bridges.loops import may_enter, path_for
from vpnrouter.core.discards import LOOP_DETECTED, MSG_TOO_BIG, NO_LOCAL_DELIVERY, TTL_EXCEEDED
from vpnrouter.core.subscriber import FRAME_MQTT5, FRAME_OWN, Subscriber, Subscription
from vpnrouter.trace.events import BRIDGE_SEND, DIRECT
from vpnrouter.trace.recorder import Context
from vpnrouter.wire.link import encode
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.frames import Extension

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.vpn import MessageVpn

HOPS_MOST = 255
"""Hops that the link header can say; whoever counts that far has lost control of its loops."""


@final
class LinkClient(Subscriber):
    """The client of one link in `vpn`; `peer_id` is "router/vpn" at the other end.

    `bridge` is the bridge's name, for traces. `discarded` counts, by reason, what was not sent.
    """

    __slots__ = ("_sent", "bridge", "max_frame", "peer_router", "peer_vpn", "vpn")

    def __init__(
        self,
        vpn: MessageVpn,
        client_name: str,
        outbox: Outbox,
        bridge: str,
        peer_router: str,
        peer_vpn: str,
    ) -> None:
        super().__init__(client_name, outbox, FRAME_MQTT5)
        self.vpn = vpn
        self.is_link = True
        self.bridge = bridge
        self.peer_router = peer_router
        self.peer_vpn = peer_vpn
        self.vpn_id = f"{peer_router}/{peer_vpn}"
        self.max_frame = limits.LINK_FRAME_BYTES
        self._sent: Context | None = None

    def bound_frames(self, max_frame: int) -> None:
        """The peer takes frames of at most `max_frame` bytes (LINK-15).

        Below the usual bound each frame has to be looked at, so none crosses in a batch.
        """
        self.max_frame = max_frame
        self.frame = FRAME_MQTT5 if max_frame >= limits.LINK_FRAME_BYTES else FRAME_OWN

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Send `message` over the link, unless it has been where the link leads."""
        if message.source is self:
            self.vpn.discards.add(NO_LOCAL_DELIVERY)
            return
        if not may_enter(message.path, self.vpn_id):
            self.vpn.discards.add(LOOP_DETECTED)
            return
        if message.hops >= HOPS_MOST:
            self.vpn.discards.add(TTL_EXCEEDED)
            return
        body = encode.direct_body(message.topic, message.block, message.payload)
        if message.path or message.traced or message.retain:
            path = path_for(message.path, self.vpn.vpn_id)
            traced = message.traced
            extension = Extension(
                path if message.path else [],
                hops=message.hops + 1,
                trace_high=message.trace_high,
                trace_low=message.trace_low,
                message_id=message.message_id,
                trace_flags=1 if traced else 0,
                origin_router=(message.origin_router or self.vpn.plane.router_name)
                if traced
                else "",
                origin_vpn=(message.origin_vpn or self.vpn.name) if traced else "",
                origin_ts_ns=message.origin_ts_ns,
                retain=message.retain,
            )
            frame = encode.direct_x(encode_extension(extension), body)
        else:
            frame = encode.direct(body)
        if len(frame) > self.max_frame:
            # LINK-37: the link stays up, the message is discarded here.
            self.vpn.discards.add(MSG_TOO_BIG)
            return
        self.outbox.offer(frame, 1)
        if message.traced:
            self._trace(message)

    def _trace(self, message: Message) -> None:
        plane = self.vpn.plane
        hops = message.hops + 1
        context = self._sent
        if context is None or context.hops != hops or message.path:
            context = Context(
                BRIDGE_SEND,
                self.vpn.name,
                DIRECT,
                client=self.client_name,
                bridge=self.bridge,
                peer_router=self.peer_router,
                peer_vpn=self.peer_vpn,
                hops=hops,
                path=">".join(message.path),
                origin_router=message.origin_router or plane.router_name,
                origin_vpn=message.origin_vpn or self.vpn.name,
            )
            if not message.path:
                self._sent = context
        plane.recorder.record(
            context,
            plane.wall_ns,
            message.topic,
            message.trace_high,
            message.trace_low,
            message.message_id,
            len(message.payload),
            plane.wall_ns - message.ingress_ns,
            message.origin_ts_ns,
        )
