"""Hands on what waits for a member of a shared subscription whose session has ended.

MQTT 5, 4.8.2: another member gets it, but not what is QoS 2 and may have been sent already (MQTT-4.8.2-5). A row in the
spool names the endpoint until all is handed on, so that a router that is killed meanwhile goes on with its next start.
A member of QoS 0 that is connected gets it as a Direct message, where no endpoint has room. What none of the others can
take is a dead letter or discarded, and counted. Where nobody else is left in the group, it is deleted with the
endpoint, as without a shared subscription.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import CLIENT_NOT_CONNECTED, NO_SUBSCRIPTION_MATCH
from vpnrouter.core.fault_barrier import SPOOL
from vpnrouter.core.guaranteed.counters import MOVED
from vpnrouter.core.guaranteed.dead_letters import EXPIRED
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.guaranteed.refusals import DISCARD_NAMES, SESSION_ENDED
from vpnrouter.core.timers import Job
from vpnrouter.core.tracing import trace_kept
from vpnrouter.errors import SpoolError, TopicError
from vpnrouter.events.table import SESSION_END
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.trace.events import DEMOTE

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.route import Route, ShareGroup
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter

AT_ONCE: Final = 256
"""Ids that are looked up at a time."""

HANDOVER_WORK: Final = 4
"""What it costs to hand a message on, in parts of a turn (TurnContext.work)."""

LATER_NS: Final = 50_000_000
"""How soon to look again at a spool that cannot take messages, or has not written those of the session yet."""

PATIENCE: Final = 100
"""How often to look again at a member of QoS 0 that has no room, before what it has no room for is discarded."""

HEADER_BYTES: Final = 64
"""What a frame may have besides its message, about."""

SIZE_SHIFT: Final = 8
"""The size of a message, shifted by so many bits, is what reading and writing it costs."""

NAME: Final = "\0"
"""What the names of the rows begin with: no client id has this character (MQTT-1.5.4-2)."""


@final
class Handover(Job):
    """What is left in the `endpoint` of a session that has ended, on its way to other members of its groups.

    `handed_on` counts it. `ended`, unless None, tells of the end of the session when all is done.
    """

    __slots__ = (
        "_held_back",
        "_key",
        "_last",
        "_shared",
        "_waited",
        "ended",
        "endpoint",
        "handed_on",
    )

    def __init__(self, endpoint: Endpoint, held_back: set[int]) -> None:
        """Hand on nothing yet (`share`); never what is `held_back`, by message ids."""
        super().__init__()
        self.endpoint = endpoint
        self._held_back = held_back
        self._shared: list[Filter] = []
        self._last = 0
        self._waited = 0
        self.handed_on = 0
        self.ended: SessionEnd | None = None
        self._key = keys.session(endpoint.vpn.name, f"{NAME}{endpoint.number}")

    def share(self, filter_: Filter) -> None:
        """Hand on what a shared subscription matches, if its group has other members then."""
        self._shared.append(filter_)

    def keep(self) -> None:
        """Write down what is to be handed on."""
        endpoint = self.endpoint
        row = {
            "number": endpoint.number,
            "shared": [filter_.original for filter_ in self._shared],
            "held_back": sorted(self._held_back),
        }
        endpoint.spool.ledger.put(self._key, json.dumps(row).encode())

    def step(self) -> bool:
        """Hand on messages, the oldest first, until this turn has done enough; then delete the endpoint."""
        endpoint = self.endpoint
        spool = endpoint.spool
        context = endpoint.vpn.context
        if endpoint.returning:
            return False
        while ids := self._next():
            for message_id in ids:
                if spool.down:
                    return self._later()
                if spool.crowded():
                    spool.await_commit(self)
                    return True
                if context.turn_spent:
                    return False
                context.work += HANDOVER_WORK
                try:
                    if not self._hand_on(message_id):
                        return self._later()
                except Exception as problem:  # noqa: BLE001 - given to the barrier: the others follow
                    context.barrier.caught(
                        problem, SPOOL, endpoint.name, endpoint.vpn.name, "goes on"
                    )
                self._last = message_id
        if endpoint.pending:
            # They were on their way into the spool when the session ended.
            return self._later()
        endpoint.delete(SESSION_ENDED)
        spool.ledger.delete(self._key)
        if self.ended is not None:
            self.ended.tell(self.handed_on)
        return True

    def _later(self) -> bool:
        context = self.endpoint.vpn.context
        context.timers.arm(context.now_ns + LATER_NS, self, 0)
        return True

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Go on."""
        self.endpoint.vpn.context.jobs.add(self)

    def _next(self) -> list[int]:
        """Return the lowest ids that were not looked at."""
        last = self._last
        found = [
            message_id for message_id in self.endpoint.schedule.delayed.ids() if message_id > last
        ]
        for pool in self.endpoint.pools():
            found += pool.after(last, AT_ONCE)
        return sorted(found)[:AT_ONCE]

    def _hand_on(self, message_id: int) -> bool:
        """Hand a message on to each group, or give it up; False where a member is to be waited for."""
        endpoint = self.endpoint
        vpn = endpoint.vpn
        message = None if message_id in self._held_back else endpoint.find(message_id)
        if message is None:
            return True
        if endpoint.is_over(message):
            endpoint.give_up(message_id, message, EXPIRED)
            return True
        try:
            route = vpn.route(message.topic)
        except TopicError:
            # A limit of the message VPN was lowered while it waited.
            return True
        takers = self._takers(route, message)
        vpn.context.work += (message.size >> SIZE_SHIFT) + MEASURE.work()
        if takers.members and self._waits_for(takers.members, message.size + HEADER_BYTES):
            return False
        for target in takers.endpoints[1:]:
            endpoint.copy_message(message_id, target)
        for member in takers.members:
            self._deliver(message, route, member)
        if takers.endpoints:
            why = endpoint.move_message(message_id, takers.endpoints[0])
            takers.why = takers.why or DISCARD_NAMES.get(why, "")
        elif takers.members:
            endpoint.lose(message_id, MOVED)
        if not endpoint.waits(message_id):
            self.handed_on += 1
        elif takers.why and not endpoint.give_up(message_id, message, takers.why):
            vpn.discards.add(takers.why)
        return True

    def _waits_for(self, members: list[Subscription], size: int) -> bool:
        """Return whether a member has no room for `size` bytes in its outbox, and was not waited for in vain before."""
        for member in members:
            outbox = member.subscriber.outbox
            if outbox.size and outbox.size + size > outbox.limit:
                self._waited += 1
                return self._waited <= PATIENCE
        self._waited = 0
        return False

    def _deliver(self, message: Message, route: Route, member: Subscription) -> None:
        vpn = self.endpoint.vpn
        if route.many_links and message.message_id == 0:
            message.message_id = vpn.context.ids.new_message_id()
        member.subscriber.deliver(message, [member])
        if message.traced:
            trace_kept(vpn, DEMOTE, message, "", "")

    def _takers(self, route: Route, message: Message) -> Takers:
        """Return who takes a message, of each group one."""
        takers = Takers()
        groups = self.endpoint.vpn.groups
        for filter_ in self._shared:
            group = groups.get(filter_)
            if group is not None and group in route.groups:
                takers.choose(group, message, route.excluded)
        return takers


@final
class Takers:
    """Who takes a message: `endpoints`, and `members` of QoS 0 as a Direct message; `why` a group has nobody for it."""

    __slots__ = ("endpoints", "members", "why")

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.members: list[Subscription] = []
        self.why = ""

    def choose(self, group: ShareGroup, message: Message, excluded: set[Subscriber]) -> None:
        """Choose the next member of a group: one who keeps the message, else one of QoS 0 who is connected."""
        member = group.choose_durable(message, excluded)
        endpoint = None if member is None else endpoint_of(member.subscriber)
        obstacle = "" if endpoint is None else endpoint.obstacle(message, message.size)
        if endpoint is not None and not obstacle:
            if endpoint not in self.endpoints:
                self.endpoints.append(endpoint)
            return
        member = group.choose(message, excluded, 0)
        if member is not None:
            self.members.append(member)
        elif endpoint is not None:
            self.why = DISCARD_NAMES[obstacle]
            endpoint.counters.refused.add(self.why)
        else:
            away = group.misses(message, excluded)
            self.why = CLIENT_NOT_CONNECTED if away else NO_SUBSCRIPTION_MATCH


@final
class SessionEnd:
    """The end of a session that a change of the configuration ends, for `why`: the event about it."""

    __slots__ = ("_session", "_waiting", "_why")

    def __init__(self, session: MqttSession, waiting: int, why: str) -> None:
        self._session = session
        self._waiting = waiting
        self._why = why

    def tell(self, handed_on: int) -> None:
        """Raise the event; `handed_on` of the messages that waited are others' now."""
        session = self._session
        left = f"{self._waiting - handed_on:,} messages discarded"
        if handed_on:
            left = f"{handed_on:,} messages handed on to others, {left}"
        session.report(SESSION_END, session.owner, f"session ended: {self._why}; {left}")


def hand_over(session: MqttSession, why: str) -> None:
    """Take the endpoint of a session that ends, where others share a subscription with it, to hand on what is in it.

    With `why`, an event tells of the end of the session: at once, or when all is handed on.
    """
    endpoint = endpoint_of(session)
    waiting = 0 if endpoint is None else endpoint.spooled_count
    end = SessionEnd(session, waiting, why) if why else None
    shared = _shared_with_others(session) if waiting else []
    if endpoint is None or not shared:
        if end is not None:
            end.tell(0)
        return
    outbound = session.outbound
    handover = Handover(endpoint, set() if outbound is None else outbound.half_sent())
    handover.ended = end
    for filter_ in shared:
        handover.share(filter_)
    if endpoint.durable:
        handover.keep()
    session.endpoint = None
    session.vpn.count_endpoint(session.owner, -1)
    del session.vpn.endpoints[SESSION, endpoint.name]
    endpoint.vpn.context.jobs.add(handover)
    endpoint.put_out(SESSION_ENDED)


def _shared_with_others(session: MqttSession) -> list[Filter]:
    """Return the filters of shared subscriptions that kept messages for a session and that others have.

    Also of those that it may not have any more: what its others may do counts.
    """
    groups = session.vpn.groups
    shared: list[Filter] = []
    for subscription in session.subscriptions.values():
        filter_ = subscription.filter
        # None where it is suspended, and nobody else shares it.
        group = groups.get(filter_) if filter_.share and subscription.granted else None
        if group is not None and any(one.subscriber is not session for one in group.members):
            shared.append(filter_)
    return shared


def leftover(spool: Spool, vpn: MessageVpn, number: int, held_back: set[int]) -> Handover:
    """Return a handover of what a session left in the spool under `number`; its job is to be done."""
    settings = vpn.session_terms.copy()
    endpoint = Endpoint(spool, vpn, SESSION, f"#ended/{number}", number, settings)
    handover = Handover(endpoint, held_back)
    vpn.context.jobs.add(handover)
    return handover


def restore_handover(spool: Spool, vpn: MessageVpn, value: bytes) -> Handover:
    """Return the handover that `keep` wrote down; its job is to be done. Raises SpoolError for what is no such row."""
    try:
        row = json.loads(value)
        held_back = {int(message_id) for message_id in row["held_back"]}
        handover = leftover(spool, vpn, int(row["number"]), held_back)
        for text in row["shared"]:
            handover.share(parse_filter(text, MQTT))
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolError("a session that has ended in the spool is damaged", "corrupt") from error
    return handover
