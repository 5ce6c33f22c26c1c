"""Defines the frames of the link protocol as values (docs/link-protocol.md).

Plain slots classes without behaviour: encode.py and decode.py know the bytes, order.py when each may come. None of them
prints itself, so a password cannot reach a log by accident.

A guaranteed flow (LINK-40 to LINK-43) brings the messages of one queue to one bridge: its *sender* has the queue, its
*receiver* the bridge. Ranges are pairs of the first position and how many follow each other, itself included.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter import limits

MAJOR: Final = 1
"""Version of the protocol: links between different majors are refused (LINK-12)."""

MINOR: Final = 1
"""The lower minor of the two sides is spoken (LINK-12)."""

MAGIC: Final = b"VPNR"
"""First bytes of the first frame's body, so that a stranger's protocol is told at once
(LINK-11)."""

HELLO: Final = 0x10
WELCOME: Final = 0x11
REFUSE: Final = 0x12
CLOSE: Final = 0x13
HEARTBEAT: Final = 0x14
DETACH: Final = 0x15
CHALLENGE: Final = 0x16
PROOF: Final = 0x17
SUBSCRIBE: Final = 0x20
UNSUBSCRIBE: Final = 0x21
SUBSCRIBED: Final = 0x22
DIRECT: Final = 0x30
DIRECT_X: Final = 0x31
COMPRESSED: Final = 0x60

HANDSHAKE: Final = frozenset({HELLO, WELCOME, REFUSE, CHALLENGE, PROOF})
"""Frames of a login, which are never compressed (LINK-44)."""

OPTIONAL_FROM: Final = 0x80
"""Frame types from here on may be skipped by whoever does not know them (LINK-4)."""

DELIVER_ALWAYS: Final = 0x01
"""Subscription flag: served beside deliver-to-one consumers, not instead of one of them
(LINK-23)."""

PRIORITY_SHIFT: Final = 1
"""Subscription flags 1 to 3: deliver-to-one priority, 1..4 for p1..p4, 0 for `da` (LINK-23)."""

PRIORITY_MAX: Final = 4
"""Lowest deliver-to-one priority, p4."""

HAS_SELECTOR: Final = 0x40
"""Subscription flag: a selector follows the filter (LINK-23)."""

SEND_RETAINED: Final = 0x10
"""Subscription flag: a new filter is sent what is retained (LINK-26)."""

REUSE: Final = 0x01
"""Feature: one connection carries the bridges of both sides (LINK-39)."""

FLOWS: Final = 0x02
"""Feature: guaranteed messages cross in flows (LINK-40 to LINK-43)."""

ZSTD: Final = 0x04
"""Feature: frames may come compressed (LINK-44)."""

RETAINED: Final = 0x08
"""Feature: a subscription may ask for what is retained (LINK-26)."""

AMQP: Final = 0x10
"""Feature: the payload of a message may be the content of an AMQP message (LINK-53)."""

BASIC: Final = 0
"""Authentication scheme: client username, and the password in clear or none."""

CLIENT_CERTIFICATE: Final = 1
"""Authentication scheme: the certificate of the TLS connection (LINK-10)."""

SCRAM: Final = 2
"""Authentication scheme: client username, and SCRAM-SHA-256 in both directions (LINK-51)."""

NONCE_BYTES: Final = 24
"""Bytes of the nonces of SCRAM."""

PROOF_BYTES: Final = 32
"""Bytes of a proof or signature of SCRAM-SHA-256."""

SALT_LEAST: Final = 8
SALT_MOST: Final = 64
"""Bytes of a salt."""


@final
class Hello:
    """The dialer's first frame: who it is and what it asks for (LINK-10)."""

    __slots__ = (
        "bridge",
        "client_username",
        "features",
        "heartbeat_ms",
        "incarnation",
        "link_port",
        "links_port",
        "local_vpn",
        "major",
        "max_frame",
        "minor",
        "nonce",
        "password",
        "remote_router",
        "remote_vpn",
        "resume",
        "router",
        "scheme",
        "tls",
    )

    def __init__(
        self,
        router: str,
        bridge: str,
        local_vpn: str,
        remote_vpn: str,
        *,
        remote_router: str = "",
        client_username: str = "",
        password: str = "",
        tls: bool = False,
        features: int = 0,
        heartbeat_ms: int = 0,
        max_frame: int = limits.LINK_FRAME_BYTES,
        incarnation: int = 0,
        scheme: int = BASIC,
        resume: bool = False,
        link_port: int = 0,
        links_port: int = 0,
        nonce: bytes = b"",
        major: int = MAJOR,
        minor: int = MINOR,
    ) -> None:
        self.nonce = nonce
        self.router = router
        self.bridge = bridge
        self.local_vpn = local_vpn
        self.remote_vpn = remote_vpn
        self.remote_router = remote_router
        self.client_username = client_username
        self.password = password
        self.tls = tls
        self.features = features
        self.heartbeat_ms = heartbeat_ms
        self.max_frame = max_frame
        self.incarnation = incarnation
        self.scheme = scheme
        self.resume = resume
        self.link_port = link_port
        self.links_port = links_port
        self.major = major
        self.minor = minor


@final
class Welcome:
    """The acceptor lets the bridge in and says what is agreed (LINK-14)."""

    __slots__ = (
        "client_name",
        "features",
        "heartbeat_ms",
        "incarnation",
        "link_port",
        "links_port",
        "major",
        "max_frame",
        "minor",
        "resume",
        "router",
        "signature",
        "vpn",
    )

    def __init__(
        self,
        router: str,
        vpn: str,
        client_name: str,
        *,
        features: int = 0,
        heartbeat_ms: int = 0,
        max_frame: int = limits.LINK_FRAME_BYTES,
        incarnation: int = 0,
        resume: bool = False,
        link_port: int = 0,
        links_port: int = 0,
        signature: bytes = b"",
        major: int = MAJOR,
        minor: int = MINOR,
    ) -> None:
        self.signature = signature
        self.router = router
        self.vpn = vpn
        self.client_name = client_name
        self.features = features
        self.heartbeat_ms = heartbeat_ms
        self.max_frame = max_frame
        self.incarnation = incarnation
        self.resume = resume
        self.link_port = link_port
        self.links_port = links_port
        self.major = major
        self.minor = minor


@final
class Challenge:
    """The acceptor asks for a proof that the dialer knows its password (LINK-51)."""

    __slots__ = ("iterations", "nonce", "salt")

    def __init__(self, nonce: bytes, salt: bytes, iterations: int) -> None:
        self.nonce = nonce
        self.salt = salt
        self.iterations = iterations


@final
class Proof:
    """The dialer's proof (LINK-51)."""

    __slots__ = ("proof",)

    def __init__(self, proof: bytes) -> None:
        self.proof = proof


@final
class Refuse:
    """The acceptor does not let the bridge in; `code` of codes.py, `reason` the field's
    string.

    `retry_after_ms` is a wish that the dialer not come back sooner; 0 for none (LINK-16).
    """

    __slots__ = ("code", "reason", "retry_after_ms")

    def __init__(self, code: int, reason: str, retry_after_ms: int = 0) -> None:
        self.code = code
        self.reason = reason
        self.retry_after_ms = retry_after_ms


@final
class Close:
    """The last frame of a link; same meaning of the fields as in Refuse (LINK-16)."""

    __slots__ = ("code", "reason", "retry_after_ms")

    def __init__(self, code: int, reason: str, retry_after_ms: int = 0) -> None:
        self.code = code
        self.reason = reason
        self.retry_after_ms = retry_after_ms


@final
class Detach:
    """The sender's half ends, the other one stays (LINK-39); fields as in Refuse."""

    __slots__ = ("code", "reason")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


@final
class Heartbeat:
    """Proof of life: an answer repeats the 64-bit `token` of the question (LINK-21)."""

    __slots__ = ("answer", "token")

    def __init__(self, token: int, *, answer: bool) -> None:
        self.answer = answer
        self.token = token


@final
class Subscribe:
    """Filters, in `*` `>` dialect, that shall attract messages; pairs of flags and filter
    (LINK-23).

    `selectors` holds, by filter, the selector of those that have one; encoding sets their flag.
    """

    __slots__ = ("filters", "request_id", "selectors")

    def __init__(
        self,
        request_id: int,
        filters: list[tuple[int, str]],
        selectors: dict[str, str] | None = None,
    ) -> None:
        self.request_id = request_id
        self.filters = filters
        self.selectors: dict[str, str] = {} if selectors is None else selectors


@final
class Unsubscribe:
    """Filters that shall attract no more (LINK-24)."""

    __slots__ = ("filters", "request_id")

    def __init__(self, request_id: int, filters: list[str]) -> None:
        self.request_id = request_id
        self.filters = filters


@final
class Subscribed:
    """One code per filter of the SUBSCRIBE or UNSUBSCRIBE with that request id, in its order
    (LINK-25).

    `reason` tells the first refusal, or is empty.
    """

    __slots__ = ("codes", "reason", "request_id")

    def __init__(self, request_id: int, codes: list[int], reason: str = "") -> None:
        self.request_id = request_id
        self.codes = codes
        self.reason = reason


@final
class Extension:
    """What a message carries beyond topic, properties and payload (LINK-30 ff.).

    `path` is every VPN visited as "router/vpn", oldest first, the sender's own last; empty when the
    sender's VPN is the only one (LINK-29). `hops` counts links crossed, this one included. The
    trace is absent when the 128-bit id `trace_high`, `trace_low` is zero, the origin when its
    router is empty. `message_id` is the same in all copies of a message, 0 where it has none.
    `origin_ts_ns` is nanoseconds since 1970 at first ingress. `expiry_ms` is how long the message
    lives on, -1 where that is not said (LINK-41). `amqp` says that the payload is the content of an AMQP message with
    this `priority`, `volatile` that it is not durable (LINK-53). `snapshot` says that it was retained before it was
    asked for (LINK-35).
    """

    __slots__ = (
        "amqp",
        "expiry_ms",
        "hops",
        "message_id",
        "origin_router",
        "origin_ts_ns",
        "origin_vpn",
        "path",
        "priority",
        "retain",
        "snapshot",
        "trace_flags",
        "trace_high",
        "trace_low",
        "volatile",
    )

    def __init__(
        self,
        path: list[str],
        hops: int = 1,
        *,
        trace_high: int = 0,
        trace_low: int = 0,
        message_id: int = 0,
        trace_flags: int = 0,
        origin_router: str = "",
        origin_vpn: str = "",
        origin_ts_ns: int = 0,
        retain: bool = False,
        expiry_ms: int = -1,
        snapshot: bool = False,
        amqp: bool = False,
        priority: int = 4,
        volatile: bool = False,
    ) -> None:
        self.amqp = amqp
        self.priority = priority
        self.volatile = volatile
        self.path = path
        self.hops = hops
        self.trace_high = trace_high
        self.trace_low = trace_low
        self.message_id = message_id
        self.trace_flags = trace_flags
        self.origin_router = origin_router
        self.origin_vpn = origin_vpn
        self.origin_ts_ns = origin_ts_ns
        self.retain = retain
        self.expiry_ms = expiry_ms
        self.snapshot = snapshot


@final
class Direct:
    """A Direct message; `extension` is None for DIRECT and set for DIRECT_X (LINK-27, LINK-30).

    `topic` is UTF-8, `properties` an MQTT 5 property block without its length.
    """

    __slots__ = ("extension", "payload", "properties", "topic")

    def __init__(
        self, topic: bytes, properties: bytes, payload: bytes, extension: Extension | None = None
    ) -> None:
        self.topic = topic
        self.properties = properties
        self.payload = payload
        self.extension = extension


@final
class Skipped:
    """An optional frame of an unknown type: counted and passed over (LINK-4)."""

    __slots__ = ("frame_type",)

    def __init__(self, frame_type: int) -> None:
        self.frame_type = frame_type


@final
class Compressed:
    """The body of a COMPRESSED frame, still packed (LINK-44)."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body


BIND: Final = 0x40
BOUND: Final = 0x41
UNBIND: Final = 0x42
UNBOUND: Final = 0x43
GUARANTEED: Final = 0x50
ACK: Final = 0x51
REJECT: Final = 0x52
SETTLED: Final = 0x53
FORGET: Final = 0x54
FLOW_STATUS: Final = 0x80
SNAPSHOT_END: Final = 0x81
"""A peer that does not know these frames skips them (LINK-4)."""

STORE_ID_BYTES: Final = 16
"""The store id of LINK-40: one life of a spool."""

REDELIVERED: Final = 0x01
"""Flag of GUARANTEED: it may have been sent before (LINK-41)."""

PERSISTENT: Final = 0x02
"""Flag of GUARANTEED: published as persistent, not non-persistent (LINK-41)."""

DMQ_ELIGIBLE: Final = 0x04
"""Flag of GUARANTEED: the dead message queue may have it (LINK-41)."""

EXACTLY_ONCE: Final = 0x08
"""Published with MQTT's QoS 2."""

MESSAGE_FLAGS: Final = REDELIVERED | PERSISTENT | DMQ_ELIGIBLE | EXACTLY_ONCE

PRIORITY_MOST: Final = 9
"""Highest priority of a guaranteed message; 4 where its publisher said none."""

LANES_NONE: Final = 0
LANES_TOPIC: Final = 1
LANES_PARTITION_KEY: Final = 2

ON_REJECT_BLOCK: Final = 0
ON_REJECT_PARK: Final = 1
ON_REJECT_SKIP: Final = 2

HELD: Final = 0
AGAIN: Final = 1
GIVEN_UP: Final = 2
"""Fates of a message that REJECT names (LINK-43)."""

NO_ELIGIBLE_DESTINATION: Final = 1
DEMOTED: Final = 2
PARKED: Final = 3
SKIPPED: Final = 4
DUPLICATE: Final = 5
DISCARDED: Final = 6
"""Outcomes of SETTLED (LINK-43)."""


@final
class Bind:
    """The receiver asks for the messages of a queue (LINK-40).

    `window` is how many it is ready to have on the way. `accepted` holds, by store id of 16 bytes, ranges
    of the positions that it has and that nobody has told it to forget. `lanes` is LANES_…, `on_reject`
    ON_REJECT_…: what keeps its order, and what the bridge does with a message that is refused there.
    """

    __slots__ = ("accepted", "lanes", "on_reject", "queue", "request_id", "selector", "window")

    def __init__(
        self,
        request_id: int,
        queue: str,
        window: int,
        *,
        accepted: dict[bytes, list[tuple[int, int]]] | None = None,
        selector: str = "",
        lanes: int = LANES_NONE,
        on_reject: int = ON_REJECT_BLOCK,
    ) -> None:
        self.request_id = request_id
        self.queue = queue
        self.window = window
        self.accepted: dict[bytes, list[tuple[int, int]]] = {} if accepted is None else accepted
        self.selector = selector
        self.lanes = lanes
        self.on_reject = on_reject


@final
class Bound:
    """The sender's answer (LINK-40). With code 0 the flow stands, and what BIND named under `store_id` is
    settled for good, but for the ranges `kept`; with any other, flow id and window are 0 and the store id is
    16 zero bytes.
    """

    __slots__ = ("code", "flow_id", "kept", "reason", "request_id", "store_id", "window")

    def __init__(
        self,
        request_id: int,
        code: int,
        flow_id: int,
        window: int,
        store_id: bytes,
        reason: str = "",
        kept: list[tuple[int, int]] | None = None,
    ) -> None:
        self.kept: list[tuple[int, int]] = [] if kept is None else kept
        self.request_id = request_id
        self.code = code
        self.flow_id = flow_id
        self.window = window
        self.store_id = store_id
        self.reason = reason


@final
class Unbind:
    """Either side ends the flow (LINK-40); code and reason as in CLOSE."""

    __slots__ = ("code", "flow_id", "reason")

    def __init__(self, flow_id: int, code: int, reason: str = "") -> None:
        self.flow_id = flow_id
        self.code = code
        self.reason = reason


@final
class Unbound:
    """The answer to UNBIND: the last frame of the flow from this side (LINK-40)."""

    __slots__ = ("flow_id",)

    def __init__(self, flow_id: int) -> None:
        self.flow_id = flow_id


@final
class FlowStatus:
    """What the sender tells of the flow (LINK-50): whether it gets messages, or stands by at an exclusive queue behind
    another flow, how many messages are in the queue, and how often one has waited for the window.
    """

    __slots__ = ("active", "flow_id", "messages", "window_closed")

    def __init__(self, flow_id: int, active: bool, messages: int, window_closed: int = 0) -> None:
        self.flow_id = flow_id
        self.active = active
        self.messages = messages
        self.window_closed = window_closed


@final
class SnapshotEnd:
    """All that is retained under the filters of SUBSCRIBE requests up to this one has been sent (LINK-54)."""

    __slots__ = ("request_id",)

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id


@final
class Guaranteed:
    """One guaranteed message (LINK-41). `position` is its message id in the sender's store, `flags` are
    MESSAGE_FLAGS, `priority` is 0 to 9. The extension of `message` is None where it would say nothing.
    """

    __slots__ = ("flags", "flow_id", "message", "position", "priority")

    def __init__(
        self, flow_id: int, position: int, flags: int, priority: int, message: Direct
    ) -> None:
        self.flow_id = flow_id
        self.position = position
        self.flags = flags
        self.priority = priority
        self.message = message


@final
class Ack:
    """The receiver has these positions in its synced store; `window` holds from here on (LINK-42)."""

    __slots__ = ("flow_id", "ranges", "window")

    def __init__(self, flow_id: int, window: int, ranges: list[tuple[int, int]]) -> None:
        self.flow_id = flow_id
        self.window = window
        self.ranges = ranges


@final
class Forget:
    """The sender has settled these positions in its synced store and never sends them again (LINK-42)."""

    __slots__ = ("flow_id", "ranges")

    def __init__(self, flow_id: int, ranges: list[tuple[int, int]]) -> None:
        self.flow_id = flow_id
        self.ranges = ranges


@final
class Reject:
    """The receiver's VPN refuses this message (LINK-43); `fate` is HELD, AGAIN or GIVEN_UP."""

    __slots__ = ("code", "fate", "flow_id", "position", "reason")

    def __init__(
        self, flow_id: int, position: int, code: int, reason: str, fate: int = HELD
    ) -> None:
        self.flow_id = flow_id
        self.position = position
        self.code = code
        self.reason = reason
        self.fate = fate


@final
class Settled:
    """What became of a message that an ACK names, where it is not in an endpoint (LINK-43)."""

    __slots__ = ("flow_id", "outcome", "position")

    def __init__(self, flow_id: int, position: int, outcome: int) -> None:
        self.flow_id = flow_id
        self.position = position
        self.outcome = outcome
