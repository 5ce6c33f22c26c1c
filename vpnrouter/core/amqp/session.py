"""Sessions of an AMQP connection: windows, links by handle, and the deliveries that are not settled (AMQP 1.0, 2.5)."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, final

from vpnrouter import limits
from vpnrouter.core.amqp.attach import attach
from vpnrouter.core.amqp.errors import error
from vpnrouter.core.amqp.link import LINK_COST, REFUSED_COST
from vpnrouter.core.amqp.outcomes import is_outcome
from vpnrouter.core.amqp.receiving_link import ReceivingLink
from vpnrouter.core.amqp.sending_link import SendingLink
from vpnrouter.core.amqp.serials import HALF, SERIAL, SerialOrder
from vpnrouter.core.guaranteed.flow import ACCEPTED
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.timers import Job
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.transfers import OutgoingTransfer, disposition

if TYPE_CHECKING:
    from vpnrouter.core.amqp.connection import AmqpConnection
    from vpnrouter.core.amqp.link import Link
    from vpnrouter.core.connection import Connection

WOKEN_AT_ONCE: Final = 32
"""Links that are looked at in the turn that asks for it; more of them in slices."""

AT_ONCE: Final = 1_024
"""Deliveries whose acceptance is taken at once, about a millisecond's work; the outcomes of more of them in slices."""

OUTGOING_COST: Final = 256
"""Bytes that a message takes that waits for the client's window, besides its content."""

OUTCOME_WORK: Final = 4
"""What the outcome of one delivery costs, in parts of a turn (TurnContext.work)."""

OUTCOMES: Final = 32
"""Outcomes that are taken before the work of this turn is looked at again."""

WAKE_WORK: Final = 3
"""What a look at a link costs that has nothing to send."""


@final
class Outcomes(Job):
    """What a client says of deliveries, or of its own: `numbers` are those that are there."""

    __slots__ = ("_at", "_numbers", "_packet", "_session")

    def __init__(self, session: AmqpSession, packet: Disposition, numbers: list[int]) -> None:
        super().__init__()
        self._session = session
        self._packet = packet
        self._numbers = numbers
        self._at = 0

    def step(self) -> bool:
        """Take outcomes until this turn has done enough; after the last one, answer and read the client again."""
        session = self._session
        connection = session.connection
        context = connection.context
        numbers = self._numbers
        while self._at < len(numbers) and not session.over and not connection.closing:
            if context.turn_spent:
                return False
            some = numbers[self._at : self._at + OUTCOMES]
            self._at += len(some)
            context.work += len(some) * OUTCOME_WORK
            session.take_outcomes(self._packet, some)
        if not session.over and not connection.closing:
            session.took_outcomes(self._packet, len(numbers))
        connection.worked()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._session.connection


@final
class WakeLinks(Job):
    """The links of a connection that are still to be looked at. The client's frames need not wait for it."""

    __slots__ = ("_connection", "links")

    def __init__(self, connection: AmqpConnection) -> None:
        super().__init__()
        self._connection = connection
        self.links: dict[SendingLink, None] = {}

    def step(self) -> bool:
        """Look at links until this turn has done enough."""
        context = self._connection.context
        links = self.links
        while links and not context.turn_spent:
            # A few together: the front of a map is found behind all that was there before.
            for link in list(islice(links, WOKEN_AT_ONCE)):
                del links[link]
                context.work += WAKE_WORK
                link.wake()
        return not links

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._connection


@final
class _SettledAnswer(CompletionCallback):
    """Settles deliveries to a client that settles second, once its outcomes are synced."""

    __slots__ = ("_answer", "_session")

    def __init__(self, session: AmqpSession, answer: Disposition) -> None:
        self._session = session
        self._answer = answer

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Tell the client."""
        session = self._session
        if not session.over and not session.connection.closing:
            session.say(self._answer)

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._session.connection


@final
class AmqpSession:
    """One session, on the same channel in both directions.

    `links` are by handle, the same in both directions. `unsettled` are the deliveries to the client that it has not
    settled, by id: their link and the spool's id. `deliveries` counts all that were made, settled or not. `incoming`
    are the links of the deliveries that the client is to settle, by id. `window` is how many transfers more the client
    takes; what is beyond that waits in `backlog`, in order.
    """

    __slots__ = (
        "_accepted",
        "_accepted_first",
        "_accepted_last",
        "_incoming_left",
        "_incoming_order",
        "_next_incoming",
        "_next_outgoing",
        "_order",
        "backlog",
        "channel",
        "connection",
        "deliveries",
        "handle_max",
        "incoming",
        "links",
        "over",
        "unsettled",
        "window",
    )

    def __init__(self, connection: AmqpConnection, channel: int, packet: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.handle_max = packet.handle_max
        self.links: dict[int, Link] = {}
        self.unsettled: dict[int, tuple[SendingLink, int]] = {}
        self._order = SerialOrder()
        self.incoming: dict[int, ReceivingLink] = {}
        self._incoming_order = SerialOrder()
        self.backlog: deque[OutgoingTransfer] = deque()
        self.window = packet.incoming_window
        self.deliveries = 0
        self.over = False
        self._next_incoming = packet.next_outgoing_id
        self._incoming_left = limits.AMQP_WINDOW
        self._next_outgoing = 0
        # The disposition that is the last frame of the outbox, and the deliveries that it accepts.
        self._accepted = b""
        self._accepted_first = 0
        self._accepted_last = 0

    def begin(self) -> Begin:
        """Return the answer to `begin`."""
        return Begin(
            self.channel, self._next_outgoing, limits.AMQP_WINDOW, SERIAL, limits.AMQP_LINKS - 1
        )

    def say(self, performative: tuple[Any, ...]) -> None:
        """Send a frame of this session without a payload."""
        self.connection.say(performative, self.channel)

    # -- what the client sends -------------------------------------------------------------------

    def handle(self, performative: tuple[Any, ...], payload: bytes, length: int) -> None:
        """Handle one frame of `length` bytes. Raises ProtocolError, which ends the connection."""
        if self.over:
            return
        if isinstance(performative, Transfer):
            self._transfer(performative, payload, length)
        elif isinstance(performative, Disposition):
            self._disposition(performative)
        elif isinstance(performative, Flow):
            self._flow(performative)
        elif isinstance(performative, Attach):
            self._attach(performative)
        elif isinstance(performative, Detach):
            self._detach(performative)

    def _attach(self, packet: Attach) -> None:
        if packet.handle >= limits.AMQP_LINKS:
            raise ProtocolError(
                conditions.FRAMING_ERROR, f"2.7.2: handle {packet.handle} beyond handle-max"
            )
        if packet.handle in self.links:
            self.fail(conditions.HANDLE_IN_USE, f"2.6.2: handle {packet.handle} is attached")
            return
        connection = self.connection
        if connection.take(REFUSED_COST):
            attach(self, packet)
        else:
            connection.crowded_out()

    def _detach(self, packet: Detach) -> None:
        link = self.links.pop(packet.handle, None)
        if link is None:
            self.fail(conditions.UNATTACHED_HANDLE, f"2.6.2: handle {packet.handle}")
            return
        self.count_less(link)
        if not link.detached:
            link.broken = packet.error is not None
            link.let_go(closed=packet.closed)
            self.say(Detach(packet.handle, packet.closed))

    def _transfer(self, packet: Transfer, payload: bytes, length: int) -> None:
        self._next_incoming = (self._next_incoming + 1) & SERIAL
        self._incoming_left -= 1
        if self._incoming_left < 0:
            self.fail(conditions.WINDOW_VIOLATION, "2.5.6: a transfer beyond the window")
            return
        if self._incoming_left <= limits.AMQP_WINDOW // 2:
            self.widen()
        link = self.links.get(packet.handle)
        if link is None:
            self.fail(conditions.UNATTACHED_HANDLE, f"2.6.12: transfer to handle {packet.handle}")
            return
        if not isinstance(link, ReceivingLink):
            self.fail(conditions.ERRANT_LINK, f"2.6.12: the router sends on handle {packet.handle}")
            return
        if not link.detached:
            link.transfer(packet, payload, length)

    def came(self, count: int) -> None:
        """Count transfers that came together, and were within the window."""
        self._next_incoming = (self._next_incoming + count) & SERIAL
        self._incoming_left -= count
        if self._incoming_left <= limits.AMQP_WINDOW // 2:
            self.widen()

    def sent(self, count: int) -> None:
        """Count messages that were sent together, in a frame each."""
        self.window -= count
        self._next_outgoing = (self._next_outgoing + count) & SERIAL
        self.deliveries += count

    def widen(self) -> None:
        """Let the client send as many transfers again as one window has."""
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
            self.wake()
            return
        link = self.links.get(packet.handle)
        if link is None:
            self.fail(conditions.UNATTACHED_HANDLE, f"2.7.4: flow for handle {packet.handle}")
        elif not link.detached:
            link.flow(packet)
        if self.window:
            self.wake()

    def _send_backlog(self) -> None:
        while self.backlog and self.window:
            outgoing = self.backlog[0]
            before = outgoing.size
            done = self._send(outgoing)
            self.connection.give_back(before - outgoing.size)
            if done:
                self.backlog.popleft()
                self.connection.give_back(OUTGOING_COST)

    def await_settlement(self, number: int, link: ReceivingLink) -> None:
        """Note a delivery that the client is to settle (2.6.12)."""
        self.incoming[number] = link
        self._incoming_order.add(number, self.incoming)

    def _disposition(self, packet: Disposition) -> None:
        first = packet.first
        count = (first if packet.last is None else packet.last) - first & SERIAL
        if count >= HALF:
            raise ProtocolError(conditions.INVALID_FIELD, "2.7.6: last before first")
        if not packet.role:
            if packet.settled:
                found = self._incoming_order.within(first, count, self.incoming)
                self.connection.work_on(Outcomes(self, packet, found))
            return
        if packet.settled and isinstance(packet.state, Accepted) and count < AT_ONCE:
            self._accepted_by_client(first, count + 1)
            return
        unsettled = self.unsettled
        if count == 0:
            found = [first] if first in unsettled else []
        else:
            self._order.catch_up(self.deliveries, unsettled)
            found = self._order.within(first, count, unsettled)
        self.connection.work_on(Outcomes(self, packet, found))

    def take_outcomes(self, packet: Disposition, numbers: list[int]) -> None:
        """Take what a disposition says of some of its deliveries, as far as they are still there."""
        if not packet.role:
            for number in numbers:
                sender = self.incoming.pop(number, None)
                if sender is not None:
                    sender.settled_by_client(number)
            return
        state = packet.state
        unsettled = self.unsettled
        if isinstance(state, TransactionalState):
            there = [number for number in numbers if number in unsettled]
            self.connection.transactions.take_outcomes(self, there, packet.settled, state)
            return
        for number in numbers:
            held = unsettled.get(number)
            if held is not None and (packet.settled or is_outcome(state)):
                del unsettled[number]
                held[0].settle(held[1], state)

    def took_outcomes(self, packet: Disposition, count: int) -> None:
        """Answer a disposition over `count` deliveries, of which all have been taken."""
        state = packet.state
        if not packet.role:
            return
        if isinstance(state, TransactionalState):
            if not count:
                # The transaction may not be there, either.
                self.connection.transactions.take_outcomes(self, [], packet.settled, state)
        elif count and not packet.settled and state is not None:
            # The client settles second (2.6.12): what we say first has to be true after a crash.
            answer = Disposition(False, packet.first, packet.last, True, state)
            client = self.connection.client
            if client is None or client.spool is None:
                self.say(answer)
            else:
                client.spool.when_synced(_SettledAnswer(self, answer), 0)

    def _accepted_by_client(self, first: int, count: int) -> None:
        """Settle `count` deliveries from `first` on, as far as they are there, as nearly all are settled."""
        unsettled = self.unsettled
        for step in range(count):
            found = unsettled.pop((first + step) & SERIAL, None)
            if found is not None:
                flow = found[0].consumer
                if flow is not None:
                    flow.settle(found[1], ACCEPTED)
        self.connection.context.work += count

    # -- what the client is sent -----------------------------------------------------------------

    def transmit(self, message: bytes | OutgoingTransfer) -> bool:
        """Send one message, which is one frame or is to be cut; False where nothing more goes.

        What is beyond the client's window is kept, not cut yet.
        """
        if isinstance(message, bytes):
            if self.window and not self.backlog:
                self._send_frame(message)
                return self.window > 0
            outgoing = OutgoingTransfer(message)
        else:
            outgoing = message
        if self.backlog or not self._send(outgoing):
            connection = self.connection
            if connection.take(outgoing.size + OUTGOING_COST):
                self.backlog.append(outgoing)
            else:
                connection.grows_out()
            return False
        return self.window > 0

    def _send(self, outgoing: OutgoingTransfer) -> bool:
        """Send frames as far as the client's window goes; True when all have gone."""
        while self.window:
            self._send_frame(outgoing.next())
            if outgoing.size == 0:
                return True
        return False

    def _send_frame(self, frame: bytes) -> None:
        self.window -= 1
        self._next_outgoing = (self._next_outgoing + 1) & SERIAL
        outbox = self.connection.outbox
        outbox.control(frame)
        outbox.bytes_ += len(frame)

    def _drop_backlog(self) -> None:
        while self.backlog:
            outgoing = self.backlog.popleft()
            self.connection.give_back(outgoing.size + OUTGOING_COST)

    def take_id(self) -> int:
        """Return the id of one more delivery to the client (2.8.7)."""
        number = self.deliveries
        self.deliveries = number + 1
        return number & SERIAL

    def accept(self, delivery: int, *, settled: bool) -> None:
        """Tell the client that a delivery is accepted; in one frame with the ones before it where that can be."""
        outbox = self.connection.outbox
        if (
            settled
            and self._accepted
            and (self._accepted_last + 1) & SERIAL == delivery
            and outbox.chunks
            and outbox.chunks[-1] is self._accepted
        ):
            frame = disposition(self.channel, True, self._accepted_first, delivery, True)
            outbox.chunks[-1] = frame
        else:
            frame = disposition(self.channel, True, delivery, delivery, settled)
            outbox.control(frame)
            self._accepted_first = delivery
        self._accepted = frame if settled else b""
        self._accepted_last = delivery

    # -- links -----------------------------------------------------------------------------------

    def sending_links(self) -> list[SendingLink]:
        """The links over which the client is sent messages."""
        return [link for link in self.links.values() if isinstance(link, SendingLink)]

    def wake(self) -> None:
        """Look for something to deliver over any of its links: over many of them in slices."""
        connection = self.connection
        context = connection.context
        links = self.sending_links()
        if len(links) > WOKEN_AT_ONCE:
            context.work += len(links) >> 3
            connection.wake_later(links)
            return
        for link in links:
            context.work += WAKE_WORK
            link.wake()

    def add(self, link: Link) -> None:
        """Have one more link, under its handle."""
        self.links[link.handle] = link
        self.connection.link_count += 1

    def remove(self, link: Link) -> None:
        """Have a link no more that could not be attached, and is counted as such a one."""
        connection = self.connection
        if self.links.pop(link.handle, None) is not None:
            connection.link_count -= 1
            connection.give_back(link.cost - LINK_COST)
        link.let_go(closed=False)

    # -- end -------------------------------------------------------------------------------------

    def fail(self, condition: int, text: str) -> None:
        """End the session for an error of the client; the connection goes on."""
        if self.over:
            return
        connection = self.connection
        connection.router.protocol_errors += 1
        connection.report_protocol_error(text)
        # The channel stays taken until the client has ended it too: what it sent before that is passed over.
        self.leave(End(error(condition, text)), lost=True)

    def leave(self, answer: End | None, *, lost: bool) -> None:
        """End the session: at once nothing is sent or taken any more, and of many links, what they hold goes in slices.

        `answer` tells the client when that is done, unless its connection has ended. `lost`: the client did not end it
        in order, so that what it held may be what was wrong. A second call does nothing.
        """
        if self.over:
            return
        self.over = True
        self.window = 0
        self._drop_backlog()
        links = list(self.links.values())
        self.links.clear()
        for link in links:
            link.detached = True
            link.broken = lost
        connection = self.connection
        connection.context.work += len(links) >> 4
        connection.let_go_of(self, links, answer)

    def left(self, answer: End | None) -> None:
        """All links have gone."""
        self.unsettled.clear()
        self._order.clear()
        self.incoming.clear()
        self._incoming_order.clear()
        if answer is not None and not self.connection.closing:
            self.say(answer)

    def count_less(self, link: Link) -> None:
        """Count a link less, which has ended."""
        self.connection.link_count -= 1
        self.connection.give_back(link.cost)
