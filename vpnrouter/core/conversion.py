"""Reads what routing needs of an AMQP message, and puts messages of AMQP and of MQTT 5 into each other's terms.

An AMQP message is kept as it came, from its message annotations on: its *content*. Header and delivery annotations
belong to one hop. An MQTT message is kept as topic, payload and block of properties (wire/mqtt/publish_block.py).
docs/amqp.md has the table of what becomes what.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final, cast, final

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.selectors import METER, Text
from vpnrouter.topics.grammar import QUEUE_PREFIX, name_meant, queue_topic
from vpnrouter.wire.amqp import performatives, types
from vpnrouter.wire.amqp.conditions import DECODE_ERROR
from vpnrouter.wire.amqp.heads import DEFAULT_PRIORITY, MessageScan, skip
from vpnrouter.wire.amqp.performatives import Header, MessageProperties
from vpnrouter.wire.amqp.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Section,
    sections,
)
from vpnrouter.wire.amqp.types import Symbol, Typed
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.properties import Properties, decode_properties, name_headers
from vpnrouter.wire.mqtt.publish_block import message_block
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from collections.abc import Mapping

DELIVERY_TIME: Final = "x-opt-delivery-time"
"""Message annotation: when the message is to be delivered, in milliseconds since 1970."""

DELIVERY_DELAY: Final = "x-opt-delivery-delay"
"""Message annotation: how long it is to be kept back, in milliseconds."""

JMS_TYPE: Final = "x-opt-jms-msg-type"
_JMS_TYPE: Final = JMS_TYPE.encode()
_JMS_BYTES: Final = 3
_JMS_TEXT: Final = 5
"""What JMS clients take a body for where the annotation says so."""

JMS_DESTINATION: Final = "x-opt-jms-dest"
JMS_REPLY_TO: Final = "x-opt-jms-reply-to"
_JMS_REPLY_TO: Final = JMS_REPLY_TO.encode()
_JMS_QUEUE: Final = 0
_JMS_TOPIC: Final = 1
_JMS_TEMPORARY_QUEUE: Final = 2
"""What JMS clients take an address for where the annotation says so: it need not have a scheme then."""

ADDED: Final = "x-opt-"
"""What the names of message annotations begin with that the router adds."""


@final
class Measure:
    """Counts values and user properties that were read out of messages, for who shares out the time of a turn.

    What selectors cost that looked at them is told with it.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: i64 = 0

    def add(self, count: int) -> None:
        """Count some more."""
        self._values += count

    def work(self) -> int:
        """Return what was read and evaluated since the last call, in parts of a turn (TurnContext.work)."""
        values = self._values
        self._values = 0
        return (values >> 1) + METER.work()


MEASURE: Final = Measure()
"""The one of the router's thread."""

_DESCRIPTOR: Final = b"\x00\x53"
"""What a descriptor begins with whose number has one byte."""

_DELIVERY: Final = b"x-opt-delivery-"
_TEXT: Final = "text/plain"
_UTF8: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_AMQP: Final = "application/vnd.amqp"
"""Content type of what cannot be put into other terms, and is given out as it came."""

_MOST_STRING: Final = 65_535
"""Bytes of a string of MQTT."""

_ID: Final = "message-id"
_USER: Final = "user-id"
_SUBJECT: Final = "subject"
_ENCODING: Final = "content-encoding"
_CREATED: Final = "creation-time"
_GROUP: Final = "JMSXGroupID"
_GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_REPLY_GROUP: Final = "reply-to-group-id"
"""Names of the user properties that stand for properties of AMQP that MQTT has no words for."""

_OURS: Final = frozenset(
    {_ID, _USER, _SUBJECT, _ENCODING, _CREATED, _GROUP, _GROUP_SEQUENCE, _REPLY_GROUP}
)

_NUMBERS: Final = {_CREATED: limits.AMQP_TIME_MS, _GROUP_SEQUENCE: performatives.UINT_MAX}
"""Those that are numbers, and the highest of each."""


@final
class MessageHead:
    """What routing needs of a message. Times in milliseconds, -1 where the message says none.

    `content` is the message from its message annotations on. `deliver_at` and `expires_at` count since 1970, `delay`
    from now on. `application`: it may have application properties.
    """

    __slots__ = (
        "application",
        "content",
        "delay",
        "deliver_at",
        "durable",
        "expires_at",
        "group",
        "priority",
        "to",
        "ttl",
    )

    def __init__(self, content: bytes, durable: bool, priority: int, ttl: int) -> None:
        self.content = content
        self.durable = durable
        self.priority = priority
        self.ttl = ttl
        self.to = ""
        self.group = ""
        self.expires_at = -1
        self.deliver_at = -1
        self.delay = -1
        self.application = True


_NO_PROPERTIES: Final = MessageProperties()

_TO: Final = 2
_EXPIRES_AT: Final = 8
_GROUP_AT: Final = 10
"""Places of fields among the properties (3.2.4)."""


_SCAN: Final = MessageScan()


def read_head(message: bytes) -> MessageHead:
    """Return what routing needs of a message. Raises ProtocolError for what breaks 3.2."""
    scan = _SCAN
    if not scan.read(message):
        return _read_head(message)
    notes = scan.annotations
    if notes >= 0 and message.find(_DELIVERY, notes, scan.annotations_end) >= 0:
        return _read_head(message)
    start = scan.content
    head = MessageHead(message[start:] if start else message, scan.durable, scan.priority, scan.ttl)
    head.application = scan.application
    if scan.properties >= 0:
        _take_properties(head, message, scan.properties, scan.properties_end)
    return head


def _take_properties(head: MessageHead, message: bytes, pos: int, end: int) -> None:
    """Take address, group id and absolute expiry time of the properties at `pos`."""
    to, expiry, group = _fields(message, pos, end, (_TO, _EXPIRES_AT, _GROUP_AT))
    if isinstance(to, str):
        head.to = to
    if isinstance(group, str):
        head.group = group
    if isinstance(expiry, Typed) and isinstance(expiry.value, int):
        head.expires_at = expiry.value


def _read_head(message: bytes) -> MessageHead:
    """Return the same of a message that is written in an unusual way, or has a time of delivery."""
    head = MessageHead(message, False, DEFAULT_PRIORITY, -1)
    for section in sections(message):
        code = section.code
        if code == HEADER:
            header = cast(Header, _composite(message, section))
            head.durable = header.durable
            head.priority = header.priority
            head.ttl = -1 if header.ttl is None else header.ttl
            head.content = message[section.end :]
        elif code == DELIVERY_ANNOTATIONS:
            head.content = message[section.end :]
        elif code == MESSAGE_ANNOTATIONS:
            if message.find(_DELIVERY, section.start, section.end) >= 0:
                annotations = _map(message, section)
                head.deliver_at = _milliseconds(annotations, DELIVERY_TIME)
                head.delay = _milliseconds(annotations, DELIVERY_DELAY)
        elif code == PROPERTIES:
            _take_properties(head, message, section.value, section.end)
        elif code >= DATA:
            break
    return head


def group_of(content: bytes) -> str:
    """Return the group id of a message that `read_head` has read before, "" where it has none."""
    for section in sections(content):
        if section.code == PROPERTIES:
            (said,) = _fields(content, section.value, section.end, (_GROUP_AT,))
            return said if isinstance(said, str) else ""
    return ""


def delivery_time_of(content: bytes) -> int:
    """Return the delivery time of a message that `read_head` has read before (ms since 1970), -1 for none."""
    if _DELIVERY not in content:
        return -1
    for section in sections(content):
        if section.code == MESSAGE_ANNOTATIONS:
            return _milliseconds(_map(content, section), DELIVERY_TIME)
    return -1


def _composite(message: bytes, section: Section) -> object:
    shape = performatives.SHAPES[section.code]
    value: object = performatives.read_fields(shape, message, section.value, section.end)[0]
    return value


def _properties(message: bytes, section: Section) -> MessageProperties:
    return cast(MessageProperties, _composite(message, section))


def _map(message: bytes, section: Section) -> dict[object, object]:
    budget = types.Budget()
    value, _ = types.read(message, section.value, section.end, 0, budget)
    MEASURE.add(budget.spent)
    if not isinstance(value, dict):
        raise ProtocolError(DECODE_ERROR, "3.2: annotations that are no map")
    return value


def _fields(message: bytes, pos: int, end: int, wanted: tuple[int, ...]) -> list[object]:
    """Return fields of the list at `pos` by their places, None for those that are not there; the others are skipped."""
    count, pos, end = types.list_at(message, pos, end, "properties")
    found: list[object] = []
    at = 0
    for place in wanted:
        if place >= count:
            found.append(None)
            continue
        while at < place:
            behind = skip(message, pos, end)
            pos = types.after(message, pos, end) if behind < 0 else behind
            at += 1
        if pos < end and message[pos] == types.NULL:
            found.append(None)
            pos += 1
        else:
            value, pos = types.read(message, pos, end)
            found.append(value)
        at += 1
    return found


def _milliseconds(annotations: Mapping[object, object], name: str) -> int:
    value = annotations.get(Symbol(name), annotations.get(name))
    if isinstance(value, Typed):
        value = value.value
    return value if isinstance(value, int) and value >= 0 else -1


# -- selectors ---------------------------------------------------------------------------------------


def properties_of(topic: bytes, content: bytes) -> dict[str, object]:
    """Return the properties that selectors see, by name: application properties and JMS headers.

    The names are those that the same message has as one of MQTT 5; values have their types (`typed_value`). Where the
    message is damaged within a section, those up to there.
    """
    found: dict[str, object] = {"JMSDestination": Text(topic.decode("utf-8", "replace"))}
    try:
        _find_properties(content, found)
    except ProtocolError:
        # Nobody is hurt by a message that its sender has not written well.
        return found
    return found


def _find_properties(content: bytes, found: dict[str, object]) -> None:
    application: dict[object, object] = {}
    notes: Section | None = None
    for section in sections(content):
        if section.code == MESSAGE_ANNOTATIONS:
            notes = section
        elif section.code == PROPERTIES:
            said = _properties(content, section)
            headers = (
                ("JMSReplyTo", _reply_topic(content, notes, said) or None),
                ("JMSCorrelationID", said.correlation_id),
                ("JMSType", said.content_type),
                (_GROUP, said.group_id),
                (_GROUP_SEQUENCE, said.group_sequence),
                (_ID, said.message_id),
                (_USER, said.user_id),
                (_SUBJECT, said.subject),
                (_ENCODING, said.content_encoding),
                (_CREATED, said.creation_time),
                (_REPLY_GROUP, said.reply_to_group_id),
            )
            for name, value in headers:
                typed = typed_value(value)
                if typed is not None:
                    found[name] = typed
        elif section.code == APPLICATION_PROPERTIES:
            application = _map(content, section)
    for key, value in application.items():
        typed = typed_value(value)
        if isinstance(key, str) and typed is not None:
            found.setdefault(key, typed)
    name_headers(found)


def typed_value(value: object) -> object:
    """Return a simple value as selectors compare it: a number, a boolean or a `Text`; None for what is not simple.

    Times are numbers; what is no number, boolean or string is a text as user properties have it.
    """
    if isinstance(value, Typed) and isinstance(value.value, (int, float)):
        return value.value
    if isinstance(value, (bool, int, float)):
        return value
    text = text_of(value)
    return None if text is None else Text(text)


def text_of(value: object) -> str | None:
    """Return a simple value as text, as user properties and selectors have it; None for null and what is not simple.

    Booleans are `true` and `false`, binary that is no UTF-8 and UUIDs are hexadecimal digits.
    """
    if isinstance(value, Typed):
        inner = value.value
        if value.kind == types.CHAR and isinstance(inner, bytes):
            return chr(min(int.from_bytes(inner, "big"), 0x10FFFF)) if _is_char(inner) else None
        value = inner.hex() if isinstance(inner, bytes) else inner
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()
    return None


def _is_char(data: bytes) -> bool:
    number = int.from_bytes(data, "big")
    return 0 < number < 0xD800 or 0xE000 <= number <= 0x10FFFF


# -- AMQP to MQTT ------------------------------------------------------------------------------------


def to_mqtt(content: bytes) -> tuple[bytes, bytes]:
    """Return payload and block of properties of an AMQP message in MQTT 5's terms.

    A message that is damaged within a section is given out as it came, as `application/vnd.amqp`.
    """
    try:
        return _to_mqtt(content)
    except ProtocolError:
        properties = Properties()
        properties.content_type = _AMQP
        return content, message_block(properties)


def _to_mqtt(content: bytes) -> tuple[bytes, bytes]:
    said = _NO_PROPERTIES
    pairs: list[tuple[str, str]] = []
    application: dict[object, object] = {}
    body: list[Section] = []
    notes: Section | None = None
    for section in sections(content):
        code = section.code
        if code == MESSAGE_ANNOTATIONS:
            notes = section
        elif code == PROPERTIES:
            said = _properties(content, section)
        elif code == APPLICATION_PROPERTIES:
            application = _map(content, section)
        elif DATA <= code <= VALUE:
            body.append(section)
    payload, kind = _payload(content, body)
    properties = Properties()
    content_type = said.content_type or kind
    if content_type:
        properties.content_type = _string(content_type)
        if (content_type.startswith("text/") or kind) and _is_utf8(payload):
            properties.payload_format_indicator = 1
    reply_to = _reply_topic(content, notes, said)
    if reply_to and not set(reply_to) & set("+#"):
        properties.response_topic = _string(reply_to)
    if said.correlation_id is not None:
        properties.correlation_data = _correlation(said.correlation_id)
    for name, value in (
        (_ID, said.message_id),
        (_USER, said.user_id),
        (_SUBJECT, said.subject),
        (_ENCODING, said.content_encoding),
        (_CREATED, said.creation_time),
        (_GROUP, said.group_id),
        (_GROUP_SEQUENCE, said.group_sequence),
        (_REPLY_GROUP, said.reply_to_group_id),
    ):
        text = text_of(value)
        if text is not None:
            pairs.append((name, _string(text)))
    for key, value in application.items():
        text = text_of(value)
        if isinstance(key, str) and text is not None:
            pairs.append((_string(key), _string(text)))
    if pairs:
        properties.user_properties = pairs[: limits.USER_PROPERTIES]
    return payload, message_block(properties)


def _reply_topic(content: bytes, notes: Section | None, said: MessageProperties) -> str:
    """Return the topic that the answer to a message goes to, "" for none. A queue of JMS is so by an annotation."""
    address = said.reply_to or ""
    topic = topic_of_address(address)
    if topic != address or topic.startswith(QUEUE_PREFIX) or notes is None:
        return topic
    if content.find(_JMS_REPLY_TO, notes.value, notes.end) < 0:
        return topic
    kind = _map(content, notes).get(Symbol(JMS_REPLY_TO))
    return queue_topic(topic) if kind in (_JMS_QUEUE, _JMS_TEMPORARY_QUEUE) else topic


def _is_utf8(payload: bytes) -> bool:
    """Return whether a payload is what the Payload Format Indicator says (MQTT 5, 3.3.2.3.2)."""
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _payload(content: bytes, body: list[Section]) -> tuple[bytes, str]:
    """Return the body as bytes, and its content type where the kind of body tells it."""
    parts: list[bytes] = []
    listed: list[object] = []
    # Parts in bytes are no values that cost more than their bytes.
    budget = types.Budget(limits.AMQP_VALUES + len(body))
    for section in body:
        value, _ = types.read(content, section.value, section.end, 0, budget)
        if section.code == SEQUENCE:
            listed.append(value)
        elif isinstance(value, bytes):
            parts.append(value)
        elif section.code == VALUE and isinstance(value, str):
            return value.encode(), _TEXT
        elif section.code == VALUE and value is not None:
            MEASURE.add(budget.spent)
            return _json(value), _JSON
    MEASURE.add(budget.spent)
    if listed:
        flat = [one for items in listed if isinstance(items, list) for one in items]
        return _json(flat), _JSON
    return b"".join(parts), ""


def _json(value: object) -> bytes:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _plain(value: object) -> object:
    """Return a value of JSON: numbers, booleans and texts as they are, all other simple ones as texts."""
    if isinstance(value, dict):
        return {str(text_of(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and (not math.isfinite(value)):
        return None
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, types.Described):
        return _plain(value.value)
    return text_of(value)


def _correlation(value: object) -> bytes:
    data = value if isinstance(value, bytes) else (text_of(value) or "").encode()
    return data[:_MOST_STRING]


def _string(text: str) -> str:
    """Return a text that a string of MQTT can hold: no zero character, at most 65,535 bytes."""
    text = text.replace("\0", "")
    if len(text) * 4 > _MOST_STRING:
        return text.encode("utf-8", "replace")[:_MOST_STRING].decode("utf-8", "ignore")
    return text


# -- MQTT to AMQP ------------------------------------------------------------------------------------


def from_mqtt(
    topic: bytes,
    payload: bytes,
    block: bytes,
    to: str = "",
    *,
    to_queue: bool = False,
    message_id: str = "",
) -> bytes:
    """Return the content of an MQTT message in AMQP's terms.

    It is addressed to the topic, or to the address `to` of another broker, which is that of a queue there (`to_queue`)
    or of a topic. One without an id gets `message_id`, "" for none.
    """
    properties = Properties()
    if block:
        field = varint(len(block)) + block
        properties, _ = decode_properties(field, 0, len(field), PUBLISH)
        MEASURE.add(2 * len(properties.user_properties))
    named: dict[str, str] = {}
    application: dict[object, object] = {}
    for name, text in properties.user_properties:
        if name in _OURS and _stands_for(name, text):
            named.setdefault(name, text)
        else:
            application.setdefault(name, text)
    is_text = properties.payload_format_indicator == 1
    content_type = properties.content_type
    if content_type is None and is_text:
        content_type = _UTF8
    typed = is_text or (content_type or "").startswith("text/")
    jms_kind = Typed(types.BYTE, _JMS_QUEUE if to_queue else _JMS_TOPIC)
    if not to:
        to = address_of_topic(topic.decode("utf-8", "replace"))
        jms_kind = _jms_kind(to)
    annotations: dict[object, object] = {
        Symbol(JMS_TYPE): Typed(types.BYTE, _JMS_TEXT if typed else _JMS_BYTES),
        Symbol(JMS_DESTINATION): jms_kind,
    }
    reply_to = _reply_to(properties.response_topic)
    if reply_to is not None:
        annotations[Symbol(JMS_REPLY_TO)] = _jms_kind(reply_to)
    correlation = properties.correlation_data
    said = MessageProperties(
        message_id=named.get(_ID) or message_id or named.get(_ID),
        user_id=named[_USER].encode() if _USER in named else None,
        to=to,
        subject=named.get(_SUBJECT),
        reply_to=reply_to,
        correlation_id=None if correlation is None else _text_or_bytes(correlation),
        content_type=_symbol(content_type),
        content_encoding=_symbol(named.get(_ENCODING)),
        creation_time=_number(named.get(_CREATED), _NUMBERS[_CREATED]),
        group_id=named.get(_GROUP),
        group_sequence=_number(named.get(_GROUP_SEQUENCE), _NUMBERS[_GROUP_SEQUENCE]),
        reply_to_group_id=named.get(_REPLY_GROUP),
    )
    parts = [section(MESSAGE_ANNOTATIONS, annotations), performatives.write(said)]
    if application:
        parts.append(section(APPLICATION_PROPERTIES, application))
    parts.append(section(DATA, payload))
    return b"".join(parts)


def _stands_for(name: str, text: str) -> bool:
    """Return whether a property of AMQP can have this text, so that it comes back the same."""
    most = _NUMBERS.get(name)
    if most is not None:
        return str(_number(text, most)) == text
    return name != _ENCODING or _symbol(text) is not None


def annotated(content: bytes, block: bytes) -> bytes:
    """Return an AMQP message with the user properties of `block`, the router's own, among its annotations.

    The bare message stays as it is.
    """
    field = varint(len(block)) + block
    properties, _ = decode_properties(field, 0, len(field), PUBLISH)
    more: dict[object, object] = {}
    for name, text in properties.user_properties:
        key = Symbol(ADDED + name)
        before = more.get(key)
        # Several of one name, such as the queues that gave a message up, are one text.
        more[key] = text if before is None else f"{before},{text}"
    return _with_pairs(content, MESSAGE_ANNOTATIONS, more)


def with_annotation(content: bytes, name: str, value: object) -> bytes:
    """Return an AMQP message with one more annotation; the bare message stays as it is."""
    return _with_pairs(content, MESSAGE_ANNOTATIONS, {Symbol(name): value})


def with_application_properties(content: bytes, more: Mapping[str, str | None]) -> bytes:
    """Return an AMQP message with `more` in the place of application properties of the same names; those that are None
    are taken out. Raises ProtocolError for a message that is damaged between its sections.
    """
    said: dict[object, object] = {}
    said.update(more)
    return _with_pairs(content, APPLICATION_PROPERTIES, said)


def with_body(content: bytes, payload: bytes) -> bytes:
    """Return an AMQP message with another body: a text where it was one value and `payload` is UTF-8, else bytes.

    A footer is left out: it may be made of the body. Raises ProtocolError for a message that is damaged between its
    sections.
    """
    begin = len(content)
    is_value = False
    for found in sections(content):
        if found.code >= DATA:
            begin = min(begin, found.start)
            is_value = is_value or found.code == VALUE
    is_value = is_value and _is_utf8(payload)
    body = section(VALUE, payload.decode()) if is_value else section(DATA, payload)
    head = content[:begin]
    if _JMS_TYPE in head:
        kind = _JMS_TEXT if is_value else _JMS_BYTES
        head = with_annotation(head, JMS_TYPE, Typed(types.BYTE, kind))
    return head + body


def _with_pairs(content: bytes, code: int, more: dict[object, object]) -> bytes:
    """Put `more` in the place of pairs of the same keys in a section that is a map, and take out those that are None;
    the others stay byte for byte.

    A message whose section is damaged stays as it is.
    """
    start = end = len(content)
    items: list[bytes] = []
    for found in sections(content):
        if found.code < code:
            continue
        start = end = found.start
        if found.code == code:
            end = found.end
            try:
                items = _raw_pairs(content, found, more)
            except ProtocolError:
                return content
        break
    for key, value in more.items():
        if value is not None:
            items += [types.write(key), types.write(value)]
    changed = _DESCRIPTOR + bytes((code,)) + types.write_compound(items, 0xC1)
    return content[:start] + changed + content[end:]


def _raw_pairs(content: bytes, found: Section, without: Mapping[object, object]) -> list[bytes]:
    """Return keys and values of a map as they are written, but for those of some keys."""
    count, pos, end = types.compound_at(content, found.value, found.end)
    items: list[bytes] = []
    for _ in range(count // 2):
        key, middle = types.read(content, pos, end)
        behind = types.after(content, middle, end)
        if not isinstance(key, str) or key not in without:
            items += [content[pos:middle], content[middle:behind]]
        pos = behind
    return items


def section(code: int, value: object) -> bytes:
    """Return a section with this value."""
    return _DESCRIPTOR + bytes((code,)) + types.write(value)


def _reply_to(topic: str | None) -> str | None:
    return None if topic is None else address_of_topic(topic)


def _jms_kind(address: str) -> Typed:
    """Return the annotation that says what an address of this router is: without it, of the kind that it came from."""
    return Typed(types.BYTE, _JMS_QUEUE if address.startswith(QUEUE_SCHEME) else _JMS_TOPIC)


def properties_of_content(content: bytes) -> MessageProperties:
    """Return the properties that a message has (3.2.4), none of them where it has no such section.

    Raises ProtocolError for a damaged one.
    """
    for found in sections(content):
        if found.code == PROPERTIES:
            return _properties(content, found)
    return _NO_PROPERTIES


def readdressed(content: bytes, to: str) -> bytes:
    """Return an AMQP message with another address (3.2.4: to). Raises ProtocolError for a damaged one."""
    start = end = len(content)
    said = _NO_PROPERTIES
    for found in sections(content):
        if found.code < PROPERTIES:
            continue
        start = end = found.start
        if found.code == PROPERTIES:
            end = found.end
            said = _properties(content, found)
        break
    return content[:start] + performatives.write(said._replace(to=to)) + content[end:]


def _text_or_bytes(data: bytes) -> object:
    """Return what JMS reads as a correlation id: a string where the bytes are one, else binary."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _symbol(text: str | None) -> Symbol | None:
    return Symbol(text) if text and text.isascii() else None


def _number(text: str | None, most: int) -> int | None:
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 20:
        return None
    number = int(text)
    return number if number <= most else None


# -- addresses ---------------------------------------------------------------------------------------

TOPIC_SCHEME: Final = "topic://"
QUEUE_SCHEME: Final = "queue://"


def topic_of_address(address: str) -> str:
    """Return the topic that an address stands for; one without a scheme is a topic."""
    if address.startswith(TOPIC_SCHEME):
        return address[len(TOPIC_SCHEME) :]
    if address.startswith(QUEUE_SCHEME):
        return queue_topic(address[len(QUEUE_SCHEME) :])
    return address


def address_of_topic(topic: str) -> str:
    """Return the address of a topic, or of the queue that it names."""
    if topic.startswith(QUEUE_PREFIX):
        return QUEUE_SCHEME + name_meant(topic[len(QUEUE_PREFIX) :])
    return TOPIC_SCHEME + topic
