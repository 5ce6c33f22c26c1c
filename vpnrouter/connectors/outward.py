"""Links that take messages out of a message VPN, to a provider.

A link at most once takes what its topics bring as it comes (`DirectTap`). All others consume a queue: the one that is
their source, or their own of what their topics brought (`#connector/CONNECTOR/LINK`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.link_state import LinkEvent, LinkStatus
from vpnrouter.connectors.links import LinkTopics, label, outward
from vpnrouter.connectors.visited import has_visited
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    LOOP_DETECTED,
    NO_LOCAL_DELIVERY,
    NOT_TRANSFORMED,
    REFUSED,
    TOPIC_PARSE_ERROR,
    TTL_EXPIRED,
)
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.dead_letters import Passage, letter_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, DELETE
from vpnrouter.core.guaranteed.failure_policy import (
    CROSS,
    DEAD_LETTER,
    PARK,
    SKIP,
    STOP,
    TOO_LATE_TO_CROSS,
)
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, RELEASED, Flow
from vpnrouter.core.guaranteed.undelivered import Undelivered, UndeliveredOwner
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber, Subscription
from vpnrouter.core.timers import Job, TimerTarget
from vpnrouter.core.tracing import trace_kept
from vpnrouter.errors import Refused, TopicError
from vpnrouter.trace.events import DELIVER, REDELIVER
from vpnrouter.transforms.transform import PASS
from vpnrouter.transforms.transform import STOP as STOPS
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from vpnrouter.connectors.link_state import LinkCounters, LinkOwner
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.provider import Provider
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.transforms.transform import Transform

COUNTED_REFUSALS: Final = 1_000
"""Messages of a link of which refusals are counted. Beyond: the one counted first begins anew."""

NEVER_SENT: Final = "it can have no topic at the provider"

NO_ROOM: Final = "no dead message queue takes what it has given up"
"""Why a link takes out no more."""

LOOK_AGAIN_NS: Final = 100 * MILLISECOND_NS
"""How soon to look again for messages, where no answer of the provider may come before."""

_DONE: Final[dict[str, str]] = {
    DEAD_LETTER: "a message was rejected as a dead letter",
    PARK: "a message was parked",
    SKIP: "a message was skipped",
    STOP: "the link has stopped",
}

_NO_DEAD_LETTER: Final = "a message was discarded, since no dead message queue took it"


@final
class OutwardLink(UndeliveredOwner):
    """One link outward, over all connections. `provider` is None while there is no connection.

    `client_name` is its name as a consumer, `label` that in traces.

    `endpoint` is what it consumes, None for a link that takes Direct messages, whose `tap` subscribes to its topics.
    `parking` is where it sets messages aside, `undelivered` has those that wait for one of its dead message queues: so
    many that it takes out no more where it is `crowded`. `suspected` are the ids of messages that were the next to be
    answered when the provider ended a connection.
    """

    __slots__ = (
        "_condemned",
        "_not_opened",
        "_owner",
        "_refusals",
        "client_name",
        "counters",
        "crowded",
        "endpoint",
        "flow",
        "label",
        "parking",
        "provider",
        "status",
        "suspected",
        "tap",
        "terms",
        "topics",
        "undelivered",
        "vpn",
    )

    def __init__(
        self,
        owner: LinkOwner,
        vpn: MessageVpn,
        local_name: str,
        terms: LinkSettings,
        counters: LinkCounters,
    ) -> None:
        self._owner = owner
        self.vpn = vpn
        self.terms = terms
        self.client_name = f"{local_name}/{terms.name}"
        self.label = label(local_name, terms.name)
        self.counters = counters
        self.status = LinkStatus(
            owner,
            terms.name,
            enabled=terms.enabled,
            now_ns=vpn.context.now_ns,
            paused=terms.paused,
        )
        self.topics = LinkTopics([terms])
        self.provider: Provider | None = None
        self.endpoint: Endpoint | None = None
        self.parking: Endpoint | None = None
        self.undelivered: Undelivered | None = None
        self.crowded = False
        # How often in a row the provider has not taken the link.
        self._not_opened = 0
        self.flow: OutwardFlow | None = None
        # How often the provider has refused a message, by its id; which are given up when they are next in turn, with
        # the reason.
        self._refusals: dict[int, int] = {}
        self._condemned: dict[int, str] = {}
        self.suspected: set[int] = set()
        self.tap: DirectTap | None = None
        if terms.direct and terms.enabled:
            self.tap = DirectTap(self, local_name)

    @property
    def _now_ns(self) -> int:
        return self.vpn.context.now_ns

    @property
    def in_flight(self) -> int:
        """Messages whose outcome is not known yet."""
        undelivered = self.undelivered
        waiting = 0 if undelivered is None else len(undelivered.unacked)
        return waiting + (0 if self.flow is None else len(self.flow.unacked))

    # -- connections -----------------------------------------------------------------------------

    def connected(self, provider: Provider) -> None:
        """Carry messages over a new connection, if its provider can carry them."""
        self.status.happened(LinkEvent.CONNECTED, self._now_ns)
        if not self.status.opens:
            return
        obstacle = provider.obstacle(self.terms)
        if obstacle:
            self.status.happened(LinkEvent.REFUSED, self._now_ns, obstacle)
            return
        self.provider = provider
        provider.offer(self)

    def opened(self) -> None:
        """The provider takes the messages of the link."""
        provider = self.provider
        if provider is None:
            return
        if self._not_opened:
            self._not_opened = 0
            self._let_go()
        if self.tap is not None:
            if not self.status.paused:
                self.tap.plug(provider)
        else:
            try:
                self._bind(provider)
            except Refused as refusal:
                self.not_opened(f"{self.terms.source}: {refusal.reason}")
                return
        self.status.happened(LinkEvent.OPENED, self._now_ns)

    def not_opened(self, why: str) -> None:
        """The provider does not take them, or does so no more, for `why`."""
        if self.tap is not None:
            self.tap.unplug()
        self._unbind()
        self.status.happened(LinkEvent.REFUSED, self._now_ns, why)
        if self.terms.dead_letters:
            self._not_opened += 1
            endpoint = self.endpoint
            often = self._not_opened >= self.terms.failures.reject_attempts
            if often and endpoint is not None and not endpoint.deleted:
                # They go to the next entries of the list, until the provider takes them.
                self._undelivered_of(endpoint).consume()

    def _bind(self, provider: Provider) -> None:
        """Consume from the queue. Raises Refused."""
        endpoint = self.endpoint
        if endpoint is None or endpoint.deleted:
            raise Refused(refusals.QUEUE_NOT_FOUND, 0)
        flow = provider.flow(self, endpoint)
        self.flow = flow
        try:
            endpoint.bind(flow, DELETE, CONSUME)
        except Refused:
            self.flow = None
            raise
        endpoint.wake()

    def disconnected(self) -> None:
        """Carry nothing until there is another connection; what is on its way goes back to its queue."""
        self.provider = None
        if self.tap is not None:
            self.tap.unplug()
        self._unbind()
        self.status.happened(LinkEvent.LOST, self._now_ns)

    def pause(self, paused: bool) -> None:
        """Take nothing out, though the connection is there and the link consumes from its queue; or go on."""
        self.terms.paused = paused
        self.status.pause(paused, self._now_ns)
        provider, tap, flow = self.provider, self.tap, self.flow
        if provider is None or not self.status.is_open:
            return
        if tap is not None and paused:
            tap.unplug()
        elif tap is not None:
            tap.plug(provider)
        if not paused:
            provider.outward_resumed(self)
            if flow is not None:
                flow.endpoint.wake()

    def stop(self) -> None:
        """Consume no more, though the connection is there."""
        self._unbind()

    def _unbind(self) -> None:
        flow, self.flow = self.flow, None
        if flow is not None:
            flow.closed = True
            # Nothing was wrong with the messages: this does not count as a redelivery.
            flow.endpoint.unbind(flow, counts=False)

    def unbound(self, flow: OutwardFlow, reason: str) -> None:
        """The queue has let the flow go: it was shut down or deleted."""
        if self.flow is flow:
            self.flow = None
            if reason == refusals.NOT_CONFIGURED and not self.terms.from_queue:
                # Its own queue goes with the link: the configuration has it no more.
                return
            self.status.happened(LinkEvent.REFUSED, self._now_ns, f"{self.terms.source}: {reason}")

    def close(self) -> None:
        """Take nothing any more: the link is removed, or begins anew under other settings."""
        if self.tap is not None:
            self.vpn.drop(self.tap)
        self.disconnected()
        self._let_go()

    def _let_go(self) -> None:
        undelivered, self.undelivered = self.undelivered, None
        if undelivered is not None:
            undelivered.close()

    # -- what became of a message ----------------------------------------------------------------

    def topic_of(self, message: Message) -> bytes:
        """Return the topic under which a message leaves, b"" where it can have none."""
        if self.terms.rule is None:
            return outward(message.topic)
        try:
            image, link = self.topics.of(outward(message.topic))
        except TopicError:
            return b""
        return b"" if link is None else image

    def changed(self, message: Message, topic: bytes) -> Message:
        """Return a message of its own for the steps of the link, under the topic that the target gives it."""
        leaving = message.copy()
        leaving.topic = topic
        leaving.retain = message.retain
        leaving.snapshot = message.snapshot
        return leaving

    def can_be_named(self, message: Message) -> bool:
        """Return whether a message can have the topic that the steps have given it."""
        try:
            self.vpn.route(message.topic)
        except TopicError:
            return False
        return True

    def accepted(self, flow: OutwardFlow, message_id: int) -> None:
        """The provider has a message, or it was sent at most once."""
        if self._refusals:
            self._refusals.pop(message_id, 0)
            self.suspected.discard(message_id)
        if flow.endpoint.settle(flow, message_id, ACCEPTED):
            self.counters.delivered += 1

    def rolled_back(self, flow: OutwardFlow, message_id: int) -> None:
        """The provider has not got a message after all, through no fault of it: it is in its queue again."""
        if flow.endpoint.settle(flow, message_id, RELEASED):
            self.counters.returned += 1

    def refused(self, flow: OutwardFlow, message_id: int, why: str) -> None:
        """The provider does not take a message, for `why`."""
        self.counters.refused += 1
        if self._too_often(message_id):
            self.give_up(flow, message_id, why)
        elif flow.endpoint.settle(flow, message_id, FAILED):
            self.counters.returned += 1

    def tolerates(self, flow: OutwardFlow, message_id: int, why: str) -> bool:
        """Count that the provider does not take a message, for `why`; return whether the flow keeps it, to send it
        again. Else the link has given it up.
        """
        self.counters.refused += 1
        if self._too_often(message_id):
            self.give_up(flow, message_id, why)
            return False
        return True

    def ended_connection(self, message_id: int, why: str, *, proved: bool) -> None:
        """The provider has ended the connection instead of answering a message, which is in its queue again, and is
        there.

        Without proof that it was this message, it is only suspected.
        """
        if message_id in self.suspected and not proved:
            return
        self.counters.refused += 1
        self.suspected.add(message_id)
        if self._too_often(message_id):
            self._condemned[message_id] = why

    def verdict(self, message_id: int) -> str:
        """Return why a message is to be given up now that it is in turn, "" where it is not."""
        why = self._condemned.pop(message_id, "") if self._condemned else ""
        if why:
            self.suspected.discard(message_id)
        return why

    def sweep(self) -> None:
        """Forget refusals of messages that have left the queue otherwise."""
        endpoint = self.endpoint
        for message_id in [*self._refusals, *self._condemned]:
            if endpoint is None or not endpoint.holds(message_id):
                self._refusals.pop(message_id, 0)
                self.suspected.discard(message_id)
                self._condemned.pop(message_id, "")

    def _too_often(self, message_id: int) -> bool:
        known = self._refusals
        count = known.pop(message_id, 0) + 1
        if 0 < self.terms.failures.reject_attempts <= count:
            return True
        if len(known) >= COUNTED_REFUSALS:
            del known[next(iter(known))]
        known[message_id] = count
        return False

    def has_been(self, message: Message) -> bool:
        """Return whether a message has come from the provider, by whatever way."""
        provider = self.provider
        if provider is None or self.terms.dead_letters:
            # What a link could not bring in goes back to where it came from.
            return False
        return has_visited(message.path, provider.place, carries_path=provider.carries_path)

    def goes_round(self, flow: OutwardFlow, message_id: int) -> None:
        """Leave out a message that has come from the provider."""
        flow.endpoint.settle(flow, message_id, ACCEPTED)
        self.counters.discarded.add(LOOP_DETECTED)
        self.vpn.discards.add(LOOP_DETECTED)

    def give_up(self, flow: OutwardFlow, message_id: int, why: str, then: str = "") -> None:
        """Do with a message what the link is to do with one that the provider refuses, or `then`."""
        message = flow.unacked.get(message_id)
        if message is None:
            return
        counters = self.counters
        endpoint = flow.endpoint
        cause = NOT_TRANSFORMED if then else REFUSED
        then = then or self.terms.failures.then
        if then == PARK and not self._park(message):
            then = DEAD_LETTER
        if then == DEAD_LETTER:
            self._dead_letter(flow, message_id, message, why, cause)
            return
        if then == STOP:
            endpoint.settle(flow, message_id, RELEASED)
            counters.returned += 1
        else:
            endpoint.settle(flow, message_id, ACCEPTED)
            if then == PARK:
                counters.dead_letters += 1
            else:
                counters.discarded.add(REFUSED)
        text = f"{message.topic.decode(errors='replace')}, id {message_id}: {why}"
        self._owner.gave_up(self.terms.name, f"{_DONE[then]}: {text}")
        if then == STOP:
            self.status.happened(LinkEvent.STOP, self._now_ns, text)
            # Not here: the endpoint may be going through its flows.
            flow.closed = True
            self.vpn.context.jobs.add(Stop(self))

    def expires(self, flow: OutwardFlow, message_id: int, message: Message, count: int) -> bool:
        """Do with a message whose life time is over what the link is to do with such ones; False where it may cross.

        One that the provider may have, since it was sent it `count` times before, is not to be doubled.
        """
        policy = self.terms.failures.expired
        sent = count and self.terms.qos == 2
        if policy == CROSS or sent or message.expires_ns > self._now_ns:
            return False
        flow.let_be(message_id)
        if policy == DEAD_LETTER:
            self._dead_letter(flow, message_id, message, TOO_LATE_TO_CROSS, TTL_EXPIRED)
            return True
        flow.endpoint.settle(flow, message_id, ACCEPTED)
        self.counters.discarded.add(TTL_EXPIRED)
        self.vpn.discard(message, TTL_EXPIRED)
        return True

    def _dead_letter(
        self, flow: OutwardFlow, message_id: int, message: Message, why: str, cause: str
    ) -> None:
        """Give a message up for `why`; `cause` is one of discard_reasons.py."""
        endpoint = flow.endpoint
        if self.terms.seeks_queue and endpoint.lets_die(message):
            self._seek_queue(flow, message_id, message, why, cause)
            return
        done = _DONE[DEAD_LETTER]
        if endpoint.reject(flow, message_id, why, self._said_of(message, message_id, cause)):
            self.counters.dead_letters += 1
        else:
            done = _NO_DEAD_LETTER
            self.counters.discarded.add(cause)
        text = f"{message.topic.decode(errors='replace')}, id {message_id}: {why}"
        self._owner.gave_up(self.terms.name, f"{done}: {text}")

    def _seek_queue(
        self, flow: OutwardFlow, message_id: int, message: Message, why: str, cause: str
    ) -> None:
        """Have a message go to the first dead message queue of the link that takes it."""
        endpoint = flow.endpoint
        undelivered = self._undelivered_of(endpoint)
        letter = letter_of(message, why, endpoint.name, self._said_of(message, message_id, cause))
        letter.expires_ns = message.expires_ns
        undelivered.take(flow, message_id, letter, why)
        if undelivered.full and not self.crowded:
            self.crowded = True
            self.status.hold(NO_ROOM, self._now_ns)

    def _undelivered_of(self, endpoint: Endpoint) -> Undelivered:
        """Return who has what the link gives up of the messages of an endpoint."""
        undelivered = self.undelivered
        if undelivered is None or undelivered.endpoint is not endpoint:
            terms = self.terms
            undelivered = Undelivered(
                endpoint,
                self.client_name,
                self,
                terms.failures.dead_msg_queues,
                releases=terms.dead_letters,
            )
            self.undelivered = undelivered
        return undelivered

    def _said_of(self, message: Message, message_id: int, cause: str) -> list[tuple[str, str]]:
        """Return what a dead letter says of the link and of the way of the message."""
        terms = self.terms
        vpn = self.vpn
        provider = self.provider
        target = terms.target
        if not terms.one_target and terms.request is None:
            target = self.topic_of(message).decode() or target
        place = "" if provider is None else provider.place
        passage = Passage(f"connector {self.label}", terms.source, vpn.vpn_id, target, place)
        return passage.pairs(message, cause, message_id, vpn.context.wall_ns)

    @override
    def dead_letter(self, text: str) -> None:
        self.counters.dead_letters += 1
        self._owner.gave_up(self.terms.name, text)
        undelivered = self.undelivered
        if self.crowded and (undelivered is None or not undelivered.full):
            self.crowded = False
            self.status.hold("", self._now_ns)

    @override
    def taken(self, message: Message) -> None:
        self.counters.messages += 1
        self.counters.bytes_ += message.size

    @override
    def released(self, count: int) -> None:
        self.counters.returned += count

    @override
    def no_dead_letter(self, text: str) -> None:
        self._owner.not_delivered(self.terms.name, text)

    def _park(self, message: Message) -> bool:
        parking = self.parking
        if parking is None:
            return False
        copy = message.copy()
        copy.ingress_ns = 0
        return not parking.spool.place(parking, copy, even_down=True)

    # -- Direct messages -------------------------------------------------------------------------

    def send_direct(self, message: Message) -> None:
        """Send a message at most once."""
        counters = self.counters
        counters.messages += 1
        counters.bytes_ += message.size
        provider = self.provider
        topic = self.topic_of(message)
        reason = CLIENT_NOT_CONNECTED
        if not topic:
            reason = TOPIC_PARSE_ERROR
        elif self.has_been(message):
            reason = LOOP_DETECTED
        elif provider is not None:
            transform = self.terms.transform
            if transform is None:
                reason = provider.send_direct(self, message, topic)
            else:
                leaving = self.changed(message, topic)
                reason = self._send_changed(provider, leaving, transform)
        if not reason:
            counters.delivered += 1
            return
        counters.discarded.add(reason)
        tap = self.tap
        if tap is not None:
            self.vpn.discard(message, reason, tap)

    def _send_changed(self, provider: Provider, message: Message, transform: Transform) -> str:
        why = transform.change(message, self._now_ns)
        self.vpn.context.work += MEASURE.work()
        if why and transform.on_error != PASS:
            self._owner.gave_up(self.terms.name, f"a message was discarded: {why}")
            return NOT_TRANSFORMED
        if not self.can_be_named(message):
            return TOPIC_PARSE_ERROR
        return provider.send_direct(self, message, message.topic)


@final
class Stop(Job):
    """Lets a link consume no more, in a turn of its own."""

    __slots__ = ("_link",)

    def __init__(self, link: OutwardLink) -> None:
        super().__init__()
        self._link = link

    @override
    def step(self) -> bool:
        self._link.stop()
        return True


@final
class DirectTap(Subscriber):
    """Subscribes for a link to its topics, at most once."""

    __slots__ = ("_link",)

    def __init__(self, link: OutwardLink, local_name: str) -> None:
        terms = link.terms
        super().__init__(
            link.client_name,
            Outbox(link.vpn.context.ready, 0),
            FRAME_OWN,
            local_name=local_name,
            connected=False,
        )
        self._link = link
        subscription = Subscription(
            terms.filter,
            self,
            no_local=terms.no_local,
            retain_as_published=terms.keeps_retained,
            selector=terms.selector,
        )
        subscription.configured = True
        link.vpn.subscribe(subscription)

    def plug(self, provider: Provider) -> None:
        """Take messages from now on, and wait where the connection takes no more."""
        self.outbox = provider.connection.outbox
        self.connected = True
        self._link.vpn.forget_routes(self)

    def unplug(self) -> None:
        """Take nothing: there is no connection."""
        self.connected = False
        self._link.vpn.forget_routes(self)

    @override
    def client_connection(self) -> Connection | None:
        provider = self._link.provider
        return None if provider is None else provider.connection

    @override
    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        subscription = subscriptions[0]
        if subscription.no_local and message.local_name == self.local_name:
            self._link.vpn.discard(message, NO_LOCAL_DELIVERY, self)
        elif self.connected:
            self._link.send_direct(message)


@mypyc_attr(allow_interpreted_subclasses=True)
class OutwardFlow(Flow):
    """The flow of a link over one connection. Subclasses send over the provider's protocol."""

    __slots__ = ("_again", "_grown", "_grown_bytes", "closed", "connection", "link")

    def __init__(
        self, link: OutwardLink, endpoint: Endpoint, connection: Connection, window: int
    ) -> None:
        # What is kept for a link was selected when it was kept.
        selector = link.terms.selector if link.terms.from_queue else None
        most = endpoint.settings.max_delivered_unacked_msgs_per_flow
        super().__init__(endpoint, link.client_name, min(window, most), selector)
        self.link = link
        self.connection = connection
        self.closed = False
        # How much larger the steps of the link have made what is on its way, by its id.
        self._grown: dict[int, int] = {}
        self._grown_bytes = 0
        self._again: LookAgain | None = None

    @override
    def owning_connection(self) -> Connection | None:
        return self.connection

    @override
    def room(self) -> int:
        connection = self.connection
        if self.closed or self.link.status.paused or connection.closing or connection.faulty:
            return 0
        if self.link.crowded or self._grown_bytes > limits.GUARANTEED_AHEAD_BYTES:
            return 0
        outbox = connection.outbox
        if outbox.size > limits.GUARANTEED_AHEAD_BYTES or not self.has_budget(connection, outbox):
            self.look_again()
            return 0
        return min(self.window - len(self.unacked), self.provider_room())

    def provider_room(self) -> int:
        """Return how many more messages the provider may be sent over this connection."""
        raise AssertionError(self)

    @override
    def look_again(self) -> None:
        if self._again is None:
            self._again = LookAgain(self)

    def looked(self) -> None:
        """Look for messages, after `look_again`."""
        self._again = None
        if not self.closed:
            self.endpoint.wake()

    @override
    def send(self, message_id: int, message: Message, count: int) -> None:
        link = self.link
        counters = link.counters
        counters.messages += 1
        counters.bytes_ += message.size
        if message.path and link.has_been(message):
            link.goes_round(self, message_id)
            return
        if message.expires_ns and link.expires(self, message_id, message, count):
            return
        verdict = link.verdict(message_id)
        topic = b"" if verdict else link.topic_of(message)
        if topic and link.terms.transform is not None:
            self._change(message_id, message, topic, link.terms.transform)
            return
        if topic:
            self.transmit(message_id, message, topic)
            return
        self.let_be(message_id)
        link.give_up(self, message_id, verdict or NEVER_SENT)

    def _change(
        self, message_id: int, message: Message, topic: bytes, transform: Transform
    ) -> None:
        """Send a message as the steps of the link change it. It stays in its queue as it is."""
        link = self.link
        leaving = link.changed(message, topic)
        context = link.vpn.context
        why = transform.change(leaving, context.now_ns)
        context.work += MEASURE.work()
        if why and transform.on_error != PASS:
            self.let_be(message_id)
            then = STOP if transform.on_error == STOPS else DEAD_LETTER
            link.give_up(self, message_id, why, then)
            return
        if not link.can_be_named(leaving):
            self.let_be(message_id)
            link.give_up(self, message_id, NEVER_SENT)
            return
        grown = leaving.size - message.size
        if grown > 0:
            self._grown[message_id] = grown
            self._grown_bytes += grown
            self.budget -= grown
        self.transmit(message_id, leaving, leaving.topic)

    @override
    def settles(self, message_id: int) -> Message | None:
        if self._grown:
            self._grown_bytes -= self._grown.pop(message_id, 0)
        return super().settles(message_id)

    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        """Send a message under `topic`. The link is told what became of it, at once or later."""
        raise AssertionError(message_id)

    def let_be(self, message_id: int) -> None:
        """Forget what was sent of a message over an earlier connection: it is not sent again."""

    def trace_sent(self, message_id: int, message: Message, *, again: bool = False) -> None:
        """Record that a traced message was sent to the provider, `again` over the same flow."""
        provider = self.link.provider
        if not message.traced or provider is None:
            return
        endpoint = self.endpoint
        again = again or endpoint.redeliveries.get(message_id, 0) > 0
        trace_kept(
            endpoint.vpn,
            REDELIVER if again else DELIVER,
            message,
            endpoint.name,
            "",
            self.client_name,
            endpoint.partition_of(message_id, message),
            link=self.link.label,
            provider=provider.place,
        )

    @override
    def letting_go(self) -> None:
        # Whoever ends the flow: what was sent is in its queue again.
        self.link.counters.returned += len(self.unacked)

    @override
    def unbound(self, reason: str) -> None:
        self.closed = True
        self.link.unbound(self, reason)


@final
class LookAgain(TimerTarget):
    """Looks for messages of a flow after a moment."""

    __slots__ = ("_flow",)

    def __init__(self, flow: OutwardFlow) -> None:
        self._flow = flow
        context = flow.connection.context
        context.timers.arm(context.now_ns + LOOK_AGAIN_NS, self, 0)

    @override
    def owning_connection(self) -> Connection | None:
        return self._flow.connection

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        self._flow.looked()
