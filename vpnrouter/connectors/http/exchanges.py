"""The messages of one link on their way to an HTTP server: whose turn it is, and what an answer means for each.

    waiting    behind another message with the same key (`lanes`)
    ready      to be sent as soon as a connection is free
    under way  over one connection, which waits for the answer
    paused     to be tried again at its time; its key waits with it, others go on

A message stays with the link until its outcome is known, so that none with the same key overtakes it.
"""

from __future__ import annotations

import heapq
import zlib
from collections import deque
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.http.pace import Pace, draw_of, retry_after_ns
from vpnrouter.connectors.http.replies import Replies
from vpnrouter.connectors.http.requests import RequestWriter, properties_of
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    TOPIC_PARSE_ERROR,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.guaranteed.flow import RELEASED
from vpnrouter.core.timers import TimerTarget
from vpnrouter.core.tracing import leaving as with_span
from vpnrouter.core.tracing import read, sent_out
from vpnrouter.trace.events import DELIVER, EVENT_NAMES
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.connectors.http.connection import HttpConnection
    from vpnrouter.connectors.http.provider import HttpOutwardFlow, HttpProvider
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.connectors.settings import RequestSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.message import Message
    from vpnrouter.core.timers import Timer
    from vpnrouter.wire.http1 import AnswerReader

UNHEARD: Final = 0
"""How a request was lost: the connection ended before a byte of the answer came."""
STALE: Final = 1
"""The same, over a connection that had been used before: the server may have closed it before it got the request."""
BROKEN: Final = 2
"""What came is no answer, or only a part of one, or nothing came in time."""

KEYED: Final = "key"
ALONE: Final = "link"
UNORDERED: Final = "none"
"""Which messages wait for each other (`order`)."""

_ONE_LANE: Final = 1

BUSY: Final = (408, 425, 429)
"""Statuses of the class 4xx that say nothing of the message: it is tried again."""

ASKS: Final = (429, 503)
"""Statuses whose Retry-After counts."""

TRACEPARENT_BYTES: Final = 55
"""Bytes of a traceparent (W3C Trace Context, 3.2)."""

NO_ADDRESS: Final = "it can have no path at the provider"

OVERTAXED: Final = "was answered by a failure more often than its queue allows"


@final
class Exchange:
    """A message to be sent, and the state of that. `flow` is None for a Direct one.

    `once`: it counts as delivered when it is sent. `tries` are requests that failed. `accused` is what the server did
    instead of answering, which counts against the message when it is in turn again.
    """

    __slots__ = (
        "accused",
        "began_ns",
        "flow",
        "head",
        "lane",
        "message",
        "message_id",
        "once",
        "requests",
        "resent",
        "topic",
        "tries",
    )

    def __init__(
        self,
        requests: LinkRequests,
        flow: HttpOutwardFlow | None,
        message_id: int,
        message: Message,
        topic: bytes,
        head: bytes,
        lane: int,
    ) -> None:
        self.requests = requests
        self.flow = flow
        self.message_id = message_id
        self.message = message
        self.topic = topic
        self.head = head
        self.lane = lane
        self.once = flow is None or requests.link.terms.qos == 0
        self.tries = 0
        self.accused = ""
        self.resent = False
        self.began_ns = 0

    @property
    def alive(self) -> bool:
        """Whether the link still has the message."""
        flow = self.flow
        return flow is None or (not flow.closed and self.message_id in flow.unacked)


@final
class LinkRequests(TimerTarget):
    """The messages of `link` over one connection of its connector, `provider`. `under_way` waits for answers."""

    __slots__ = (
        "_direct_bytes",
        "_lanes",
        "_number",
        "_paused",
        "_ready",
        "_replies",
        "_request",
        "_rests",
        "_salt",
        "_timer",
        "_timer_ns",
        "_writer",
        "link",
        "pace",
        "provider",
        "under_way",
    )

    def __init__(
        self,
        provider: HttpProvider,
        link: OutwardLink,
        request: RequestSettings,
        writer: RequestWriter,
    ) -> None:
        self.provider = provider
        self.link = link
        self.pace = Pace(request.first_ns, request.most_ns, provider.most)
        self.under_way = 0
        # Whether the server has asked to be left alone, and has not answered since.
        self._rests = False
        self._request = request
        self._writer = writer
        self._salt = zlib.crc32(link.label.encode())
        self._replies = Replies(provider, link) if request.reply else None
        # Those with a key, by key: the first one is ready, under way or paused.
        self._lanes: dict[int, deque[Exchange]] = {}
        self._ready: deque[Exchange] = deque()
        self._paused: list[tuple[int, int, Exchange]] = []
        self._number = 0
        self._direct_bytes = 0
        self._timer: Timer | None = None
        self._timer_ns = 0

    # -- what is to be sent ----------------------------------------------------------------------

    def take(self, flow: HttpOutwardFlow, message_id: int, message: Message, topic: bytes) -> None:
        """Send a message of the link's queue in its turn; the link is told what became of it."""
        head = self._writer.head_for(topic)
        if not head:
            self.link.give_up(flow, message_id, NO_ADDRESS)
            return
        lane = self._lane_of(message)
        self._queue(Exchange(self, flow, message_id, message, topic, head, lane))

    def take_direct(self, message: Message, topic: bytes) -> str:
        """Send a Direct message in its turn; "" or the reason why it is not."""
        head = self._writer.head_for(topic)
        if not head:
            return TOPIC_PARSE_ERROR
        size = message.size + limits.SPOOL_BODY_COST
        home = self.provider.connection
        if self._direct_bytes + size > limits.HTTP_WAITING_BYTES or not home.take(size):
            return TRANSMIT_CONGESTION
        self._direct_bytes += size
        self._count_sent(message)
        link = self.link
        if message.traced and link.tap is not None:
            sent_out(link.vpn, link.tap, message, link.label, self.provider.place)
        self._queue(Exchange(self, None, 0, message, topic, head, self._lane_of(message)))
        return ""

    def _count_sent(self, message: Message) -> None:
        outbox = self.provider.connection.outbox
        outbox.messages += 1
        outbox.bytes_ += message.size

    def _lane_of(self, message: Message) -> int:
        order = self._request.order
        if order == KEYED:
            return message.lane
        return _ONE_LANE if order == ALONE else 0

    def _queue(self, exchange: Exchange) -> None:
        lane = exchange.lane
        if lane:
            known = self._lanes.get(lane)
            if known is not None:
                known.append(exchange)
                return
            self._lanes[lane] = deque((exchange,))
        self._ready.append(exchange)
        self.provider.pump()

    def sendable(self, share: int) -> int:
        """Return how many messages could be sent now, over connections enough, of which the link may use `share`."""
        if not self._ready or self.link.status.paused:
            return 0
        if self.pace.until_ns > self._now_ns:
            self._wait()
            return 0
        return min(len(self._ready), min(self.pace.most, share) - self.under_way)

    @property
    def _now_ns(self) -> int:
        return self.provider.vpn.context.now_ns

    # -- sending ---------------------------------------------------------------------------------

    def send_next(self, connection: HttpConnection) -> bool:
        """Send the message whose turn it is; False where none is left that can be sent."""
        while self._ready:
            exchange = self._ready.popleft()
            if self._may_go(exchange):
                self._send(exchange, connection)
                return True
            self._finished(exchange)
        return False

    def _may_go(self, exchange: Exchange) -> bool:
        """Return whether a message is sent now that it is in turn; else it has left the link."""
        if not exchange.alive:
            return False
        flow = exchange.flow
        if flow is None or not exchange.tries:
            return True
        link = self.link
        why, exchange.accused = exchange.accused, ""
        if why and not link.tolerates(flow, exchange.message_id, why):
            return False
        message = exchange.message
        if message.expires_ns and link.expires(flow, exchange.message_id, message, 0):
            return False
        endpoint = flow.endpoint
        if endpoint.is_over(message):
            # Its queue does with it what it does with those that have expired.
            if endpoint.settle(flow, exchange.message_id, RELEASED):
                link.counters.returned += 1
            return False
        return True

    def _send(self, exchange: Exchange, connection: HttpConnection) -> None:
        flow = exchange.flow
        message = exchange.message.mqtt()
        message_id = exchange.message_id
        properties = properties_of(message.block)
        trace = self._traceparent(exchange) if message.traced else ""
        head = self._writer.request(
            exchange.head, message, properties, exchange.topic, message_id, trace
        )
        most = 0
        if self._replies is not None and properties.response_topic:
            most = limits.HTTP_REPLY_BYTES
        self.under_way += 1
        exchange.began_ns = self._now_ns
        connection.send(exchange, head, message.payload, most)
        if flow is None:
            self._leave_account(exchange)
            return
        if not exchange.tries:
            self._count_sent(exchange.message)
        flow.trace_sent(message_id, exchange.message, again=exchange.tries > 0)
        if exchange.once:
            self.link.accepted(flow, message_id)
            return
        fault = flow.endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")

    def _leave_account(self, exchange: Exchange) -> None:
        size = exchange.message.size + limits.SPOOL_BODY_COST
        self._direct_bytes -= size
        self.provider.connection.give_back(size)

    def _traceparent(self, exchange: Exchange) -> str:
        """Return the traceparent of a request, "" for none."""
        flow = exchange.flow
        link = self.link
        vpn = link.vpn
        named = "" if flow is None else flow.endpoint.name
        event = EVENT_NAMES[DELIVER]
        message = exchange.message
        block = message.mqtt().block
        block = with_span(vpn.context, message, block, vpn.name, event, link.client_name, named)
        parent = read(block)
        if parent is None:
            return ""
        return block[parent.place : parent.place + TRACEPARENT_BYTES].decode()

    # -- answers ---------------------------------------------------------------------------------

    def answered(self, exchange: Exchange, answer: AnswerReader) -> None:
        """The server has answered a message."""
        self.under_way -= 1
        status = answer.status
        good = 200 <= status < 300
        if not good and (exchange.once or not exchange.alive):
            self.link.counters.refused += 1
        if good or not (status in BUSY or status >= 500):
            self._recovered()
        if exchange.once or not exchange.alive:
            if good and self._replies is not None:
                self._replies.answered(exchange, answer)
            self._finished(exchange)
            return
        flow = exchange.flow
        if flow is None:
            return
        if good:
            if self._replies is not None:
                self._replies.answered(exchange, answer)
            self.link.accepted(flow, exchange.message_id)
            self._finished(exchange)
            return
        why = self.provider.said(answer)
        exchange.tries += 1
        if status in BUSY or status >= 500:
            self.link.counters.refused += 1
            self._postpone(exchange, flow, why, answer)
        elif self.link.tolerates(flow, exchange.message_id, why):
            self._pause(exchange, self.pace.pause(exchange.tries, self._draw(exchange)))
        else:
            self._finished(exchange)

    def _postpone(
        self, exchange: Exchange, flow: HttpOutwardFlow, why: str, answer: AnswerReader | None
    ) -> None:
        """Try a message again after a pause: that it failed says nothing of it."""
        settings = flow.endpoint.settings
        most = settings.max_redelivery_count
        if settings.redelivery_enabled and 0 < most < exchange.tries:
            self.link.give_up(flow, exchange.message_id, f"{OVERTAXED}: {why}")
            self._finished(exchange)
            return
        now_ns = self._now_ns
        rest_ns = self.pace.failed(exchange.tries, now_ns, self._draw(exchange))
        if answer is not None and answer.status in ASKS and answer.retry_after:
            asked_ns = retry_after_ns(answer.retry_after, self.provider.vpn.context.wall_ns)
            if asked_ns >= 0:
                rest_ns = max(rest_ns, asked_ns)
                self.pace.rest(now_ns + asked_ns)
                self._rests = True
                why = f"{why}; it asks to be left alone for {asked_ns // SECOND_NS:,} s"
        if self.pace.troubled or self._rests:
            self.link.status.hold(why, now_ns)
        self._pause(exchange, rest_ns)

    def _draw(self, exchange: Exchange) -> int:
        return draw_of(exchange.message_id, exchange.tries, self._salt)

    def lost(self, exchange: Exchange, how: int, why: str) -> None:
        """The connection has ended that a message was sent over, as `how` says, for `why`."""
        self.under_way -= 1
        flow = exchange.flow
        if exchange.once or flow is None or not exchange.alive:
            self._finished(exchange)
            return
        if how == STALE and not exchange.resent:
            exchange.resent = True
            self._ready.appendleft(exchange)
            return
        exchange.tries += 1
        if how == BROKEN and not self.pace.troubled:
            exchange.accused = why
        self._postpone(exchange, flow, why, None)

    def _recovered(self) -> None:
        """The server has answered: trouble is over, and what waits because of it goes on."""
        troubled = self.pace.answered()
        if troubled or self._rests:
            self._rests = False
            self.link.status.hold("", self._now_ns)
        if troubled:
            paused = self._paused
            while paused:
                self._ready.append(heapq.heappop(paused)[2])

    # -- pauses ----------------------------------------------------------------------------------

    def _pause(self, exchange: Exchange, length_ns: int) -> None:
        self._number += 1
        heapq.heappush(self._paused, (self._now_ns + length_ns, self._number, exchange))
        self._wait()

    def _wait(self) -> None:
        """Have it looked at when the first pause is over."""
        due_ns = self._paused[0][0] if self._paused else 0
        if self._ready and self.pace.until_ns > self._now_ns:
            due_ns = min(due_ns, self.pace.until_ns) if due_ns else self.pace.until_ns
        if not due_ns or (self._timer is not None and self._timer_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = due_ns
        self._timer = self.provider.vpn.context.timers.arm(due_ns, self, 0)

    @override
    def owning_connection(self) -> Connection | None:
        return self.provider.connection

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        self._timer = None
        paused = self._paused
        while paused and paused[0][0] <= now_ns:
            self._ready.append(heapq.heappop(paused)[2])
        self._wait()
        self.provider.pump()

    # -- the end ---------------------------------------------------------------------------------

    def _finished(self, exchange: Exchange) -> None:
        """Let the next message with the same key have its turn."""
        waiting = self._lanes.get(exchange.lane) if exchange.lane else None
        if waiting is not None and waiting[0] is exchange:
            waiting.popleft()
            if waiting:
                self._ready.append(waiting[0])
            else:
                del self._lanes[exchange.lane]
        if not (self._ready or self._paused or self.under_way):
            # Whatever trouble there was, nothing waits because of it.
            self.link.status.hold("", self._now_ns)

    def let_go(self) -> None:
        """Send nothing more of the queue: it has its messages again."""
        self._ready.clear()
        self._lanes.clear()
        self._paused.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Send nothing more, and count the Direct messages that were not sent."""
        left = 0
        seen: list[deque[Exchange]] = [self._ready, *self._lanes.values()]
        for waiting in seen:
            for exchange in waiting:
                if exchange.flow is None and not exchange.began_ns:
                    exchange.began_ns = 1
                    self._leave_account(exchange)
                    left += 1
        self.let_go()
        if left:
            link = self.link
            link.counters.delivered -= left
            link.counters.discarded.add(CLIENT_NOT_CONNECTED, left)
            link.vpn.count_lost(left, self.provider.connection.outbox)
        self.link.status.hold("", self._now_ns)
        if self._replies is not None:
            self._replies.end()
