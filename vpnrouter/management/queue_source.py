"""What the management API asks of the queues of a running router, and what it asks them to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, final

from vpnrouter.settings.endpoint import Queue, TopicEndpoint
from vpnrouter.settings.schema import showing


@dataclass(frozen=True, slots=True, kw_only=True)
@showing(Queue, shared_with=TopicEndpoint)
class EndpointStatus:
    """What monitoring shows of queues and of topic endpoints, with the attributes that are configured. Counts go on
    over restarts, or are since they were cleared.

    Names are those of the field in snake_case. The field's `spooled_…` are everything that ever went in; what is
    in the endpoint now is `msg_count` (ours; in the field the number of its msgs objects) and `msg_spool_usage`.
    Ours besides: `bind_count`, `acked_msg_count`, `moved_msg_count`, `recovered_msg_count`,
    `oldest_msg_age_ms`, `discarded`, `refused`, `imbalance`.
    """

    msg_vpn_name: str
    durable: bool = True

    msg_count: int = 0
    """Messages in the queue now: waiting, delayed, and delivered but not acknowledged."""
    msg_spool_usage: int = 0
    """Bytes of these."""
    msg_spool_peak_usage: int = 0
    tx_unacked_msg_count: int = 0
    oldest_msg_age_ms: int = -1
    """How long the oldest message has been waiting, -1 for none."""
    lowest_msg_id: int = 0
    highest_msg_id: int = 0
    """Spool ids of the oldest and newest message in the queue, 0 for none."""
    last_spooled_msg_id: int = 0
    """Spool id of the last message that came in, be it there or not; after a restart of the newest that was
    still there, 0 for none."""
    bind_count: int = 0
    """Consumers that are bound now."""

    spooled_msg_count: int = 0
    spooled_byte_count: int = 0
    recovered_msg_count: int = 0
    """Messages that were there when the router started."""
    acked_msg_count: int = 0
    deleted_msg_count: int = 0
    """Messages deleted by an operator."""
    moved_msg_count: int = 0
    """Messages that went to the dead message queue, or were moved by an operator."""
    redelivered_msg_count: int = 0

    bind_request_count: int = 0
    bind_success_count: int = 0
    discarded: dict[str, int] = field(default_factory=dict)
    """Messages that were in the queue and are lost, by reason."""
    refused: dict[str, int] = field(default_factory=dict)
    """Messages that the queue did not take, by reason."""
    imbalance: int = 0
    """Messages recovered and spooled that are neither acknowledged, discarded, deleted, moved, nor in the
    queue. Anything but 0 is a fault of the router."""


@dataclass(frozen=True, slots=True, kw_only=True)
@showing(Queue)
class QueueStatus(EndpointStatus):
    """One queue as monitoring shows it; `endpoint_type` is ours."""

    queue_name: str
    endpoint_type: str = "queue"
    """`queue`, `topic-endpoint`, `session` (of an MQTT session) or `parking-lot` (of a bridge)."""
    max_bind_count_exceeded_bind_failure_count: int = 0
    other_bind_failure_count: int = 0

    disabled_discarded_msg_count: int = 0
    low_priority_msg_congestion_discarded_msg_count: int = 0
    max_msg_size_exceeded_discarded_msg_count: int = 0
    max_msg_spool_usage_exceeded_discarded_msg_count: int = 0
    max_redelivery_exceeded_discarded_msg_count: int = 0
    max_redelivery_exceeded_to_dmq_msg_count: int = 0
    max_redelivery_exceeded_to_dmq_failed_msg_count: int = 0
    max_ttl_expired_discarded_msg_count: int = 0
    max_ttl_expired_to_dmq_msg_count: int = 0
    max_ttl_expired_to_dmq_failed_msg_count: int = 0

    replay_state: str = "complete"
    replay_start_count: int = 0
    replay_success_count: int = 0
    replay_failure_count: int = 0
    last_replay_failure_reason: str = ""


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
class Done:
    """How many messages an operation was done to, and why it went no further; "" when it is complete."""

    count: int
    refusal: str = ""


class QueueSource(Protocol):
    """The queues of a running router, as the API sees them.

    All is called in the router's own thread. What looks answers at once. What changes is a coroutine, that
    gives other tasks their turn where there is much to do and returns when the change is synced; it raises
    SpoolError when the store cannot do it. Message ids are spool ids.
    """

    def queue_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the queues in a message VPN, those of MQTT sessions and parking lots included."""

    def queue(self, msg_vpn: str, queue: str) -> QueueStatus | None:
        """One queue; None where there is none of that name."""

    def tx_flows(self, msg_vpn: str, queue: str) -> Sequence[FlowStatus]:
        """The consumers that are bound to a queue; none where it does not exist."""

    def msgs(self, msg_vpn: str, queue: str, after: int, count: int) -> Sequence[MsgStatus]:
        """At most `count` messages of a queue with ids above `after`, by rising id."""

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes | None:
        """The payload of a message; None where the queue does not hold it."""

    async def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: Sequence[int] | None) -> Done:
        """Delete these messages, or with None all that no consumer holds."""

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: Sequence[int] | None, *, move: bool
    ) -> Done:
        """Put these messages, or with None all that no consumer holds, into the queue `to`, by rising id.

        With `move` each leaves its queue in the unit in which it enters the other. Messages that the queue
        does not hold are left out. The first one that `to` refuses ends it, with the reason.
        """

    def clear_stats(self, msg_vpn: str, queue: str) -> bool:
        """Begin the counts of a queue anew; False where there is none. What it holds is in
        `recovered_msg_count` then: it was there when the counts began.
        """

    async def start_replay(
        self, msg_vpn: str, queue: str, log: str, from_ns: int, after_id: int
    ) -> str:
        """Replay to a queue what the replay log has (`log`, "" for whichever there is); "" or the refusal.

        From the wall clock time `from_ns` on, or behind the message `after_id`; with 0 for both from the
        beginning.
        """

    async def cancel_replay(self, msg_vpn: str, queue: str) -> bool:
        """End the replay to a queue; False where none runs."""


@final
class NoQueues:
    """The QueueSource of a router without guaranteed messaging."""

    def queue_names(self, msg_vpn: str) -> Sequence[str]:
        """Give no names."""
        return ()

    def queue(self, msg_vpn: str, queue: str) -> QueueStatus | None:
        """Give None for every queue."""
        return None

    def tx_flows(self, msg_vpn: str, queue: str) -> Sequence[FlowStatus]:
        """Give no consumers."""
        return ()

    def msgs(self, msg_vpn: str, queue: str, after: int, count: int) -> Sequence[MsgStatus]:
        """Give no messages."""
        return ()

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes | None:
        """Give None for every message."""
        return None

    async def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: Sequence[int] | None) -> Done:
        """Delete nothing; returns a count of 0."""
        return Done(0)

    async def copy_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: Sequence[int] | None, *, move: bool
    ) -> Done:
        """Copy and move nothing; returns a count of 0."""
        return Done(0)

    def clear_stats(self, msg_vpn: str, queue: str) -> bool:
        """Clear nothing; returns False."""
        return False

    async def start_replay(
        self, msg_vpn: str, queue: str, log: str, from_ns: int, after_id: int
    ) -> str:
        """Start nothing; returns the refusal that replay is disabled."""
        return "503 Replay Disabled"

    async def cancel_replay(self, msg_vpn: str, queue: str) -> bool:
        """Cancel nothing; returns False."""
        return False
