"""Hands on what waits for a member of a shared subscription whose session has ended.

MQTT 5, 4.8.2: another member gets it, but not what is QoS 2 and may have been sent already (MQTT-4.8.2-5). A row in the
spool names the endpoint until all is handed on, so that a router that is killed meanwhile goes on with its next start.
What nobody takes is deleted with the endpoint, as without a shared subscription.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.fault_barrier import SPOOL
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.guaranteed.refusals import SESSION_ENDED
from vpnrouter.core.timers import Job
from vpnrouter.errors import SpoolError, TopicError
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT, parse_filter

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.route import Route
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter

AT_ONCE: Final = 256
"""Ids that are looked up at a time."""

HANDOVER_WORK: Final = 4
"""What it costs to hand a message on, in parts of a turn (TurnContext.work)."""

LATER_NS: Final = 50_000_000
"""How soon to look again at a spool that cannot take messages, or has not written those of the session yet."""

SIZE_SHIFT: Final = 8
"""The size of a message, shifted by so many bits, is what reading and writing it costs."""

NAME: Final = "\0"
"""What the names of the rows begin with: no client id has this character (MQTT-1.5.4-2)."""


@final
class Handover(Job):
    """What is left in the `endpoint` of a session that has ended, on its way to other members of its groups."""

    __slots__ = ("_held_back", "_key", "_last", "_shared", "endpoint")

    def __init__(self, endpoint: Endpoint, held_back: set[int]) -> None:
        """Hand on nothing yet (`share`); never what is `held_back`, by message ids."""
        super().__init__()
        self.endpoint = endpoint
        self._held_back = held_back
        self._shared: list[Filter] = []
        self._last = 0
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
                self._last = message_id
                try:
                    self._hand_on(message_id)
                except Exception as problem:  # noqa: BLE001 - given to the barrier: the others follow
                    context.barrier.caught(
                        problem, SPOOL, endpoint.name, endpoint.vpn.name, "goes on"
                    )
        if endpoint.pending:
            # They were on their way into the spool when the session ended.
            return self._later()
        endpoint.delete(SESSION_ENDED)
        spool.ledger.delete(self._key)
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

    def _hand_on(self, message_id: int) -> None:
        endpoint = self.endpoint
        message = None if message_id in self._held_back else endpoint.find(message_id)
        if message is None:
            return
        try:
            route = endpoint.vpn.route(message.topic)
        except TopicError:
            # A limit of the message VPN was lowered while it waited.
            return
        targets = self._targets(route, message)
        endpoint.vpn.context.work += (message.size >> SIZE_SHIFT) + MEASURE.work()
        for target in targets[1:]:
            endpoint.copy_message(message_id, target)
        if targets:
            endpoint.move_message(message_id, targets[0])

    def _targets(self, route: Route, message: Message) -> list[Endpoint]:
        """Return the endpoint of the next member of each group."""
        found: list[Endpoint] = []
        groups = self.endpoint.vpn.groups
        for filter_ in self._shared:
            group = groups.get(filter_)
            if group is None or group not in route.groups:
                continue
            member = group.choose_durable(message, route.excluded)
            target = None if member is None else endpoint_of(member.subscriber)
            if target is not None and target not in found:
                found.append(target)
        return found


def hand_over(session: MqttSession) -> None:
    """Take the endpoint of a session that ends, where others share a subscription with it, to hand on what is in it."""
    endpoint = endpoint_of(session)
    if endpoint is None or not endpoint.spooled_count:
        return
    groups = session.vpn.groups
    shared: list[Filter] = []
    for subscription in session.subscriptions.values():
        filter_ = subscription.filter
        # None where it is suspended, and nobody else shares it.
        group = groups.get(filter_) if filter_.share and subscription.qos else None
        if group is not None and len(group.members) > 1:
            shared.append(filter_)
    if not shared:
        return
    outbound = session.outbound
    handover = Handover(endpoint, set() if outbound is None else outbound.half_sent())
    for filter_ in shared:
        handover.share(filter_)
    if endpoint.durable:
        handover.keep()
    session.endpoint = None
    session.vpn.count_endpoint(session.owner, -1)
    del session.vpn.endpoints[SESSION, endpoint.name]
    endpoint.vpn.context.jobs.add(handover)
    endpoint.put_out(SESSION_ENDED)


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
