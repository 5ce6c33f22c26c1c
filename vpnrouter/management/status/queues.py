"""Makes the status of endpoints, flows and messages, and carries out actions on queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

import trio

from vpnrouter import limits
from vpnrouter.core.guaranteed import dead_letters, refusals
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    KIND_NAMES,
    PARKING,
    QUEUE,
    SESSION,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.errors import Refused
from vpnrouter.management.status.stats_baseline import EndpointBaselines
from vpnrouter.settings.endpoint import Queue, TopicEndpoint
from vpnrouter.settings.schema import showing, shown
from vpnrouter.settings.shown import Reader, counter, fill, gauge, label, read
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.core.guaranteed.counters import EndpointCounters
    from vpnrouter.core.guaranteed.endpoint import Endpoint, EndpointMessage
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.router import Router


PREFIXES: Final = {
    QUEUE: "",
    TOPIC_ENDPOINT: "#topic-endpoint/",
    SESSION: "",
    PARKING: "#parking-lot/",
    SUBSCRIPTION: "",
    CONNECTOR_LINK: CONNECTOR_PREFIX,
}
"""Kinds that are shown, and what stands before their names, so that each name is there once; those of
sessions begin with `#mqtt/` by themselves, those of AMQP's subscriptions with `#amqp`, as no queue's does."""


@final
class EndpointLook:
    """A queue or another endpoint at one moment, with the counts to show: where its status and its metrics are read.

    `oldest_s` says for metrics how long its oldest message has been waiting, without reading it.
    """

    __slots__ = ("counts", "endpoint", "oldest_s")

    def __init__(
        self,
        endpoint: Endpoint,
        counts: EndpointCounters,
        oldest_s: Callable[[Endpoint], float] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.counts = counts
        self.oldest_s = oldest_s


def _refused(reason: str) -> Reader:
    return lambda one: one.counts.refused.counts.get(reason, 0)


def _discarded(reason: str) -> Reader:
    return lambda one: one.counts.discarded.counts.get(reason, 0)


def _to_dmq(reason: str) -> Reader:
    return lambda one: one.counts.to_dmq.get(reason, 0)


def _to_dmq_failed(reason: str) -> Reader:
    return lambda one: one.counts.to_dmq_failed.get(reason, 0)


def _too_many(one: EndpointLook) -> int:
    failures = one.counts.bind_failures
    return sum(count for reason, count in failures.items() if "Max clients" in reason)


def _oldest_age_ms(one: EndpointLook) -> int:
    oldest = one.endpoint.browse(0, 1)
    now_ns = one.endpoint.vpn.context.steady_ns
    return (now_ns - oldest[0].spooled_time_ns) // 1_000_000 if oldest else -1


def _unacked(one: EndpointLook) -> int:
    flows = one.endpoint.flows
    return sum([len(flow.unacked) for flow in flows]) if flows else 0


@dataclass(frozen=True, slots=True, kw_only=True)
@showing(Queue, shared_with=TopicEndpoint)
class EndpointStatus:
    """What monitoring shows of queues and of topic endpoints, read from an EndpointLook, with the attributes that are
    configured. Counts go on over restarts, or are since they were cleared.

    Names are those of the field in snake_case. The field's `spooled_…` are everything that ever went in; what is
    in the endpoint now is `msg_count` (ours; in the field the number of its msgs objects) and `msg_spool_usage`.
    Ours besides: `bind_count`, `acked_msg_count`, `moved_msg_count`, `recovered_msg_count`,
    `oldest_msg_age_ms`, `discarded`, `refused`, `imbalance`.
    """

    msg_vpn_name: str = read(lambda one: one.endpoint.vpn.name, "", label("msg_vpn"))
    durable: bool = read(lambda one: one.endpoint.durable, True)

    msg_count: int = read(
        lambda one: one.endpoint.spooled_count,
        metric=gauge(
            "vpnrouter_queue_messages", "Messages in the queue, unacknowledged ones included."
        ),
    )
    """Messages in the queue now: waiting, delayed, and delivered but not acknowledged."""
    msg_spool_usage: int = read(
        lambda one: one.endpoint.spooled_bytes,
        metric=gauge("vpnrouter_queue_bytes", "Bytes of these."),
    )
    """Bytes of these."""
    max_size: ClassVar = gauge(
        "vpnrouter_queue_max_bytes",
        "What these may come to.",
        reader=lambda one: one.endpoint.settings.max_msg_spool_usage,
    )
    msg_spool_peak_usage: int = read(lambda one: one.counts.peak_bytes)
    tx_unacked_msg_count: int = read(
        _unacked,
        metric=gauge(
            "vpnrouter_queue_unacked_messages", "Messages that consumers hold unacknowledged."
        ),
    )
    oldest_msg_age_ms: int = read(
        _oldest_age_ms,
        -1,
        metric=gauge(
            "vpnrouter_queue_oldest_message_age_seconds",
            "How long the oldest message has been waiting; 0 when there is none.",
            reader=lambda one: one.oldest_s(one.endpoint) if one.endpoint.spooled_count else 0.0,
            after="vpnrouter_queue_consumers",
        ),
    )
    """How long the oldest message has been waiting, -1 for none."""
    lowest_msg_id: int = read(lambda one: one.endpoint.first_held())
    highest_msg_id: int = read(lambda one: one.endpoint.last_held())
    """Spool ids of the oldest and newest message in the queue, 0 for none."""
    last_spooled_msg_id: int = read(lambda one: one.endpoint.newest)
    """Spool id of the last message that came in, be it there or not; after a restart of the newest that was
    still there, 0 for none."""
    bind_count: int = read(
        lambda one: len(one.endpoint.flows),
        metric=gauge("vpnrouter_queue_consumers", "Consumers that are bound."),
    )
    """Consumers that are bound now."""
    ingress_disabled: ClassVar = gauge(
        "vpnrouter_queue_ingress_disabled",
        "1 while the queue takes no messages.",
        sparse=True,
        reader=lambda one: 0 if one.endpoint.settings.ingress_enabled else 1,
    )
    egress_disabled: ClassVar = gauge(
        "vpnrouter_queue_egress_disabled",
        "1 while consumers get no messages.",
        sparse=True,
        reader=lambda one: 0 if one.endpoint.settings.egress_enabled else 1,
    )

    spooled_msg_count: int = read(
        lambda one: one.counts.spooled,
        metric=counter(
            "vpnrouter_queue_spooled_messages_total", "Messages that the queue has taken."
        ),
    )
    spooled_byte_count: int = read(
        lambda one: one.counts.spooled_bytes,
        metric=counter("vpnrouter_queue_spooled_bytes_total", "Bytes of these."),
    )
    recovered_msg_count: int = read(lambda one: one.counts.recovered)
    """Messages that were there when the router started."""
    acked_msg_count: int = read(
        lambda one: one.counts.acked,
        metric=counter("vpnrouter_queue_acked_messages_total", "Messages that were consumed."),
    )
    deleted_msg_count: int = read(
        lambda one: one.counts.deleted,
        metric=counter(
            "vpnrouter_queue_deleted_messages_total",
            "Messages deleted by an operator.",
            sparse=True,
            after="vpnrouter_queue_moved_messages_total",
        ),
    )
    """Messages deleted by an operator."""
    moved_msg_count: int = read(
        lambda one: one.counts.moved,
        metric=counter(
            "vpnrouter_queue_moved_messages_total",
            "Messages that went to the dead message queue, or were moved by an operator.",
            sparse=True,
        ),
    )
    """Messages that went to the dead message queue, or were moved by an operator."""
    redelivered_msg_count: int = read(
        lambda one: one.counts.redelivered,
        metric=counter(
            "vpnrouter_queue_redelivered_messages_total",
            "Deliveries of a message anew.",
            sparse=True,
            after="vpnrouter_queue_acked_messages_total",
        ),
    )

    bind_request_count: int = read(lambda one: one.counts.bind_request_count)
    bind_success_count: int = read(lambda one: one.counts.bind_success_count)
    discarded: dict[str, int] = read(
        lambda one: dict(one.counts.discarded.counts),
        {},
        metric=counter(
            "vpnrouter_queue_discarded_messages_total",
            "Messages that were in the queue and are lost, by reason.",
            "reason",
        ),
    )
    """Messages that were in the queue and are lost, by reason."""
    refused: dict[str, int] = read(
        lambda one: dict(one.counts.refused.counts),
        {},
        metric=counter(
            "vpnrouter_queue_refused_messages_total",
            "Messages that the queue did not take, by reason.",
            "reason",
        ),
    )
    """Messages that the queue did not take, by reason."""
    imbalance: int = read(
        lambda one: one.counts.imbalance(one.endpoint.spooled_count),
        metric=gauge(
            "vpnrouter_queue_imbalance_messages",
            "Messages not accounted for; anything but 0 is a fault of the router.",
            sparse=True,
        ),
    )
    """Messages recovered and spooled that are neither acknowledged, discarded, deleted, moved, nor in the
    queue. Anything but 0 is a fault of the router."""


@dataclass(frozen=True, slots=True, kw_only=True)
@showing(Queue)
class QueueStatus(EndpointStatus):
    """One queue as monitoring shows it; `endpoint_type` is ours."""

    queue_name: str = read(
        lambda one: PREFIXES[one.endpoint.kind] + one.endpoint.name, "", label("queue")
    )
    endpoint_type: str = read(lambda one: KIND_NAMES[one.endpoint.kind], "queue")
    """`queue`, `topic-endpoint`, `session` (of an MQTT session), `subscription` (of an AMQP client) or `parking-lot`
    (of a bridge). `owner` of the third and fourth is the client username that made it."""
    max_bind_count_exceeded_bind_failure_count: int = read(_too_many)
    other_bind_failure_count: int = read(
        lambda one: sum(one.counts.bind_failures.values()) - _too_many(one)
    )

    disabled_discarded_msg_count: int = read(_refused("destination-group-error"))
    low_priority_msg_congestion_discarded_msg_count: int = read(
        _refused("low-priority-msg-congestion")
    )
    max_msg_size_exceeded_discarded_msg_count: int = read(_refused("max-msg-size-exceeded"))
    max_msg_spool_usage_exceeded_discarded_msg_count: int = read(
        _refused("max-msg-spool-usage-exceeded")
    )
    max_redelivery_exceeded_discarded_msg_count: int = read(_discarded(dead_letters.REDELIVERED))
    max_redelivery_exceeded_to_dmq_msg_count: int = read(_to_dmq(dead_letters.REDELIVERED))
    max_redelivery_exceeded_to_dmq_failed_msg_count: int = read(
        _to_dmq_failed(dead_letters.REDELIVERED)
    )
    max_ttl_expired_discarded_msg_count: int = read(_discarded(dead_letters.EXPIRED))
    max_ttl_expired_to_dmq_msg_count: int = read(_to_dmq(dead_letters.EXPIRED))
    max_ttl_expired_to_dmq_failed_msg_count: int = read(_to_dmq_failed(dead_letters.EXPIRED))

    replay_state: str = read(lambda one: one.counts.replay_state or "complete", "complete")
    replay_start_count: int = read(lambda one: one.counts.replay_start_count)
    replay_success_count: int = read(lambda one: one.counts.replay_success_count)
    replay_failure_count: int = read(lambda one: one.counts.replay_failure_count)
    last_replay_failure_reason: str = read(lambda one: one.counts.last_replay_failure_reason, "")


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """One consumer that is bound to a queue, as the field's txFlows."""

    flow_id: int
    client_name: str
    activity_state: str
    """`active-consumer`, or `inactive` for one that stands by."""
    window_size: int
    used_window_size: int
    """Messages that it holds unacknowledged."""
    unacked_msg_count: int
    acked_msg_count: int = 0
    delivered_msg_count: int = 0
    window_closed_count: int = 0
    selector: str = ""


@dataclass(frozen=True, slots=True)
class MsgStatus:
    """One message in a queue, as the field's msgs; `topic` and `priority` 0 to 9 are told here as well."""

    msg_id: int
    """Spool id."""
    topic: str
    spooled_time: int
    """Seconds since 1970, UTC."""
    expiry_time: int = 0
    """Seconds since 1970, UTC; 0 for never."""
    content_size: int = 0
    """Bytes of the payload."""
    priority: int = 4
    redelivery_count: int = 0
    undelivered: bool = True
    """Whether no consumer holds it, nor was sent it before."""
    dmq_eligible: bool = False
    partition_key: str = ""
    publisher_id: str = ""
    """Who published it."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """How many messages an operation was done to, and why it went no further; "" when it is complete."""

    count: int
    refusal: str = ""


PORTION: Final = 1_000
"""Messages that an operation takes on before the router's other work has its turn."""


@final
class SyncedCallback(CompletionCallback):
    """Ends a wait when what was asked for is synced."""

    def __init__(self) -> None:
        self.done = trio.Event()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Wake the request that waits for the sync."""
        self.done.set()


@final
class Queues:
    """The queues of a running router; there are none without guaranteed messaging.

    All is called in the router's own thread. What looks answers at once. What changes is a coroutine, that gives
    other tasks their turn where there is much to do and returns when the change is synced; it raises SpoolError
    when the store cannot do it. Message ids are spool ids.
    """

    def __init__(
        self, router: Router, spool: Spool | None, cleared: EndpointBaselines | None = None
    ) -> None:
        self._router = router
        self._kept = spool
        self._cleared = cleared or EndpointBaselines()

    @property
    def _spool(self) -> Spool:
        """The spool, without which there are no queues."""
        if self._kept is None:
            raise AssertionError
        return self._kept

    def _find(self, msg_vpn: str, queue: str) -> Endpoint | None:
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return None
        for kind, prefix in PREFIXES.items():
            if queue.startswith(prefix):
                found = endpoints_of(vpn).get((kind, queue[len(prefix) :]))
                if found is not None:
                    return found
        return None

    # -- looking ---------------------------------------------------------------------------------

    def queue_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the queues of a message VPN; each kind of endpoint has its prefix."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        return [PREFIXES[kind] + name for kind, name in vpn.endpoints if kind in PREFIXES]

    def queue(self, msg_vpn: str, queue: str) -> QueueStatus | None:
        """One queue, with counts since they were cleared; None where there is none of that name."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return None
        return _status(endpoint, self._cleared.counters(endpoint))

    def tx_flows(self, msg_vpn: str, queue: str) -> Sequence[FlowStatus]:
        """The consumers that are bound to a queue; none where it does not exist."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return ()
        return [
            FlowStatus(
                flow_id=number,
                client_name=flow.client_name,
                activity_state="active-consumer" if flow.active else "inactive",
                window_size=flow.window,
                used_window_size=len(flow.unacked),
                unacked_msg_count=len(flow.unacked),
                acked_msg_count=flow.acked,
                delivered_msg_count=flow.delivered,
                window_closed_count=flow.window_closed,
                selector="" if flow.selector is None else flow.selector.text,
            )
            for number, flow in enumerate(endpoint.flows, 1)
        ]

    def msgs(self, msg_vpn: str, queue: str, after: int, count: int) -> Sequence[MsgStatus]:
        """At most `count` messages of a queue with spool ids above `after`, by rising id."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return ()
        found: list[MsgStatus] = []
        # In portions: of large messages not all are to be in memory.
        while len(found) < count:
            rows = endpoint.browse(after, count - len(found), limits.BROWSED_BYTES)
            if not rows:
                break
            found += [_message(row) for row in rows]
            after = rows[-1].msg_id
        return found

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes | None:
        """The payload of a message; None where the queue does not hold it."""
        endpoint = self._find(msg_vpn, queue)
        message = None if endpoint is None else endpoint.find(msg_id)
        return None if message is None else message.mqtt().payload

    # -- changing --------------------------------------------------------------------------------

    async def delete_msgs(
        self, msg_vpn: str, queue: str, msg_ids: Sequence[int] | None
    ) -> ActionResult:
        """Delete these messages, or with None all that no consumer holds; return when that is synced.

        Raises SpoolError when the store cannot be read.
        """
        await self._counted(msg_ids)
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return ActionResult(0)
        if msg_ids is None:
            count = endpoint.purge()
            # What was purged leaves the store over several rounds.
            await self._synced(purged=True)
        else:
            count = 0
            for msg_id in msg_ids:
                count += endpoint.delete_message(msg_id) == ""
            await self._synced()
        return ActionResult(count)

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: Sequence[int] | None, *, move: bool
    ) -> ActionResult:
        """Put these messages, or with None all that no consumer holds, into the queue `to`, by rising id.

        Messages that the queue does not hold are left out. The first refusal of `to` ends it. Every PORTION
        messages it waits for the sync.

        Raises SpoolError when the store cannot be read.
        """
        await self._counted(msg_ids)
        endpoint, target = self._find(msg_vpn, queue), self._find(msg_vpn, to)
        if endpoint is None or target is None:
            return ActionResult(0)
        do = endpoint.move_message if move else endpoint.copy_message
        count = 0
        after = 0
        newest = self._spool.ledger.next_id
        while True:
            if msg_ids is None:
                rows = endpoint.browse(after, PORTION, limits.BROWSED_BYTES)
                portion = [row.msg_id for row in rows if row.undelivered and row.msg_id < newest]
                if not rows or rows[0].msg_id >= newest:
                    break
                after = rows[-1].msg_id
            else:
                portion, msg_ids = list(msg_ids[:PORTION]), msg_ids[PORTION:]
                if not portion:
                    break
            for msg_id in portion:
                if not endpoint.waits(msg_id):
                    continue
                refusal = do(msg_id, target)
                if refusal:
                    await self._synced()
                    return ActionResult(count, refusal)
                count += 1
            await self._synced()
        await self._synced()
        return ActionResult(count)

    def clear_stats(self, msg_vpn: str, queue: str) -> bool:
        """Begin the counts of a queue anew; False where there is none of that name."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return False
        self._cleared.clear(endpoint)
        return True

    async def start_replay(
        self, msg_vpn: str, queue: str, log: str, from_ns: int, after_id: int
    ) -> str:
        """Replay to a queue what the replay log has; "" when the start is synced, else why it was refused."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None:
            return refusals.UNKNOWN_QUEUE
        try:
            endpoint.start_replay(from_ns, after_id, log)
        except Refused as refusal:
            return refusal.reason
        await self._synced()
        return ""

    async def cancel_replay(self, msg_vpn: str, queue: str) -> bool:
        """End the replay to a queue and return when that is synced; False where none runs."""
        endpoint = self._find(msg_vpn, queue)
        if endpoint is None or endpoint.replay is None:
            return False
        endpoint.replay.cancel()
        await self._synced()
        return True

    async def _counted(self, msg_ids: Sequence[int] | None) -> None:
        """Where all messages are meant, wait until those are stored that `msg_count` counts already."""
        if msg_ids is None:
            await self._synced()

    async def _synced(self, *, purged: bool = False) -> None:
        receipt = SyncedCallback()
        if purged:
            self._spool.when_purged(receipt, 0)
        else:
            self._spool.when_synced(receipt, 0)
        committing = self._router.context.committing
        if committing is not None:
            committing.step()
        await receipt.done.wait()


def _status(endpoint: Endpoint, counters: EndpointCounters) -> QueueStatus:
    values = shown(Queue, endpoint.settings)
    if endpoint.kind == TOPIC_ENDPOINT:
        own = shown(TopicEndpoint, endpoint.settings)
        values |= {key: value for key, value in own.items() if key in values}
    return fill(QueueStatus, EndpointLook(endpoint, counters), **values)


def _message(row: EndpointMessage) -> MsgStatus:
    message = row.message
    return MsgStatus(
        msg_id=row.msg_id,
        topic=row.topic.decode(),
        spooled_time=row.spooled_time_ns // SECOND_NS,
        expiry_time=row.expiry_time_ns // SECOND_NS,
        content_size=len(message.mqtt().payload),
        priority=row.priority,
        redelivery_count=row.redelivery_count,
        undelivered=row.undelivered,
        dmq_eligible=row.dmq_eligible,
        partition_key=message.text_property("JMSXGroupID") if message.lane else "",
        publisher_id=message.source_name,
    )
