"""A span as OpenTelemetry has it: its attributes, and ids that name what happened to one message at one place alike.

Ids of spans: what happened to one message at one place, named alike by all who know of it.

A router that hands a message to a client tells it the id of the span of that delivery, and who turns
trace files into spans later comes to the same id: it is a function of the row.

The names are those that the field's tracing uses (docs/opentelemetry.md has the table).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

_BYTES: Final = 8


def span_id(
    trace_high: int,
    trace_low: int,
    message_id: int,
    router: str,
    vpn: str,
    kind: str,
    client: str = "",
    endpoint: str = "",
) -> int:
    """Return the id of a span, 1 … 2**64-1 (W3C Trace Context, 3.2.2.4: 0 is invalid).

    Args:
        trace_high: high half of the trace id, 0 … 2**64-1.
        trace_low: low half of it.
        message_id: 0 … 2**64-1, the message's number as trace rows have it (as a number without sign).
        router: router where it happened.
        vpn: message VPN where it happened.
        kind: name of the event as in trace rows, such as "deliver".
        client: as in the row; "" for none.
        endpoint: as in the row; "" for none.

    Names may hold any character: none of them can be taken for another's end.
    """
    numbers = (
        trace_high.to_bytes(8, "big") + trace_low.to_bytes(8, "big") + message_id.to_bytes(8, "big")
    )
    digest = blake2b(numbers, digest_size=_BYTES)
    for name in (router, vpn, kind, client, endpoint):
        data = name.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "big") or 1


Value = str | int | bool

CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
INTERNAL: Final = "internal"

SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation"
MESSAGE_ID: Final = "messaging.message_id"
PAYLOAD_SIZE: Final = "messaging.message_payload_size_bytes"
DESTINATION: Final = "messaging.destination"
DESTINATION_NAME: Final = "messaging.destination.name"
DESTINATION_KIND: Final = "messaging.destination.kind"
SOURCE_NAME: Final = "messaging.source.name"
CLIENT_NAME: Final = "messaging.solace.client_name"
DELIVERY_MODE: Final = "messaging.solace.delivery_mode"
RECEIVE_TIME: Final = "messaging.solace.broker_receive_time_unix_nano"
ENQUEUE_ERROR: Final = "messaging.solace.enqueue_error_message"
PARTITION: Final = "messaging.solace.partition_number"
DROPPED_SUCCESS: Final = "messaging.solace.dropped_enqueue_events_success"
DROPPED_FAILED: Final = "messaging.solace.dropped_enqueue_events_failed"
OUTCOME: Final = "messaging.solace.send.outcome"
MOVE_REASON: Final = "messaging.solace.operation.reason"
REASON: Final = "messaging.vpnrouter.reason"
REDELIVERED: Final = "messaging.vpnrouter.redelivered"
BRIDGE: Final = "messaging.vpnrouter.bridge"
PEER_ROUTER: Final = "messaging.vpnrouter.peer_router"
PEER_VPN: Final = "messaging.vpnrouter.peer_vpn"
HOPS: Final = "messaging.vpnrouter.hops"
PATH: Final = "messaging.vpnrouter.path"
ORIGIN_ROUTER: Final = "messaging.vpnrouter.origin_router"
ORIGIN_VPN: Final = "messaging.vpnrouter.origin_vpn"
ORIGIN_TIME: Final = "messaging.vpnrouter.origin_time_unix_nano"

SYSTEM_NAME: Final = "vpnrouter"

ACCEPTED: Final = "accepted"
REJECTED: Final = "rejected"
RELEASED: Final = "released"


class SpanEvent(NamedTuple):
    """Something that happened within a span, at `ts_ns` (nanoseconds since 1970)."""

    name: str
    ts_ns: int
    attributes: dict[str, Value]


class Span:
    """One span; times in nanoseconds since 1970, ids as numbers, `parent` 0 for none.

    `remote` tells that the parent is a span of another process. `error` is what went wrong, empty when
    nothing did. The span belongs to the message VPN `vpn`.
    """

    __slots__ = (
        "attributes",
        "end_ns",
        "error",
        "events",
        "kind",
        "name",
        "parent",
        "remote",
        "span_id",
        "start_ns",
        "trace_id",
        "vpn",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        vpn: str,
        trace_id: int,
        span_id: int,
        parent: int,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, Value],
        *,
        remote: bool = False,
        error: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.vpn = vpn
        self.trace_id = trace_id
        self.span_id = span_id
        self.parent = parent
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.attributes = attributes
        self.remote = remote
        self.error = error
        self.events: list[SpanEvent] = []
