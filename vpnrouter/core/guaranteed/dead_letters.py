"""Writes into a dead letter why it is one, who gave it up, and where it was on its way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.conversion import with_application_properties
from vpnrouter.core.message import AMQP
from vpnrouter.errors import ProtocolError
from vpnrouter.text import printable
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import with_user_properties
from vpnrouter.wire.mqtt.publish_block import without_expiry
from vpnrouter.wire.mqtt.user_properties import take_out

if TYPE_CHECKING:
    from vpnrouter.core.message import Message

REASON_PROPERTY: Final = "dead-letter-reason"
"""Why the message is a dead letter: one of those below, or what was said of it."""

SOURCE_PROPERTY: Final = "dead-letter-queue"
"""Where it was; one for each endpoint that gave it up, oldest first."""

CAUSE_PROPERTY: Final = "dead-letter-cause"
"""Of one that a bridge or a connector gave up, as all below: the kind of reason, one of discard_reasons.py."""

BY_PROPERTY: Final = "dead-letter-by"
"""Who gave it up: `bridge NAME`, or `connector CONNECTOR/LINK`."""

TIME_PROPERTY: Final = "dead-letter-time"
"""When (RFC 3339, UTC)."""

FROM_PROPERTY: Final = "dead-letter-source"
FROM_AT_PROPERTY: Final = "dead-letter-source-at"
"""What it was taken from, a queue, a topic or an address, and where that is: ROUTER/VPN, or the provider."""

TOPIC_PROPERTY: Final = "dead-letter-topic"
"""The topic that it had."""

TO_PROPERTY: Final = "dead-letter-target"
TO_AT_PROPERTY: Final = "dead-letter-target-at"
"""What it was to go to, and where that is, likewise."""

ID_PROPERTY: Final = "dead-letter-message-id"
"""The id that its sender gave it, else its number in the queue that it was taken from."""

ARRIVED_PROPERTY: Final = "dead-letter-arrival-time"
"""When it had come to this router."""

NAMES: Final = (
    REASON_PROPERTY,
    SOURCE_PROPERTY,
    CAUSE_PROPERTY,
    BY_PROPERTY,
    TIME_PROPERTY,
    FROM_PROPERTY,
    FROM_AT_PROPERTY,
    TOPIC_PROPERTY,
    TO_PROPERTY,
    TO_AT_PROPERTY,
    ID_PROPERTY,
    ARRIVED_PROPERTY,
)
"""User properties that the router alone writes; what a publisher says under these names is replaced."""

_BEGIN: Final = b"dead-letter-"

_MESSAGE_ID: Final = "message-id"


@final
class Passage:
    """Between which places `by` carries messages, for the properties of those that it gives up.

    `target` is "" where each message has its own.
    """

    __slots__ = ("by", "source", "source_at", "target", "target_at")

    def __init__(self, by: str, source: str, source_at: str, target: str, target_at: str) -> None:
        self.by = by
        self.source = source
        self.source_at = source_at
        self.target = target
        self.target_at = target_at

    def pairs(
        self, message: Message, cause: str, number: int, wall_ns: int, target: str = ""
    ) -> list[tuple[str, str]]:
        """Return what is said of a message that is given up at `wall_ns` for `cause`, and was to go to `target`.

        It is number `number` of the queue that it was taken from, 0 for none.
        """
        message_id = message.text_property(_MESSAGE_ID) or (str(number) if number else "")
        said = [
            (CAUSE_PROPERTY, cause),
            (BY_PROPERTY, self.by),
            (TIME_PROPERTY, _moment(wall_ns)),
            (FROM_PROPERTY, self.source),
            (FROM_AT_PROPERTY, self.source_at),
            (TOPIC_PROPERTY, message.topic.decode(errors="replace")),
            (TO_PROPERTY, target or self.target),
            (TO_AT_PROPERTY, self.target_at),
            (ID_PROPERTY, printable(message_id)),
            (ARRIVED_PROPERTY, _moment(message.ingress_ns) if message.ingress_ns else ""),
        ]
        return [(name, text) for name, text in said if text]


def _moment(wall_ns: int) -> str:
    whole = datetime.fromtimestamp(wall_ns // SECOND_NS, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{wall_ns % SECOND_NS // 1_000_000:03d}Z"


def sources(block: bytes) -> list[str]:
    """The endpoints that gave a message up before; `block` are its properties."""
    if _BEGIN not in block:
        return []
    return _sources(take_out(block, NAMES)[1])


def addressed(
    block: bytes, reason: str, source: str, more: list[tuple[str, str]] | None = None
) -> bytes:
    """The properties of a message that `source` gives up for `reason`; "" where no endpoint had it."""
    before: list[str] = []
    if _BEGIN in block:
        block, found = take_out(block, NAMES)
        before = _sources(found)
    # Its life time is that of the dead letter, not what its publisher had said.
    block = without_expiry(block)
    pairs = [(REASON_PROPERTY, reason)]
    pairs += [(SOURCE_PROPERTY, name) for name in before if name != source]
    if source:
        pairs.append((SOURCE_PROPERTY, source))
    return with_user_properties(block, pairs + (more or []))


def _sources(found: list[tuple[str, str]]) -> list[str]:
    return [text for name, text in found if name == SOURCE_PROPERTY]


def letter_of(
    message: Message, reason: str, source: str, more: list[tuple[str, str]] | None = None
) -> Message:
    """Return the dead letter that a message becomes, as `addressed` says; it arrives anew, and does not expire."""
    letter = message.copy()
    letter.expires_ns = 0
    letter.ingress_ns = 0
    letter.block = addressed(message.block, reason, source, more)
    if letter.encoding == AMQP and _BEGIN in letter.payload:
        try:
            replaced: dict[str, str | None] = dict.fromkeys(NAMES)
            letter.payload = with_application_properties(letter.payload, replaced)
        except ProtocolError:
            # Nobody can read its application properties, whatever they say.
            return letter
    return letter


def essentials(message: Message, number: int) -> str:
    """Return what an event says of a message that may be lost, on one line; `number` is its id in its queue."""
    said = [f"{message.topic.decode(errors='replace')}", f"id {number}"]
    for name in (_MESSAGE_ID, "JMSCorrelationID", "JMSReplyTo"):
        text = message.text_property(name)
        if text:
            said.append(f"{name} {printable(text, limits.PRINTED_CHARS)}")
    said.append(f"priority {message.priority}, {len(message.payload):,} bytes")
    return ", ".join(said)


CONSUMER: Final = "rejected"
"""A consumer does not want it."""
EXPIRED: Final = "max-ttl-expired"
REDELIVERED: Final = "max-redelivery-exceeded"
