"""The frames of guaranteed flows as values (LINK-40 to LINK-43). docs/link-protocol.md is the definition.

A flow brings the messages of one queue to one bridge. Its *sender* has the queue, its *receiver* the
bridge. Ranges are pairs of the first position and how many follow each other, itself included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from vpnrouter.wire.link.frames import Direct

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
"""A peer that does not know this frame skips it (LINK-4)."""

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
    another flow, and how many messages are in the queue.
    """

    __slots__ = ("active", "flow_id", "messages")

    def __init__(self, flow_id: int, active: bool, messages: int) -> None:
        self.flow_id = flow_id
        self.active = active
        self.messages = messages


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
