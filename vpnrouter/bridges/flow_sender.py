"""Sends guaranteed flows to a peer's bridge, each from one queue here.

A flow sends within its window, settles what the peer acknowledges, and sends FORGET when that is synced
(LINK-42). What is not acknowledged when the link is lost returns to its place in the queue.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.bridges.link_client import expiry_ms, may_enter, path_for
from vpnrouter.core.discard_reasons import (
    LOOP_DETECTED,
    MSG_TOO_BIG,
    REFUSED,
    TOPIC_PARSE_ERROR,
    TTL_EXCEEDED,
)
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.counters import ACKED
from vpnrouter.core.guaranteed.dead_letters import Passage
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, QUEUE
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, Flow
from vpnrouter.core.guaranteed.refusals import PERMISSION_DENIED, not_there
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.message import AMQP
from vpnrouter.core.tracing import kept_mode, lost
from vpnrouter.errors import ProtocolError, Refused, SelectorError, TopicError
from vpnrouter.events.table import BIND_FAILED
from vpnrouter.selectors import parse_selector
from vpnrouter.trace.events import DISCARD
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.codes import NOT_AUTHORIZED, PROTOCOL_ERROR, UNAVAILABLE, UNKNOWN_QUEUE
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.frames import Extension
from vpnrouter.wire.link.ranges import positions_of, ranges_of

if TYPE_CHECKING:
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.bridges.link_end import LinkEnd
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.login import Admission
    from vpnrouter.core.message import Message
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.mapping import TopicMapping
    from vpnrouter.wire.link.decode import Frame


PORTION: Final = 16
"""Messages that are sent before it is looked again at how much waits for the link."""

LARGE: Final = 65_536
"""Bytes of a frame from which on one is a portion."""

HOPS_MOST: Final = 255
"""Hops that the link header can say."""

NEVER_FITS: Final = "it is larger than a frame of the link"

_FORGET: Final = 1
_BOUND: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
class FlowCallbacks:
    """Callbacks of a flow: the link under it and what it reports."""

    __slots__ = ()

    def owning_connection(self) -> Connection | None:
        """The link to close when something raises."""
        return None

    def say(self, data: bytes) -> None:
        """Queue one frame of the flow on the link; never discarded."""
        raise AssertionError(data)

    def full(self) -> bool:
        """Return whether so much waits for the link that no more should be added."""
        return False

    # -- of a sender -----------------------------------------------------------------------------

    def send(self, data: bytes, message: Message) -> None:
        """Queue the frame of one message on the link; never discarded."""
        self.say(data)

    def discarded(self, message: Message, reason: str) -> None:
        """A message was discarded, for a reason of core/discard_reasons.py. It is settled at both ends."""

    def permits(self, endpoint: Endpoint) -> bool:
        """True while the peer may take from `endpoint`."""
        return True

    def opened(self, flow: FlowSender) -> None:
        """A flow was bound, or it became active or inactive."""

    # -- of a receiver ---------------------------------------------------------------------------

    def stalled(self, reason: str) -> None:
        """The message VPN refuses a message and everything behind it waits."""

    def released(self) -> None:
        """A message that was refused before was accepted."""

    def stopped(self, reason: str) -> None:
        """A message was refused as often as the bridge tolerates, which is to stop then."""

    def bound(self) -> None:
        """The flow was bound."""

    def unbound(self, code: int, reason: str) -> None:
        """The flow is over, or was refused; `code` is one of LINK-40."""

    def received(self, message: Message, size: int) -> None:
        """A message was received, in a frame of `size` bytes. Its outcome is reported later."""

    def passed_over(self, size: int, reason: str) -> None:
        """A message was received in a frame of `size` bytes and skipped, for a reason of core/discard_reasons.py."""

    def entered(self, outcome: int) -> None:
        """A received message was accepted; `outcome` is the spool's."""

    def returned(self, count: int, reason: str) -> None:
        """`count` received messages went back to the sender, for a reason of core/discard_reasons.py."""


@final
class FlowSender(Flow):
    """The flow `flow_id` to the peer of `client`. `outcomes` counts what became of messages that are in no
    endpoint there, by outcome of SETTLED; `rejected` what was refused there, `stalled` why the peer holds what
    it got (""); `max_frame` bounds a frame, `mapping` renames what leaves. `told`: BOUND has named it; `over`: it
    has ended here. `last_id` is the message that was sent last, `shown` what
    the peer was told of the flow (LINK-50). `taker` is the name of the peer's
    bridge and its client username, which were proved.
    """

    __slots__ = (
        "_client",
        "_forgotten",
        "_last_bytes",
        "_open",
        "_owner",
        "_portion",
        "_reply",
        "_settling",
        "_taker",
        "flow_id",
        "last_id",
        "mapping",
        "max_frame",
        "outcomes",
        "over",
        "rejected",
        "shown",
        "stalled",
        "told",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        owner: FlowCallbacks,
        client: LinkClient,
        flow_id: int,
        bind: frames.Bind,
        selector: Selector | None = None,
        mapping: TopicMapping | None = None,
        taker: str = "",
    ) -> None:
        super().__init__(endpoint, client.client_name, bind.window, selector)
        self._taker = taker or client.client_name
        self.flow_id = flow_id
        self.last_id = 0
        self.shown: tuple[bool, int, int] = (False, 0, 0)
        self.max_frame = client.max_frame
        self.outcomes: dict[int, int] = {}
        self.rejected = 0
        self.stalled = ""
        self._owner = owner
        self._client = client
        self.mapping = mapping
        self._open = False
        self.over = False
        self.told = False
        # Settled and not synced yet, by the ACK that they came with, oldest first; how many together.
        self._settling: deque[list[tuple[int, int]]] = deque()
        self._forgotten = 0
        self._portion = 0
        self._last_bytes = LARGE
        self._reply = frames.Bound(bind.request_id, 0, flow_id, bind.window, b"")

    # -- the flow comes and goes -----------------------------------------------------------------

    def begin(self, bind: frames.Bind, store_id: bytes, permission: int, needed: int) -> None:
        """Bind to the queue, settle what the peer has, and say BOUND when that is synced.

        Raises Refused with the field's reason; nothing has been said or settled then.
        """
        endpoint = self.endpoint
        endpoint.bind(self, permission, needed)
        endpoint.remember_bridge(self._client.peer_bridge)
        # A bridge can have accepted only what was sent to it. Everything else that is still here is sent
        # again; the peer acknowledges at once what it knows, for example after a restart.
        lent = endpoint.lent.pop(self._taker, set())
        kept: list[int] = []
        for position in positions_of(bind.accepted.get(store_id, [])):
            if position in lent:
                _settle(endpoint, position)
            elif endpoint.holds(position):
                kept.append(position)
        self._reply.kept = ranges_of(kept)
        self._reply.store_id = store_id
        endpoint.spool.when_synced(self, _BOUND)

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Send BOUND, or forget positions: what it waited for is synced."""
        if token == _FORGET:
            self.forget()
        else:
            self.open()

    def open(self) -> None:
        """Send BOUND, since all that the peer named is settled for good, and begin to deliver."""
        if self.over:
            return
        self._open = True
        self.told = True
        self._owner.say(encode.bound(self._reply))
        self._owner.opened(self)
        self.endpoint.wake()

    @property
    def is_open(self) -> bool:
        """Return whether BOUND was sent to the peer, and UNBOUND was not."""
        return self._open

    def state(self) -> tuple[bool, int, int]:
        """Return whether it gets messages, how many the queue has, and how often one has waited for the window."""
        return self.active, self.endpoint.spooled_count, self.window_closed

    def activated(self, active: bool) -> None:
        """Send FLOW_STATUS: whether the flow is active, for the peer's operator."""
        if self._open:
            self._owner.opened(self)

    def on_unbind(self) -> None:
        """End the flow at the peer's request, and answer UNBOUND."""
        self.end()
        self._owner.say(encode.unbound(frames.Unbound(self.flow_id)))

    def permitted(self) -> bool:
        """True while the client username of the bridge may consume from the queue."""
        return self._owner.permits(self.endpoint)

    def unbound(self, reason: str) -> None:
        """End a flow whose queue was shut down, deleted or may not be used; the peer answers with UNBOUND."""
        code = UNKNOWN_QUEUE if self.endpoint.deleted else UNAVAILABLE
        if reason == PERMISSION_DENIED:
            code = NOT_AUTHORIZED
        was_open = self._open
        self.end()
        if was_open:
            self._owner.say(encode.unbind(frames.Unbind(self.flow_id, code, reason)))
        else:
            refusal = frames.Bound(self._reply.request_id, code, 0, 0, bytes(16), reason)
            self._owner.say(encode.bound(refusal))

    def letting_go(self) -> None:
        """Remember what was sent: the peer may have accepted any of it, and says so when it is back."""
        if self.unacked:
            lent = self.endpoint.lent
            if self._taker not in lent and len(lent) >= limits.ENDPOINT_BRIDGES:
                del lent[next(iter(lent))]
            lent.setdefault(self._taker, set()).update(self.unacked)

    def end(self) -> None:
        """The flow is over, or the link is lost: what was not acknowledged is the queue's again."""
        if self.over:
            return
        self._open = False
        self.endpoint.unbind(self, counts=False)
        # Last: if the code above raises, a second call goes on behind it.
        self.over = True

    # -- messages --------------------------------------------------------------------------------

    def owning_connection(self) -> Connection | None:
        """The link that the flow is sent over."""
        return self._owner.owning_connection()

    def room(self) -> int:
        """Messages that may be sent now, by the window and by what the link has room for."""
        if not self._open:
            return 0
        out = len(self.unacked)
        connection = self._owner.owning_connection()
        has_budget = connection is None or self.has_budget(connection, connection.outbox)
        if out and (self._owner.full() or not has_budget):
            # An acknowledgement comes, and looks again.
            return 0
        self.budget = max(1, self.budget)
        self._portion = PORTION if self._last_bytes < LARGE else 1
        most = min(self.window, self.endpoint.settings.max_delivered_unacked_msgs_per_flow)
        return min(min(most, limits.LINK_FLOW_POSITIONS - self._forgotten) - out, self._portion)

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Send a message, or settle it where it cannot be sent."""
        reason = self._obstacle(message)
        frame = b""
        if not reason:
            try:
                frame = self._encoded(message_id, message, count)
            except TopicError:
                reason = TOPIC_PARSE_ERROR
        if len(frame) > self.max_frame:
            # LINK-37: it will never fit.
            self._reject(message_id, NEVER_FITS, MSG_TOO_BIG)
            self._owner.discarded(message, MSG_TOO_BIG)
        elif reason:
            if self.endpoint.watched is not None:
                self.endpoint.watched.lost(message_id)
            self.endpoint.settle(self, message_id, ACCEPTED)
            self._owner.discarded(message, reason)
        else:
            self._last_bytes = len(frame)
            self.last_id = message_id
            self._owner.send(frame, message)
        self._portion -= 1
        if self._portion == 0:
            # Look again at what waits for the link.
            self.endpoint.wake()

    def _obstacle(self, message: Message) -> str:
        """Return why the message may never be sent to this peer, "" where it may (LINK-36)."""
        if not may_enter(message.path, self._client.vpn_id):
            return LOOP_DETECTED
        if message.hops >= HOPS_MOST:
            return TTL_EXCEEDED
        return ""

    def _encoded(self, message_id: int, message: Message, count: int) -> bytes:
        if message.encoding == AMQP and not self._client.takes_amqp:
            message = message.mqtt()
        flags = frames.PERSISTENT if message.persistent else 0
        if message.qos == 2:
            flags |= frames.EXACTLY_ONCE
        if message.dmq_eligible:
            flags |= frames.DMQ_ELIGIBLE
        if count:
            flags |= frames.REDELIVERED
        topic = message.topic
        if self.mapping is not None:
            topic = self.mapping.apply_bytes(topic)
        extension = b""
        if (
            message.path
            or message.expires_ns
            or message.message_id
            or message.traced
            or message.retain
            or message.encoding == AMQP
        ):
            extension = encode_extension(self._extension(message))
        body = encode.direct_body(topic, message.block, message.payload)
        return encode.guaranteed(self.flow_id, message_id, flags, message.priority, extension, body)

    def _extension(self, message: Message) -> Extension:
        vpn = self.endpoint.vpn
        context = vpn.context
        traced = message.traced
        return Extension(
            path_for(message.path, vpn.vpn_id) if message.path else [],
            hops=message.hops + 1,
            trace_high=message.trace_high,
            trace_low=message.trace_low,
            message_id=message.message_id,
            trace_flags=1 if traced else 0,
            origin_router=(message.origin_router or context.router_name) if traced else "",
            origin_vpn=(message.origin_vpn or vpn.name) if traced else "",
            origin_ts_ns=message.origin_ts_ns,
            retain=message.retain,
            expiry_ms=expiry_ms(message, context.now_ns),
            amqp=message.encoding == AMQP,
            priority=message.priority,
            volatile=message.volatile,
        )

    # -- answers ---------------------------------------------------------------------------------

    def on_ack(self, frame: frames.Ack) -> None:
        """Act on ACK (LINK-42). Raises ProtocolError for more positions than can have been sent."""
        self.window = min(frame.window, self._reply.window)
        count = 0
        for _, length in frame.ranges:
            count += length
        if self._forgotten + count > limits.LINK_FLOW_POSITIONS:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-42: ACK of more than was sent")
        for position in self._out_of(frame.ranges, count):
            self.endpoint.settle(self, position, ACCEPTED)
        if count:
            fault = self.endpoint.spool.fault
            if fault is not None:
                fault("bridge-forget-before-send")
            self.stalled = ""
            # Positions that are not here were taken away meanwhile; the peer may forget them as well.
            self._settling.append(frame.ranges)
            self._forgotten += count
            self.endpoint.spool.when_synced(self, _FORGET)
        else:
            self.endpoint.wake()

    def _out_of(self, ranges: list[tuple[int, int]], count: int) -> list[int]:
        """Those of the `count` positions in `ranges` that are unacknowledged. The work is bounded by their number."""
        unacked = self.unacked
        if count <= len(unacked):
            return positions_of(ranges)
        found: list[int] = []
        for first, length in ranges:
            if length <= len(unacked):
                found += list(range(first, first + length))
            else:
                found += [position for position in unacked if first <= position < first + length]
        return found

    def forget(self) -> None:
        """Send FORGET for the oldest of what was settled, which is synced now."""
        ranges = self._settling.popleft()
        for _, length in ranges:
            self._forgotten -= length
        if self._open:
            frame = frames.Forget(self.flow_id, ranges)
            self._owner.say(encode.forget(frame))
            self.endpoint.wake()

    def on_reject(self, frame: frames.Reject) -> None:
        """Act on REJECT (LINK-43): note a stall, or settle the message by its fate."""
        self.rejected += 1
        if frame.fate == frames.HELD:
            self.stalled = frame.reason
        elif frame.fate == frames.AGAIN:
            self.endpoint.settle(self, frame.position, FAILED)
        else:
            self._reject(frame.position, frame.reason, REFUSED)

    def _reject(self, position: int, why: str, cause: str) -> None:
        """Give a message up that the bridge of the peer cannot have, and say so on the dead letter."""
        message = self.unacked.get(position)
        if message is None:
            return
        vpn = self.endpoint.vpn
        topic = message.topic.decode(errors="replace")
        bridge = self._taker.rpartition("\0")[2]
        passage = Passage(
            f"bridge {bridge}", self.endpoint.name, vpn.vpn_id, topic, self._client.vpn_id
        )
        more = passage.pairs(message, cause, position, vpn.context.wall_ns)
        self.endpoint.reject(self, position, why, more)

    def on_settled(self, frame: frames.Settled) -> None:
        """Act on SETTLED (LINK-43). Positions that are not unacknowledged are ignored."""
        if frame.position not in self.unacked:
            return
        self.outcomes[frame.outcome] = self.outcomes.get(frame.outcome, 0) + 1


def _settle(endpoint: Endpoint, position: int) -> None:
    """Settle a message that the bridge took over an earlier flow."""
    if endpoint.waits(position):
        if endpoint.watched is not None:
            endpoint.watched.accepted(position)
        endpoint.lose(position, ACKED)
        return
    for flow in endpoint.holders():
        if endpoint.settle(flow, position, ACCEPTED):
            return


NOT_EXCLUSIVE: Final = f"{refusals.PERMISSION_DENIED}: the queue is not exclusive"
"""A bridge keeps the order of its queue, so it has to be the only one that takes from it."""

CODES: Final[dict[str, int]] = {
    refusals.PERMISSION_DENIED: codes.NOT_AUTHORIZED,
    NOT_EXCLUSIVE: codes.NOT_AUTHORIZED,
    refusals.QUEUE_SHUTDOWN: codes.UNAVAILABLE,
    refusals.INVALID_SELECTOR: codes.SELECTOR_PARSE_ERROR,
    refusals.QUEUE_BINDS: codes.QUOTA_EXCEEDED,
    refusals.TOO_MANY_FLOWS: codes.QUOTA_EXCEEDED,
    refusals.UNKNOWN_QUEUE: codes.UNKNOWN_QUEUE,
}
"""Why a flow is refused → code of LINK-40."""


@final
class FlowSenders(FlowCallbacks):
    """The flows to the peer's bridge `name`, logged in as `client` with `admission`. The link numbers them."""

    __slots__ = ("_admission", "_client", "_flows", "_link", "_mapping", "_name", "_told")

    def __init__(
        self,
        link: LinkEnd,
        client: LinkClient,
        admission: Admission,
        mapping: TopicMapping | None,
        name: str,
    ) -> None:
        self._name = name
        self._told = ""
        self._link = link
        self._client = client
        self._admission = admission
        self._mapping = mapping
        self._flows: dict[int, FlowSender] = {}

    def on_frame(self, frame: Frame) -> None:
        """Act on a frame of a flow. Raises ProtocolError for a flow that never was (LINK-40)."""
        if isinstance(frame, frames.Bind):
            self._bind(frame)
        elif isinstance(frame, frames.Unbind):
            flow = self._of(frame.flow_id)
            was_over = flow.over
            flow.on_unbind()
            if not was_over:
                del self._flows[frame.flow_id]
        elif isinstance(frame, frames.Unbound):
            if not self._of(frame.flow_id).over:
                raise ProtocolError(codes.PROTOCOL_ERROR, "LINK-40: UNBOUND without UNBIND")
            del self._flows[frame.flow_id]
        elif isinstance(frame, (frames.Ack, frames.Reject, frames.Settled)):
            flow = self._of(frame.flow_id)
            # What is still said of a flow that was unbound here is passed over.
            if flow.over:
                return
            if isinstance(frame, frames.Ack):
                flow.on_ack(frame)
            elif isinstance(frame, frames.Reject):
                flow.on_reject(frame)
            else:
                flow.on_settled(frame)

    def _of(self, flow_id: int) -> FlowSender:
        flow = self._flows.get(flow_id)
        if flow is None or not flow.told:
            raise ProtocolError(codes.PROTOCOL_ERROR, f"LINK-40: flow {flow_id} is not bound")
        return flow

    def _bind(self, frame: frames.Bind) -> None:
        # Those that were never told to the peer need no answer from it.
        for flow_id, known in list(self._flows.items()):
            if known.over and not known.told:
                del self._flows[flow_id]
        try:
            self._begin(frame)
        except Refused as refused:
            if refused.reason == refusals.PERMISSION_DENIED:
                self._tell_denied(frame.queue, refused.why)
            code = CODES.get(refused.reason, codes.UNAVAILABLE)
            answer = frames.Bound(
                frame.request_id,
                code,
                0,
                0,
                bytes(frames.STORE_ID_BYTES),
                refused.reason,
            )
            self.say(encode.bound(answer))

    def _tell_denied(self, queue: str, why: str) -> None:
        """Raise the event once, not for each time that the bridge binds again."""
        text = (
            f"VPN {self._client.vpn.name} client {self._client.client_name}: {why}: queue {queue}"
        )
        events = self._link.context.events
        if events is not None and text != self._told:
            self._told = text
            events.raise_event(BIND_FAILED, self._client.vpn.name, self._client.client_name, text)

    def _begin(self, frame: frames.Bind) -> None:
        """Bind to the queue. Raises Refused with one of the reasons of CODES, or another one."""
        vpn = self._client.vpn
        spool = spool_of(vpn.context)
        if spool is None:
            raise Refused(refusals.UNKNOWN_QUEUE, codes.UNKNOWN_QUEUE)
        profile = self._admission.profile
        most = profile.max_egress_flow_count
        count = len(self._flows)
        if count >= min(limits.LINK_FLOWS, most):
            raise Refused(refusals.TOO_MANY_FLOWS, codes.QUOTA_EXCEEDED)
        if not profile.allow_guaranteed_msg_receive_enabled:
            raise Refused(refusals.PERMISSION_DENIED, codes.NOT_AUTHORIZED)
        endpoint = endpoints_of(vpn).get((QUEUE, frame.queue))
        if endpoint is None:
            raise not_there(QUEUE, self._admission.username)
        permission = self._admission.username.permission_on(endpoint.settings)
        # Before anything that differs from what is said of a queue that is not there.
        endpoint.permit(permission, CONSUME)
        if not endpoint.settings.exclusive:
            raise Refused(NOT_EXCLUSIVE, codes.NOT_AUTHORIZED)
        selector = None
        if frame.selector:
            try:
                selector = parse_selector(frame.selector)
            except SelectorError as error:
                raise Refused(refusals.INVALID_SELECTOR, codes.SELECTOR_PARSE_ERROR) from error
        flow_id = self._link.next_flow_id()
        flow = FlowSender(
            endpoint,
            self,
            self._client,
            flow_id,
            frame,
            selector,
            self._mapping,
            f"{self._admission.username.name}\0{self._name}",
        )
        # Before it is bound: if the code below raises, the flow ends with this half.
        self._flows[flow_id] = flow
        try:
            flow.begin(frame, spool.ledger.store_id, permission, CONSUME)
        except Refused:
            del self._flows[flow_id]
            raise

    def permits(self, endpoint: Endpoint) -> bool:
        """True while profile and permission of the client username let it consume."""
        profile = self._admission.profile
        return (
            profile.allow_guaranteed_msg_receive_enabled
            and self._admission.username.permission_on(endpoint.settings) >= CONSUME
        )

    def judge(self) -> None:
        """Unbind flows that the client username of the login may not have any more."""
        for flow in list(self._flows.values()):
            if not flow.over:
                flow.endpoint.unbind_forbidden()

    def rename(self, mapping: TopicMapping | None) -> None:
        """Topics are renamed in another way from now on."""
        self._mapping = mapping
        for flow in self._flows.values():
            flow.mapping = mapping

    def end(self) -> None:
        """The half is over: what was not acknowledged is the queues' again."""
        for flow_id, flow in list(self._flows.items()):
            flow.end()
            del self._flows[flow_id]

    def queues(self) -> list[str]:
        """The queues with a bound flow, for monitoring."""
        return [flow.endpoint.name for flow in self._flows.values() if not flow.over]

    def last_id(self) -> int:
        """The spool id of the newest message that was sent over the flows, 0 for none."""
        return max((flow.last_id for flow in self._flows.values()), default=0)

    def tell(self) -> None:
        """Send the state of flows that has changed. Called from time to time, not for each message."""
        for flow in self._flows.values():
            if flow.is_open and flow.shown != flow.state():
                self.opened(flow)

    def opened(self, flow: FlowSender) -> None:
        """Send the state of a flow to the peer that was bound just now."""
        flow.shown = flow.state()
        self.say(encode.flow_status(frames.FlowStatus(flow.flow_id, *flow.shown)))

    # -- what a flow tells -----------------------------------------------------------------------

    def owning_connection(self) -> Connection | None:
        """The link that the flows are sent over."""
        return self._link

    def say(self, data: bytes) -> None:
        """Send a frame over the link."""
        self._link.say(data)

    def full(self) -> bool:
        """True while the link's outbox is more than half full."""
        outbox = self._link.outbox
        return outbox.size * 2 > outbox.limit

    def send(self, data: bytes, message: Message) -> None:
        """Send a guaranteed message, and count it."""
        outbox = self._link.outbox
        outbox.control(data)
        outbox.messages += 1
        outbox.bytes_ += len(data)
        client = self._client
        client.offered += 1
        if message.traced:
            client.trace_sent(message, kept_mode(message))

    def discarded(self, message: Message, reason: str) -> None:
        """Count a message that cannot be sent, by reason."""
        client = self._client
        client.offered += 1
        client.discarded.add(reason)
        client.vpn.discards.add(reason)
        lost(client.vpn, DISCARD, message, kept_mode(message), "", reason, client)
