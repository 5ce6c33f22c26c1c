"""Links that bring messages into a message VPN, from a provider.

A Direct message enters at once. A guaranteed one is acknowledged when it is in the synced spool. What the message VPN
refuses for now, a full queue for example, is set aside in the link's own queue (`#connector/CONNECTOR/LINK`) together
with all that comes behind it, and enters from there in order. Where that is full too, messages wait in memory and are
not acknowledged. So the link waits alone: neither other links nor what leaves wait for it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.link_state import LinkEvent, LinkStatus
from vpnrouter.connectors.links import label
from vpnrouter.core.amqp.incoming_message import trace_parent_of
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import (
    DUPLICATE,
    LOOP_DETECTED,
    MSG_TOO_BIG,
    NO_SUBSCRIPTION_MATCH,
    NOT_TRANSFORMED,
    TOPIC_PARSE_ERROR,
    TTL_EXCEEDED,
    TTL_EXPIRED,
)
from vpnrouter.core.forward import trace
from vpnrouter.core.guaranteed.dead_letters import Passage, letter_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.guaranteed.failure_policy import CROSS, DEAD_LETTER, TOO_LATE_TO_ENTER
from vpnrouter.core.guaranteed.flow import ACCEPTED, Flow
from vpnrouter.core.guaranteed.flow import REJECTED as NEVER_WANTED
from vpnrouter.core.guaranteed.flow_selection import FlowSelection
from vpnrouter.core.guaranteed.refusals import TOO_LARGE
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.guaranteed.undelivered import Undelivered, UndeliveredOwner
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, UNMATCHED, CompletionCallback
from vpnrouter.core.message import AMQP, Message
from vpnrouter.core.selection import Selection, heavy, must_wait
from vpnrouter.core.timers import Job, TimerTarget
from vpnrouter.core.tracing import read
from vpnrouter.errors import TopicError
from vpnrouter.transforms.transform import PASS, STOP
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from vpnrouter.connectors.link_state import LinkCounters, LinkOwner
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.provider import Provider, Receipts
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.tracing import TraceParent
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.transforms.transform import Transform

RETRY_NS: Final = 200 * MILLISECOND_NS
"""Time after which what was refused is tried again, where no queue tells of more room before."""

SET_ASIDE: Final = 64
"""Messages of the link's own queue that are looked at at once."""

ENDINGS: Final = 3
"""Connections in a row that the provider ends for a link's request, before the link is refused."""

_NEVER: Final = {
    MSG_TOO_BIG: "it is too large for the message VPN",
    TOPIC_PARSE_ERROR: "it can have no topic in the message VPN",
    NOT_TRANSFORMED: "a step of the transform could not change it",
}
"""Why a message can never be in this message VPN, and what its dead letter says."""

NO_ROOM: Final = (
    "what comes in while it is paused has no more room in its queue, and waits at the provider"
)

ENTERED: Final = 0
REFUSED: Final = 1
LATER: Final = 2
"""What became of a message that was to enter: it has, it cannot now, nobody knows yet who wants it."""


class Entering(NamedTuple):
    """A message as the steps of a link have changed it, or why it can never enter (`why`, and what its dead letter says
    of that: `told`), or is to stay (`stuck`); "" where it may enter.
    """

    message: Message
    why: str = ""
    told: str = ""
    stuck: str = ""


@final
class Waiting:
    """A message that waits in memory, as it came, and how its provider is answered. `entering` says what becomes of
    it.
    """

    __slots__ = ("entering", "message", "receipts", "token")

    def __init__(self, message: Message, receipts: Receipts, token: int, why: str) -> None:
        self.message = message
        self.receipts = receipts
        self.token = token
        self.entering = Entering(message, why)

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, those of the changed message too."""
        message, entering = self.message, self.entering.message
        own = message.size + limits.SPOOL_BODY_COST
        return own if entering is message else own + entering.size + limits.SPOOL_BODY_COST


@final
class InwardLink(UndeliveredOwner):
    """One link inward, over all connections. `aside` is what it has set aside, None where nothing is guaranteed;
    `undelivered` what can never enter and waits for one of its dead message queues, None where it has none.

    `publisher` counts for its connector, `label` names the link in traces.
    """

    __slots__ = (
        "_blame",
        "_endings",
        "_memory",
        "_owner",
        "_selection",
        "aside",
        "counters",
        "label",
        "provider",
        "publisher",
        "retry",
        "shed",
        "spool",
        "status",
        "terms",
        "undelivered",
        "vpn",
        "waiting",
    )

    def __init__(
        self,
        owner: LinkOwner,
        vpn: MessageVpn,
        publisher: Publisher,
        terms: LinkSettings,
        counters: LinkCounters,
    ) -> None:
        self._owner = owner
        self.vpn = vpn
        self.publisher = publisher
        self.terms = terms
        self.label = label(publisher.subscriber.client_name, terms.name)
        self.counters = counters
        self.status = LinkStatus(
            owner,
            terms.name,
            enabled=terms.enabled,
            now_ns=vpn.context.now_ns,
            paused=terms.paused,
        )
        self.spool = spool_of(vpn.context)
        self.aside: SetAside | None = None
        self.undelivered: Undelivered | None = None
        self.provider: Provider | None = None
        # What waits in memory, its bytes, and whether more was left to the provider, which sends it over the next
        # connection.
        self.waiting: deque[Waiting] = deque()
        self._memory = 0
        # How often in a row the provider has ended the connection instead of answering, and what it said.
        self._endings = 0
        self._blame = ""
        self.shed = False
        self.retry = Retry(self)
        spool = self.spool
        self._selection = None if spool is None else LinkSelection(self, vpn, spool)

    @property
    def _now_ns(self) -> int:
        return self.vpn.context.now_ns

    @property
    def source(self) -> Subscriber:
        """Who publishes what it brings in, for no-local and for traces."""
        return self.publisher.subscriber

    def set_aside_in(self, endpoint: Endpoint) -> None:
        """Use `endpoint` as the link's own queue."""
        self.aside = SetAside(self, endpoint)
        self.counters.balance(self.in_flight)

    def bury_in(self, endpoint: Endpoint) -> None:
        """Use `endpoint` for what can never enter, until one of the link's dead message queues has it."""
        places = self.terms.failures.dead_msg_queues
        self.undelivered = Undelivered(endpoint, self.source.client_name, self, places)
        self.undelivered.consume()

    @property
    def in_flight(self) -> int:
        """Messages whose outcome is not known yet."""
        aside = self.aside
        return len(self.waiting) + (0 if aside is None else aside.endpoint.spooled_count)

    # -- connections -----------------------------------------------------------------------------

    def connected(self, provider: Provider) -> None:
        """Ask for messages over a new connection, if its provider can carry them."""
        self.status.happened(LinkEvent.CONNECTED, self._now_ns)
        if not self.status.opens:
            return
        obstacle = provider.obstacle(self.terms)
        if not obstacle and self._endings >= ENDINGS:
            # Once more over the connection after this one.
            self._endings -= 1
            obstacle = self._blame
        if obstacle:
            self.status.happened(LinkEvent.REFUSED, self._now_ns, obstacle)
        else:
            self.provider = provider
            provider.ask(self)

    def opened(self) -> None:
        """The provider gives the link its messages."""
        self._endings = 0
        self.status.happened(LinkEvent.OPENED, self._now_ns)

    def refused(self, why: str) -> None:
        """The provider does not, for `why`."""
        self.status.happened(LinkEvent.REFUSED, self._now_ns, why)

    def ended_connection(self, why: str) -> None:
        """The provider has ended the connection instead of answering the link's request."""
        self._endings += 1
        self._blame = f"{why}, instead of an answer to the subscription to {self.terms.source}"

    def disconnected(self) -> None:
        """The connection is over: what waits in memory comes again."""
        self.counters.returned += len(self.waiting)
        self.waiting.clear()
        self._keep(-self._memory)
        self.provider = None
        self.shed = False
        if self._selection is not None and self._selection.held:
            self._selection.drop()
        self.status.happened(LinkEvent.LOST, self._now_ns)

    def close(self) -> None:
        """Take nothing any more: the link is removed, or begins anew under other settings."""
        self.disconnected()
        self.retry.stop()
        aside, self.aside = self.aside, None
        if aside is not None:
            aside.close()
        undelivered, self.undelivered = self.undelivered, None
        if undelivered is not None:
            undelivered.close()

    def pause(self, paused: bool) -> None:
        """Let nothing enter, though the provider goes on to know the link; or go on, with what was set aside first."""
        self.terms.paused = paused
        self.status.pause(paused, self._now_ns)
        selection = self._selection
        if paused and selection is not None and selection.held:
            selection.drop()
        provider = self.provider
        if provider is not None:
            provider.inward_paused(self)
        self.retry.soon()

    # -- messages --------------------------------------------------------------------------------

    def takes(self, message: Message, size: int) -> str:
        """Count a message of the provider, a frame of `size` bytes; return why it can never enter, "" where it can."""
        counters = self.counters
        publisher = self.publisher
        counters.messages += 1
        counters.bytes_ += size
        publisher.messages += 1
        publisher.bytes_ += size
        vpn = self.vpn
        if message.path:
            if vpn.vpn_id in message.path:
                return LOOP_DETECTED
            if message.hops > self.terms.max_ttl:
                return TTL_EXCEEDED
        # Where the link changes it, that is found when it was changed.
        return "" if self.terms.transform is not None else self._flaw(message)

    def _flaw(self, message: Message) -> str:
        """Return why a message can never be in the message VPN, "" where it can."""
        try:
            self.vpn.route(message.topic)
        except TopicError:
            return TOPIC_PARSE_ERROR
        return MSG_TOO_BIG if len(message.payload) > self.vpn.limits.max_msg_size else ""

    def passed_over(self, size: int, reason: str) -> None:
        """Count a message, `size` bytes as they came, that was passed over: it is too large, or no message at all."""
        self.counters.messages += 1
        self.counters.bytes_ += size
        self.counters.discarded.add(reason)
        self.publisher.messages += 1
        self.publisher.bytes_ += size
        self.publisher.refused += 1
        self.vpn.discards.add(reason)

    def has_retained(self, message: Message) -> bool:
        """Return whether a retained message is retained here already, the same one."""
        retained = self.vpn.retained
        kept = retained.message(message.topic, retained.last, self._now_ns)
        return kept is not None and (kept.payload, kept.block) == (message.payload, message.block)

    def discards(self, message: Message, reason: str) -> None:
        """Count a message of the provider that does not enter. It is to be acknowledged: it would come again."""
        if reason == DUPLICATE:
            self.counters.duplicates += 1
        else:
            self.counters.discarded.add(reason)
        self.publisher.refused += 1
        self.vpn.discard(message, reason)

    def traced(self, message: Message, route: Route) -> None:
        """Decide whether a message is traced: as its publisher says, or by the sampler."""
        publisher = self.publisher
        context = self.vpn.context
        parent = _parent_of(message) if context.honours else None
        if parent is not None and parent.sampled:
            # Who publishes traces it: that is no draw of ours.
            self._trace(message, parent)
            return
        sampler = publisher.sampler_for(route)
        sampler.left -= 1
        if sampler.left == 0:
            sampler.next()
            self._trace(message, parent)

    def _trace(self, message: Message, parent: TraceParent | None) -> None:
        provider = self.provider
        place = "" if provider is None else provider.place
        trace(self.publisher, message, parent, self.label, place)

    def enter_direct(self, message: Message, connection: Connection) -> None:
        """Publish a Direct message that the link `takes`, and that came over `connection`."""
        vpn = self.vpn
        if self.terms.transform is not None:
            why = self._change_direct(message, self.terms.transform) or self._flaw(message)
            if why:
                self.discards(message, why)
                return
        route = vpn.route(message.topic)
        self.traced(message, route)
        if (route.selector_cost and heavy(route, message)) or must_wait(vpn, message):
            DirectSelection(self, connection, route, message).begin()
            return
        self.publish_direct(message)
        vpn.context.work += MEASURE.work()

    def _change_direct(self, message: Message, transform: Transform) -> str:
        why = transform.change(message, self._now_ns)
        self.vpn.context.work += MEASURE.work()
        if not why or transform.on_error == PASS:
            return ""
        self._owner.gave_up(self.terms.name, f"a message was discarded: {why}")
        return NOT_TRANSFORMED

    def publish_direct(self, message: Message) -> None:
        """Publish a Direct message whose receivers have selected, where that was much work."""
        reason = self.publisher.publish(message)
        if reason:
            self.counters.discarded.add(reason)
        else:
            self.counters.delivered += 1

    def enter(self, message: Message, receipts: Receipts, token: int, why: str = "") -> None:
        """Publish a guaranteed message that the link `takes`, in its turn; one that it `buries`, for `why`, becomes a
        dead letter.
        """
        waiting = Waiting(message, receipts, token, why)
        transform = self.terms.transform
        if transform is not None and not why:
            waiting.entering = self._changed(message, transform)
            why = waiting.entering.why
        entering = waiting.entering.message
        if not (why or waiting.entering.stuck):
            self.traced(entering, self.vpn.route(entering.topic))
            message.trace_high = entering.trace_high
            message.trace_low = entering.trace_low
        if self.waiting or self.shed:
            self._keep_in_memory(waiting)
            return
        aside = self.aside
        waits = not why and (self.status.paused or (aside is not None and aside.busy))
        answer = REFUSED if waits else self._enter(waiting)
        if answer == REFUSED and not self._set_aside(waiting):
            answer = LATER
        if answer == LATER:
            self._keep_in_memory(waiting)

    def _changed(self, message: Message, transform: Transform) -> Entering:
        """Return a message as the steps of the link change it, or why it cannot enter. It stays as it is itself."""
        entering = message.copy()
        entering.source = message.source
        entering.retain = message.retain
        why = transform.change(entering, self._now_ns)
        self.vpn.context.work += MEASURE.work()
        if not why or transform.on_error == PASS:
            return Entering(entering, self._flaw(entering))
        if transform.on_error == STOP:
            return Entering(message, stuck=why)
        return Entering(message, NOT_TRANSFORMED, why)

    def _enter(self, waiting: Waiting) -> int:
        message, why, told, stuck = waiting.entering
        vpn = self.vpn
        spool = self.spool
        selection = self._selection
        if spool is None or selection is None:
            return LATER
        if why:
            return self._end(waiting, why, told)
        if stuck:
            self.held(stuck)
            return REFUSED
        if message.expires_ns and self._expired(message):
            return self._end(waiting, TTL_EXPIRED)
        try:
            route = vpn.route(message.topic)
        except TopicError:
            # A limit of the message VPN was lowered while it waited.
            return self._end(waiting, TOPIC_PARSE_ERROR)
        if must_wait(vpn, message):
            spool.await_commit(GoOn(self))
            return LATER
        if route.selector_cost and not selection.ready(route, message, message, held=True):
            return LATER
        try:
            outcome = self._publish(spool, waiting)
        finally:
            if route.selector_cost:
                selection.entered(message)
        if outcome == REJECTED:
            reason = spool.foreseen(vpn, message) or "refused"
            if is_permanent(reason):
                return self._end(waiting, MSG_TOO_BIG, reason)
            self.held(reason)
            return REFUSED
        self.entered(outcome)
        return ENTERED

    def _publish(self, spool: Spool, waiting: Waiting) -> int:
        """Give the message to the spool: it and what it is known by are both in the unit, or neither is."""
        message, receipts, token = waiting.entering.message, waiting.receipts, waiting.token
        receipts.remember(token)
        try:
            outcome = spool.publish(self.vpn, message, receipts, token)
        except Exception:
            if not spool.has_taken(message):
                receipts.forget(token)
            raise
        if outcome == REJECTED:
            receipts.forget(token)
        return outcome

    def entered(self, outcome: int) -> None:
        """Count a message that has entered; `outcome` is the spool's."""
        if outcome == UNMATCHED:
            self.counters.discarded.add(NO_SUBSCRIPTION_MATCH)
            # The message VPN has counted it where it was found.
            self.publisher.refused += 1
        else:
            self.counters.delivered += 1
            if outcome == SPOOLED:
                self.publisher.spooled += 1
            else:
                self.publisher.delivered += 1

    # -- what can never enter --------------------------------------------------------------------

    def buries(self, why: str) -> bool:
        """Return whether a message that can never enter, for `why`, becomes a dead letter of the link."""
        return self.undelivered is not None and why in _NEVER

    def _expired(self, message: Message) -> bool:
        policy = self.terms.failures.expired
        return policy != CROSS and message.expires_ns <= self._now_ns

    def _end(self, waiting: Waiting, reason: str, told: str = "") -> int:
        """Have a message that does not enter be a dead letter, or discard it: ENTERED, or LATER where there is no room
        for it. It is acknowledged when that is synced.
        """
        spool = self.spool
        if spool is None:
            return LATER
        receipts, token = waiting.receipts, waiting.token
        receipts.remember(token)
        before = spool.unit.mark()
        try:
            if not self._bury(waiting.message, reason, told):
                receipts.forget(token)
                self.held("there is no room for a dead letter")
                return LATER
            spool.unit.call_when_synced(receipts, token, SPOOLED, "")
        except Exception:
            spool.take_back(before)
            receipts.forget(token)
            raise
        return ENTERED

    def _bury(self, message: Message, reason: str, told: str = "") -> bool:
        """Have a message be a dead letter that says why by `told`, in the unit being built, or discard it; False where
        there is no room.
        """
        undelivered = self.undelivered
        dies = reason in _NEVER or self.terms.failures.expired == DEAD_LETTER
        if undelivered is None or not dies:
            if told:
                self._owner.gave_up(self.terms.name, f"a message was discarded: {told}")
            self.discards(message, reason)
            return True
        endpoint = undelivered.endpoint
        terms, vpn, provider = self.terms, self.vpn, self.provider
        passage = Passage(
            f"connector {self.label}",
            terms.source,
            "" if provider is None else provider.place,
            terms.queue_target or message.topic.decode(errors="replace"),
            vpn.vpn_id,
        )
        why = told or _NEVER.get(reason, TOO_LATE_TO_ENTER)
        letter = letter_of(message, why, "", passage.pairs(message, reason, 0, vpn.context.wall_ns))
        letter.expires_ns = message.expires_ns
        if endpoint.spool.place(endpoint, letter):
            return False
        if endpoint.spool.fault is not None:
            endpoint.spool.fault("dead-letter-placed")
        self.counters.dead_letters += 1
        self.publisher.refused += 1
        return True

    @override
    def dead_letter(self, text: str) -> None:
        self._owner.gave_up(self.terms.name, text)

    @override
    def no_dead_letter(self, text: str) -> None:
        self._owner.not_delivered(self.terms.name, text)

    # -- what waits ------------------------------------------------------------------------------

    def _keep_in_memory(self, waiting: Waiting) -> None:
        """Keep a message in memory, not acknowledged. Where that is too much, the provider has to send it again."""
        size = waiting.size
        full = self.shed or self._memory + size > limits.LINK_WAITING_BYTES
        if full or not self._keep(size):
            self.shed = True
            self.counters.returned += 1
        else:
            self.waiting.append(waiting)
        if self.status.paused:
            self.status.hold(NO_ROOM, self._now_ns)
        self.retry.wait()

    def _keep(self, size: int) -> bool:
        """Count bytes that wait in memory for the connection, less of them where `size` is negative.

        False where they are too many.
        """
        provider = self.provider
        if provider is not None and size > 0 and not provider.connection.take(size):
            return False
        if provider is not None and size < 0:
            provider.connection.give_back(-size)
        self._memory += size
        return True

    def _set_aside(self, waiting: Waiting) -> bool:
        aside = self.aside
        spool = self.spool
        if aside is None or spool is None:
            return False
        receipts, token = waiting.receipts, waiting.token
        receipts.remember(token)
        try:
            placed = aside.put(waiting.message)
        except Exception:
            receipts.forget(token)
            raise
        if not placed:
            receipts.forget(token)
            return False
        spool.unit.call_when_synced(receipts, token, SPOOLED, "")
        return True

    def held(self, reason: str) -> None:
        """Note why messages wait, "" where none do."""
        if reason and not self.status.reason:
            self.counters.refused += 1
        self.status.hold(reason, self._now_ns)

    def go_on(self) -> None:
        """Try what waits: first what was set aside, which is older. While the link is paused all is set aside."""
        aside = self.aside
        paused = self.status.paused
        if aside is not None and not paused:
            aside.go_on()
        waiting = self.waiting
        while waiting:
            first = waiting[0]
            busy = paused or (aside is not None and aside.busy)
            message, why, _, stuck = first.entering
            held = not (why or stuck) and (busy or self._foreseen(message))
            answer = REFUSED if held else self._enter(first)
            if answer == LATER or (answer == REFUSED and not self._set_aside(first)):
                break
            waiting.popleft()
            self._keep(-first.size)
        if waiting or (aside is not None and aside.busy and not paused):
            self.retry.wait()
            return
        self.held("")
        provider = self.provider
        if self.shed and provider is not None:
            self.shed = False
            provider.renew(f"link {self.terms.name} has room again")

    def leaves(self, aside: SetAside, message_id: int, parked: Message) -> bool:
        """Let a message enter that was set aside; False where it cannot now."""
        vpn, spool, selection = self.vpn, self.spool, self._selection
        if spool is None or selection is None:
            return False
        endpoint = aside.endpoint
        if self.terms.transform is None:
            message = parked.copy()
            message.retain = parked.retain
        else:
            message, why, told, stuck = self._changed(parked, self.terms.transform)
            if stuck:
                self.held(stuck)
                return False
            if why:
                return self._leaves_for_good(aside, message_id, parked, why, told)
        if self._foreseen(message):
            return False
        if message.expires_ns and self._expired(message):
            return self._leaves_for_good(aside, message_id, message, TTL_EXPIRED)
        try:
            route = vpn.route(message.topic)
            if route.selector_cost and not selection.ready(route, parked, message, held=False):
                return False
            outcome = spool.publish(vpn, message, aside, message_id)
        except TopicError:
            # A limit of the message VPN was lowered while it was set aside: it can never enter.
            return self._leaves_for_good(aside, message_id, message, TOPIC_PARSE_ERROR)
        finally:
            selection.entered(message)
        if outcome == REJECTED:
            reason = spool.foreseen(vpn, message)
            return is_permanent(reason) and self._leaves_for_good(
                aside, message_id, parked, MSG_TOO_BIG, reason
            )
        endpoint.settle(aside, message_id, ACCEPTED)
        self.entered(outcome)
        return True

    def _leaves_for_good(
        self, aside: SetAside, message_id: int, message: Message, reason: str, told: str = ""
    ) -> bool:
        """Have a message that was set aside be a dead letter, or discard it; False where there is no room for it."""
        endpoint = aside.endpoint
        before = endpoint.spool.unit.mark()
        if not self._bury(message, reason, told):
            return False
        if endpoint.spool.unit.mark() != before:
            endpoint.left(aside, message_id, before)
        else:
            endpoint.settle(aside, message_id, NEVER_WANTED if reason in _NEVER else ACCEPTED)
        return True

    def _foreseen(self, message: Message) -> bool:
        """Return whether the message VPN would refuse a message; it is not counted as a refusal once more."""
        spool = self.spool
        if spool is None:
            return True
        try:
            reason = spool.foreseen(self.vpn, message)
        except TopicError:
            return False
        if reason and not is_permanent(reason):
            self.held(reason)
            return True
        return False


def is_permanent(reason: str) -> bool:
    """Return whether a queue would refuse a message for this reason whenever it came: it never has room for it."""
    return reason.endswith(TOO_LARGE)


def _parent_of(message: Message) -> TraceParent | None:
    if message.encoding == AMQP:
        return trace_parent_of(message)
    return read(message.block) if message.block else None


@final
class SetAside(Flow):
    """What a link has set aside: the only consumer of its own queue. `order` are the ids that it holds."""

    __slots__ = ("_link", "order")

    def __init__(self, link: InwardLink, endpoint: Endpoint) -> None:
        super().__init__(endpoint, link.publisher.subscriber.client_name, SET_ASIDE)
        self._link = link
        self.order: deque[int] = deque()
        endpoint.bind(self, CONSUME, CONSUME)

    @property
    def busy(self) -> bool:
        """Whether anything is set aside."""
        return self.endpoint.spooled_count > 0

    def put(self, message: Message) -> bool:
        """Set a message aside, in the unit being built; False where there is no room."""
        return not self.endpoint.spool.place(self.endpoint, message)

    @override
    def room(self) -> int:
        # One message, whatever its size; what is refused stays in the store for the rest.
        self.budget = limits.LINK_WAITING_BYTES - self.bytes_out
        return self.window - len(self.unacked) if self.budget > 0 else 0

    @override
    def send(self, message_id: int, message: Message, count: int) -> None:
        self.order.append(message_id)
        self._link.retry.soon()

    def go_on(self) -> None:
        """Let messages enter in their order, until one is refused."""
        order = self.order
        while order:
            message = self.unacked.get(order[0])
            # Else an operator took it away.
            if message is not None and not self._link.leaves(self, order[0], message):
                return
            order.popleft()

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        # What leaves has been acknowledged when it came.
        return

    def close(self) -> None:
        """Let go of the queue: what is in it waits there."""
        self.endpoint.unbind(self, counts=False)
        self.order.clear()

    @override
    def unbound(self, reason: str) -> None:
        self.order.clear()


@final
class LinkSelection(FlowSelection):
    """The evaluation of selectors for a link."""

    __slots__ = ("_link",)

    def __init__(self, link: InwardLink, vpn: MessageVpn, spool: Spool) -> None:
        super().__init__(vpn, spool)
        self._link = link

    @override
    def go_on(self) -> None:
        self._link.go_on()


@final
class DirectSelection(Selection):
    """A Direct message that waits until the selectors of its receivers have been evaluated."""

    __slots__ = ("_connection", "_link")

    def __init__(
        self, link: InwardLink, connection: Connection, route: Route, message: Message
    ) -> None:
        super().__init__(connection, link.vpn, route, message)
        self._connection = connection
        self._link = link

    @override
    def keep(self, size: int) -> None:
        self._connection.keep_packet(max(0, size))

    @override
    def deliver(self) -> None:
        self._link.publish_direct(self.message)


@final
class GoOn(Job):
    """The next turn of a link."""

    __slots__ = ("_link",)

    def __init__(self, link: InwardLink) -> None:
        super().__init__()
        self._link = link

    @override
    def step(self) -> bool:
        self._link.retry.due()
        return True


ROOM: Final = 0
"""Token: an endpoint has more room."""


@final
class Retry(TimerTarget):
    """When a link tries again what was refused: as soon as an endpoint has more room, and after a time."""

    __slots__ = ("_asked_room", "_link", "_room", "_soon", "_stopped", "_timer")

    def __init__(self, link: InwardLink) -> None:
        self._link = link
        self._room = RoomAgain(self)
        self._timer: Timer | None = None
        self._asked_room = False
        self._soon = False
        self._stopped = False

    def wait(self) -> None:
        """Try again after a time, and when the spool has room."""
        link = self._link
        context = link.vpn.context
        if self._timer is None:
            self._timer = context.timers.arm(context.now_ns + RETRY_NS, self, 0)
        if not self._asked_room and link.spool is not None:
            self._asked_room = True
            link.spool.when_room(self._room, ROOM)

    def soon(self) -> None:
        """Try in the next turn."""
        if not self._soon:
            self._soon = True
            self._link.vpn.context.jobs.add(GoOn(self._link))

    def due(self) -> None:
        """Try now."""
        self._soon = False
        if not self._stopped:
            self._link.go_on()

    def room(self) -> None:
        """Try, because the spool has room."""
        self._asked_room = False
        self.due()

    def stop(self) -> None:
        """Try no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @override
    def on_timer(self, kind: int, now_ns: int) -> None:
        self._timer = None
        self.due()


@final
class RoomAgain(CompletionCallback):
    """Told by the spool that an endpoint has more room."""

    __slots__ = ("_retry",)

    def __init__(self, retry: Retry) -> None:
        self._retry = retry

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self._retry.room()
