"""The guaranteed flows to a peer's bridge over one link: bound to queues here, told what the peer says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.flow_owner import FlowOwner
from vpnrouter.bridges.guaranteed_out import GuaranteedOut
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.binding import not_there, permit, unbind_forbidden
from vpnrouter.core.guaranteed.kinds import QUEUE
from vpnrouter.core.guaranteed.permissions import permission_of
from vpnrouter.core.guaranteed.terms import CONSUME
from vpnrouter.core.traces import kept_mode, lost
from vpnrouter.errors import ProtocolError, Refused, SelectorError
from vpnrouter.events.table import BIND_FAILED
from vpnrouter.selectors import parse_selector
from vpnrouter.trace.events import DISCARD
from vpnrouter.wire.link import codes, encode, frames

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.login import Admission
    from vpnrouter.core.message import Message
    from vpnrouter.topics.mapping import TopicMapping
    from vpnrouter.wire.link.decode import Frame

NOT_EXCLUSIVE: Final = f"{reasons.PERMISSION_DENIED}: the queue is not exclusive"
"""A bridge keeps the order of its queue, so it has to be the only one that takes from it."""

CODES: Final[dict[str, int]] = {
    reasons.PERMISSION_DENIED: codes.NOT_AUTHORIZED,
    NOT_EXCLUSIVE: codes.NOT_AUTHORIZED,
    reasons.QUEUE_SHUTDOWN: codes.UNAVAILABLE,
    reasons.INVALID_SELECTOR: codes.SELECTOR_PARSE_ERROR,
    reasons.QUEUE_BINDS: codes.QUOTA_EXCEEDED,
    reasons.TOO_MANY_FLOWS: codes.QUOTA_EXCEEDED,
    reasons.UNKNOWN_QUEUE: codes.UNKNOWN_QUEUE,
}
"""Why a flow is refused → code of LINK-40."""


@final
class OutboundFlows(FlowOwner):
    """The flows to the peer's bridge `name`, logged in as `client` with `admission`. The link numbers them."""

    __slots__ = ("_admission", "_client", "_flows", "_link", "_mapping", "_name", "_told")

    def __init__(
        self,
        link: Link,
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
        self._flows: dict[int, GuaranteedOut] = {}

    def on_frame(self, frame: Frame) -> None:
        """A frame of a flow. Raises ProtocolError for one that never was (LINK-40)."""
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

    def _of(self, flow_id: int) -> GuaranteedOut:
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
            if refused.reason == reasons.PERMISSION_DENIED:
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
        """Raise the event, not for each time that the bridge asks again."""
        text = (
            f"VPN {self._client.vpn.name} client {self._client.client_name}: {why}: queue {queue}"
        )
        events = self._link.plane.events
        if events is not None and text != self._told:
            self._told = text
            events.raise_event(BIND_FAILED, self._client.vpn.name, self._client.client_name, text)

    def _begin(self, frame: frames.Bind) -> None:
        """Bind to the queue. Raises Refused with one of the reasons of CODES, or another one."""
        vpn = self._client.vpn
        spool = vpn.plane.spool
        if spool is None:
            raise Refused(reasons.UNKNOWN_QUEUE, codes.UNKNOWN_QUEUE)
        profile = self._admission.profile
        most = profile.max_egress_flow_count
        count = len(self._flows)
        if count >= limits.LINK_FLOWS or (most and count >= most):
            raise Refused(reasons.TOO_MANY_FLOWS, codes.QUOTA_EXCEEDED)
        if not profile.allow_guaranteed_msg_receive_enabled:
            raise Refused(reasons.PERMISSION_DENIED, codes.NOT_AUTHORIZED)
        endpoint = vpn.endpoints.get((QUEUE, frame.queue))
        if endpoint is None:
            raise not_there(QUEUE, self._admission.username)
        permission = self._permission(endpoint)
        # Before anything that differs from what is said of a queue that is not there.
        permit(endpoint, permission, CONSUME)
        if not endpoint.terms.exclusive:
            raise Refused(NOT_EXCLUSIVE, codes.NOT_AUTHORIZED)
        selector = None
        if frame.selector:
            try:
                selector = parse_selector(frame.selector)
            except SelectorError as error:
                raise Refused(reasons.INVALID_SELECTOR, codes.SELECTOR_PARSE_ERROR) from error
        flow_id = self._link.next_flow_id()
        flow = GuaranteedOut(
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

    def _permission(self, endpoint: Endpoint) -> int:
        username = self._admission.username
        return permission_of(
            endpoint.terms,
            username.name,
            override=username.guaranteed_endpoint_permission_override_enabled,
        )

    def permits(self, endpoint: Endpoint) -> bool:
        """True while profile and permission of the client username let it consume."""
        profile = self._admission.profile
        return (
            profile.allow_guaranteed_msg_receive_enabled and self._permission(endpoint) >= CONSUME
        )

    def judge(self) -> None:
        """Unbind flows that the client username of the login may not have any more."""
        for flow in list(self._flows.values()):
            if not flow.over:
                unbind_forbidden(flow.endpoint)

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
        """The queues that flows stand to, for those who look."""
        return [flow.endpoint.name for flow in self._flows.values() if not flow.over]

    def last_id(self) -> int:
        """The spool id of the newest message that was sent over the flows, 0 for none."""
        return max((flow.last_id for flow in self._flows.values()), default=0)

    def tell(self) -> None:
        """Tell the peer the state of flows that has changed. Called from time to time, not for each message."""
        for flow in self._flows.values():
            if flow.is_open and flow.shown != (flow.active, flow.endpoint.spooled_count):
                self.opened(flow)

    def opened(self, flow: GuaranteedOut) -> None:
        """Tell the peer the state of a flow that it has just been given."""
        flow.shown = (flow.active, flow.endpoint.spooled_count)
        self.say(encode.flow_status(frames.FlowStatus(flow.flow_id, *flow.shown)))

    # -- what a flow tells -----------------------------------------------------------------------

    def party(self) -> Connection | None:
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
