"""The session of a connector at a provider of AMQP: windows, links, and what is not settled (AMQP 1.0, 2.5)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, final

from vpnrouter import limits
from vpnrouter.connectors.amqp.link import said
from vpnrouter.connectors.amqp.receiver import Receiver
from vpnrouter.connectors.amqp.sender import Sender
from vpnrouter.core.amqp.serials import HALF, SERIAL, SerialOrder
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
)
from vpnrouter.wire.amqp.transfers import OutgoingTransfer, disposition

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.client import AmqpProvider
    from vpnrouter.connectors.amqp.link import OutgoingLink, ProviderLink

CHANNEL: Final = 0
"""Our channel. The provider chooses its own."""

WAKE_SHIFT: Final = 2
"""What looks at links cost, in parts of a turn (TurnContext.work): so many bits are shifted out of their number."""

OUTCOME_WORK: Final = 4
"""What the outcome of one delivery costs."""

OUTGOING_COST: Final = 256
"""Bytes that a message takes that waits for the provider's window, besides its content."""


@final
class ClientSession:
    """One session, begun by us on channel 0.

    `peer_channel` is the provider's, -1 until it has answered. `window` is how many transfers more it takes; what is
    beyond that waits in `backlog`, in order. `unsettled` are the deliveries to it that it has not settled, by id: their
    link and the spool's id of the message (to a coordinator, what it is asked for), in the order of sending.
    """

    __slots__ = (
        "_accepted",
        "_accepted_first",
        "_accepted_last",
        "_asked",
        "_by_peer",
        "_deliveries",
        "_handles",
        "_incoming_left",
        "_links",
        "_next_handle",
        "_next_incoming",
        "_next_outgoing",
        "_order",
        "backlog",
        "client",
        "peer_channel",
        "unsettled",
        "window",
    )

    def __init__(self, client: AmqpProvider) -> None:
        self.client = client
        self.peer_channel = -1
        self.window = 0
        self.backlog: deque[OutgoingTransfer] = deque()
        self.unsettled: dict[int, tuple[OutgoingLink, int]] = {}
        self._order = SerialOrder()
        # Links by our handle, those that are not answered by name and direction, and others by the provider's handle.
        self._links: dict[int, ProviderLink] = {}
        self._asked: dict[tuple[str, bool], ProviderLink] = {}
        self._by_peer: dict[int, ProviderLink] = {}
        self._next_handle = 0
        self._handles = limits.AMQP_LINKS
        self._deliveries = 0
        self._next_incoming = 0
        self._incoming_left = limits.AMQP_WINDOW
        self._next_outgoing = 0
        # The disposition that is the last frame of the outbox, and the deliveries that it accepts.
        self._accepted = b""
        self._accepted_first = 0
        self._accepted_last = 0

    # -- links -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Ask for the session."""
        self.say(Begin(None, 0, limits.AMQP_WINDOW, SERIAL, limits.AMQP_LINKS - 1))

    def say(self, performative: tuple[Any, ...]) -> None:
        """Send a frame of this session without a payload."""
        self.client.amqp_connection.say(performative, CHANNEL)

    def next_handle(self) -> int:
        """Return a handle that is not in use, -1 where the provider allows no more."""
        handle = self._next_handle
        while handle in self._links:
            handle += 1
        if handle >= self._handles:
            return -1
        self._next_handle = handle + 1
        return handle

    def attach(self, link: ProviderLink) -> None:
        """Ask for a link."""
        self._links[link.handle] = link
        self._asked[link.name, link.receives] = link
        self.say(link.request())

    def sender(self, handle: int) -> Sender | None:
        """Return the link that messages are sent over under a handle of ours, None for none."""
        link = self._links.get(handle)
        return link if isinstance(link, Sender) and not link.over else None

    def receiver(self, handle: int) -> Receiver | None:
        """Return the link that brings messages in under a handle of the provider, None for none."""
        link = self._by_peer.get(handle)
        return link if isinstance(link, Receiver) and not link.over else None

    def wake(self) -> None:
        """The window is open again: have all links look for what they can send."""
        links = list(self._links.values())
        self.client.vpn.context.work += len(links) >> WAKE_SHIFT
        for link in links:
            link.wake()

    # -- what the provider sends -----------------------------------------------------------------

    def handle(
        self, channel: int, performative: tuple[Any, ...], payload: bytes, length: int
    ) -> None:
        """Handle one frame of `length` bytes. Raises ProtocolError, which ends the connection."""
        if isinstance(performative, Begin):
            self._begun(channel, performative)
            return
        if channel != self.peer_channel:
            raise ProtocolError(conditions.NOT_ALLOWED, f"2.5.1: no session on channel {channel}")
        if isinstance(performative, Transfer):
            self._transfer(performative, payload, length)
        elif isinstance(performative, Disposition):
            self._disposition(performative)
        elif isinstance(performative, Flow):
            self._flow(performative)
        elif isinstance(performative, Attach):
            self._attached(performative)
        elif isinstance(performative, Detach):
            self._detached(performative)
        elif isinstance(performative, End):
            self.say(End())
            self.client.end(
                f"the provider ended the session: {said(performative.error, self.client)}"
            )

    def _begun(self, channel: int, packet: Begin) -> None:
        if packet.remote_channel != CHANNEL or self.peer_channel >= 0:
            raise ProtocolError(conditions.NOT_ALLOWED, "2.7.2: nobody asked for this session")
        self.peer_channel = channel
        self.window = packet.incoming_window
        self._handles = min(packet.handle_max + 1, limits.AMQP_LINKS)
        self._next_incoming = packet.next_outgoing_id
        self.client.begun()

    def _attached(self, packet: Attach) -> None:
        # The provider's role is the other one.
        link = self._asked.pop((packet.name, not packet.role), None)
        if link is None:
            raise ProtocolError(conditions.NOT_ALLOWED, "2.6.3: nobody asked for this link")
        if packet.handle in self._by_peer:
            text = f"2.6.2: handle {packet.handle} is attached"
            raise ProtocolError(conditions.HANDLE_IN_USE, text)
        self._by_peer[packet.handle] = link
        link.answered(packet)

    def _link(self, handle: int) -> ProviderLink:
        link = self._by_peer.get(handle)
        if link is None:
            raise ProtocolError(conditions.UNATTACHED_HANDLE, f"2.6.2: handle {handle}")
        return link

    def _detached(self, packet: Detach) -> None:
        link = self._link(packet.handle)
        del self._by_peer[packet.handle]
        self._links.pop(link.handle, None)
        self._next_handle = min(self._next_handle, link.handle)
        link.detached(packet)

    def _transfer(self, packet: Transfer, payload: bytes, length: int) -> None:
        self.came()
        link = self._link(packet.handle)
        if not isinstance(link, Receiver):
            raise ProtocolError(
                conditions.ERRANT_LINK, "2.6.12: it sends on a link that we send on"
            )
        if not link.over:
            link.transfer(packet, payload, length)

    def came(self) -> None:
        """Count a transfer. Raises ProtocolError for one beyond the window."""
        self._next_incoming = (self._next_incoming + 1) & SERIAL
        self._incoming_left -= 1
        if self._incoming_left < 0:
            raise ProtocolError(conditions.WINDOW_VIOLATION, "2.5.6: a transfer beyond the window")
        if self._incoming_left <= limits.AMQP_WINDOW // 2:
            self._incoming_left = limits.AMQP_WINDOW
            self.say(self.flow())

    def flow(self) -> Flow:
        """Return a flow with the state of the session."""
        return Flow(self._next_incoming, self._incoming_left, self._next_outgoing, SERIAL)

    def _flow(self, packet: Flow) -> None:
        # 2.5.6: what the peer has not seen yet of ours counts against its window.
        base = 0 if packet.next_incoming_id is None else packet.next_incoming_id
        room = (base + packet.incoming_window - self._next_outgoing) & SERIAL
        self.window = 0 if room >= HALF and packet.incoming_window < HALF else room
        self._send_backlog()
        if packet.handle is None:
            if packet.echo:
                self.say(self.flow())
        else:
            link = self._link(packet.handle)
            if not link.over:
                link.flow(packet)
        if self.window and not self.backlog:
            self.wake()

    def _disposition(self, packet: Disposition) -> None:
        if not packet.role:
            # It settles what it has sent: we settle first, and have done so.
            return
        first = packet.first
        count = (first if packet.last is None else packet.last) - first & SERIAL
        if count >= HALF:
            raise ProtocolError(conditions.INVALID_FIELD, "2.7.6: last before first")
        unsettled = self.unsettled
        self._order.catch_up(self._deliveries, unsettled)
        found = self._order.within(first, count, unsettled)
        self.client.vpn.context.work += len(found) * OUTCOME_WORK
        for number in found:
            if packet.settled or packet.state is not None:
                known = unsettled.get(number)
                # One transaction that fails takes other deliveries with it.
                if known is None:
                    continue
                if known[0].settled(known[1], packet.state, done=packet.settled):
                    unsettled.pop(number, None)
                    if not packet.settled:
                        self.say(Disposition(False, number, number, True, packet.state))
        self.client.answered()

    # -- what the provider is sent ---------------------------------------------------------------

    def take_id(self) -> int:
        """Return the id of one more delivery (2.8.7)."""
        number = self._deliveries
        self._deliveries = number + 1
        return number & SERIAL

    def transmit(self, outgoing: OutgoingTransfer) -> None:
        """Send a message. What is beyond the provider's window is kept, not cut yet."""
        if self.backlog or not self._send(outgoing):
            connection = self.client.connection
            if connection.take(outgoing.size + OUTGOING_COST):
                self.backlog.append(outgoing)
            else:
                connection.grows_out()

    def _send(self, outgoing: OutgoingTransfer) -> bool:
        """Send frames as far as the provider's window goes; True when all have gone."""
        outbox = self.client.connection.outbox
        while self.window:
            frame = outgoing.next()
            self.window -= 1
            self._next_outgoing = (self._next_outgoing + 1) & SERIAL
            outbox.control(frame)
            outbox.bytes_ += len(frame)
            if outgoing.size == 0:
                outbox.messages += 1
                return True
        return False

    def _send_backlog(self) -> None:
        connection = self.client.connection
        while self.backlog and self.window:
            outgoing = self.backlog[0]
            before = outgoing.size
            done = self._send(outgoing)
            connection.give_back(before - outgoing.size)
            if done:
                self.backlog.popleft()
                connection.give_back(OUTGOING_COST)

    def accept(self, delivery: int) -> None:
        """Settle a delivery as accepted; in one frame with the ones before it where that can be."""
        outbox = self.client.connection.outbox
        chunks = outbox.chunks
        follows = (self._accepted_last + 1) & SERIAL == delivery
        if self._accepted and follows and chunks and chunks[-1] is self._accepted:
            frame = disposition(CHANNEL, True, self._accepted_first, delivery, True)
            chunks[-1] = frame
        else:
            frame = disposition(CHANNEL, True, delivery, delivery, True)
            outbox.control(frame)
            self._accepted_first = delivery
        self._accepted = frame
        self._accepted_last = delivery

    # -- the end ---------------------------------------------------------------------------------

    def forget(self, link: OutgoingLink) -> None:
        """Forget the deliveries of a link: the provider says nothing of them any more."""
        gone = [number for number, known in self.unsettled.items() if known[0] is link]
        for number in gone:
            del self.unsettled[number]

    def end(self) -> None:
        """Let go of all: the connection has ended."""
        for link in self._links.values():
            link.over = True
            if isinstance(link, Sender):
                link.end()
        while self.backlog:
            outgoing = self.backlog.popleft()
            self.client.connection.give_back(outgoing.size + OUTGOING_COST)
        self.unsettled.clear()
