"""Messages of AMQP in MQTT's terms and the other way: each row of the table in docs/amqp.md."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter.core.conversion import (
    annotated,
    from_mqtt,
    properties_of,
    read_head,
    text_of,
    to_mqtt,
    with_annotation,
)
from vpnrouter.core.message import AMQP, Message
from vpnrouter.errors import ProtocolError
from vpnrouter.selectors import Text
from vpnrouter.wire.amqp import performatives, types
from vpnrouter.wire.amqp.performatives import Header, MessageProperties
from vpnrouter.wire.amqp.sections import sections
from vpnrouter.wire.amqp.types import Symbol, Typed
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.publish_block import message_block
from vpnrouter.wire.mqtt.reason import PUBLISH


def amqp(
    body: Any = b"x",
    properties: MessageProperties | None = None,
    application: dict[object, object] | None = None,
    code: int = 0,
) -> bytes:
    """A message of AMQP from its properties on."""
    parts = [] if properties is None else [performatives.write(properties)]
    if application is not None:
        parts.append(b"\x00\x53\x74" + types.write(application))
    section = code or (0x75 if isinstance(body, bytes) else 0x77)
    parts.append(b"\x00\x53" + bytes((section,)) + types.write(body))
    return b"".join(parts)


def mqtt(content: bytes) -> tuple[bytes, Properties]:
    """Payload and properties of an AMQP message in MQTT's terms."""
    payload, block = to_mqtt(content)
    field = varint(len(block)) + block
    return payload, decode_properties(field, 0, len(field), PUBLISH)[0]


def parts(content: bytes) -> dict[int, Any]:
    """Sections of a message by code."""
    found: dict[int, Any] = {}
    for one in sections(content):
        if one.code in performatives.SHAPES:
            shape = performatives.SHAPES[one.code]
            found[one.code] = performatives.read_fields(shape, content, one.value, one.end)[0]
        else:
            found[one.code] = types.read(content, one.value, one.end)[0]
    return found


def of_mqtt(topic: bytes = b"a/b", payload: bytes = b"x", **properties: Any) -> dict[int, Any]:
    """Sections of an MQTT message in AMQP's terms."""
    return parts(from_mqtt(topic, payload, message_block(Properties(**properties))))


# -- to MQTT -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "name", "expected"),
    [
        (MessageProperties(reply_to="topic://r/1"), "response_topic", "r/1"),
        (MessageProperties(reply_to="queue://q"), "response_topic", "$queue/q"),
        (MessageProperties(reply_to="a/+"), "response_topic", None),
        (MessageProperties(correlation_id="id"), "correlation_data", b"id"),
        (MessageProperties(correlation_id=b"\xff"), "correlation_data", b"\xff"),
        (MessageProperties(correlation_id=7), "correlation_data", b"7"),
        (MessageProperties(content_type=Symbol("image/png")), "content_type", "image/png"),
        (MessageProperties(content_type=Symbol("text/csv")), "payload_format_indicator", 1),
        (MessageProperties("id-1"), "user_properties", [("message-id", "id-1")]),
        (MessageProperties(user_id=b"ann"), "user_properties", [("user-id", "ann")]),
        (MessageProperties(subject="s"), "user_properties", [("subject", "s")]),
        (MessageProperties(creation_time=5), "user_properties", [("creation-time", "5")]),
        (MessageProperties(group_id="g"), "user_properties", [("JMSXGroupID", "g")]),
        (MessageProperties(group_sequence=2), "user_properties", [("JMSXGroupSeq", "2")]),
        (
            MessageProperties(content_encoding=Symbol("gzip")),
            "user_properties",
            [("content-encoding", "gzip")],
        ),
        (
            MessageProperties(reply_to_group_id="r"),
            "user_properties",
            [("reply-to-group-id", "r")],
        ),
    ],
)
def test_properties_to_mqtt(said: MessageProperties, name: str, expected: object) -> None:
    """One property of AMQP."""
    _, properties = mqtt(amqp(properties=said))
    assert getattr(properties, name) == expected


REPLIES: list[tuple[str, dict[object, object] | None, str]] = [
    ("answers", None, "answers"),
    ("answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 0)}, "$queue/answers"),
    ("answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 1)}, "answers"),
    ("answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 2)}, "$queue/answers"),
    ("answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 3)}, "answers"),
    ("answers", {Symbol("x-opt-jms-reply-to"): "queue"}, "answers"),
    ("answers", {Symbol("x-opt-jms-dest"): Typed("byte", 0)}, "answers"),
    ("topic://answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 0)}, "answers"),
    ("queue://answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 1)}, "$queue/answers"),
    ("$queue/answers", {Symbol("x-opt-jms-reply-to"): Typed("byte", 0)}, "$queue/answers"),
]
"""Address, annotations, and the topic that both are."""


@pytest.mark.parametrize(("address", "annotations", "topic"), REPLIES)
def test_reply_to_of_jms(
    address: str, annotations: dict[object, object] | None, topic: str
) -> None:
    """JMS clients say by an annotation that they wait for the answer at a queue; MQTT and selectors see it."""
    content = amqp(properties=MessageProperties(reply_to=address))
    if annotations is not None:
        content = b"\x00\x53\x72" + types.write(annotations) + content
    assert mqtt(content)[1].response_topic == topic
    assert properties_of(b"t", content)["JMSReplyTo"] == topic


@pytest.mark.parametrize("reply", [None, "r/1", "$queue/r"])
@pytest.mark.parametrize("topic", ["a/b", "$queue/q"])
def test_kinds_of_addresses_for_jms(topic: str, reply: str | None) -> None:
    """A JMS client is told of each address whether it is a queue or a topic, and so finds it with prefixes too."""
    kinds = {"q": 0, "b": 1, "1": 1, "r": 0}
    found = of_mqtt(topic.encode(), response_topic=reply)[0x72]
    assert found["x-opt-jms-dest"] == kinds[topic[-1]]
    assert found.get("x-opt-jms-reply-to") == (None if reply is None else kinds[reply[-1]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (True, "true"),
        (-5, "-5"),
        (1.5, "1.5"),
        (Typed("ubyte", 7), "7"),
        (Typed("timestamp", 99), "99"),
        (Typed("uuid", bytes(16)), "0" * 32),
        (Typed("char", b"\x00\x00\x00A"), "A"),
        (Symbol("s"), "s"),
        (b"\xff\x00", "ff00"),
    ],
)
def test_application_properties_to_mqtt(value: object, text: str) -> None:
    """Values of all simple types are texts; selectors see numbers and booleans as such, all others as texts."""
    content = amqp(application={"name": value})
    _, properties = mqtt(content)
    assert properties.user_properties == [("name", text)]
    seen = properties_of(b"t", content)["name"]
    assert text_of(seen) == text
    inner = value.value if isinstance(value, Typed) else value
    expected = type(inner) if isinstance(inner, (bool, int, float)) else Text
    assert type(seen) is expected


@pytest.mark.parametrize(
    ("kind", "body", "indicator"),
    [
        ("text/plain", "Grüße".encode(), 1),
        ("text/plain; charset=utf-8", b"", 1),
        ("text/plain; charset=latin-1", "Grüße".encode("latin-1"), None),
        ("text/csv", b"\xff\xfe", None),
        ("text/plain", "Grüße", 1),
        ("application/json", b"{}", None),
        ("image/png", "text", 1),
        (None, {"a": "x"}, 1),
        (None, b"\xff", None),
    ],
)
def test_payload_format_indicator(kind: str | None, body: Any, indicator: int | None) -> None:
    """1 says that the payload is UTF-8 (MQTT 5, 3.3.2.3.2): not of a text in another encoding."""
    said = None if kind is None else MessageProperties(content_type=Symbol(kind))
    payload, properties = mqtt(amqp(body, properties=said))
    assert properties.payload_format_indicator == indicator
    if indicator:
        payload.decode()


def test_null_is_no_property() -> None:
    """Null and what is not simple are left out."""
    _, properties = mqtt(amqp(application={"null": None, "list": [1]}))
    assert properties.user_properties == []


@pytest.mark.parametrize(
    ("content", "payload", "kind"),
    [
        (amqp(b"bytes"), b"bytes", None),
        (amqp(b"one") + amqp(b"two"), b"onetwo", None),
        (amqp("Grüße"), "Grüße".encode(), "text/plain"),
        (
            amqp({"a": 1, "b": [True, None, "x"]}),
            b'{"a": 1, "b": [true, null, "x"]}',
            "application/json",
        ),
        (amqp([1, 2.5]), b"[1, 2.5]", "application/json"),
        (amqp(float("nan")), b"null", "application/json"),
        (amqp(b"raw", code=0x77), b"raw", None),
        (amqp(None, code=0x77), b"", None),
        (amqp([1], code=0x76) + amqp([2], code=0x76), b"[1, 2]", "application/json"),
    ],
)
def test_body_to_mqtt(content: bytes, payload: bytes, kind: str | None) -> None:
    """Data, values and sequences."""
    found, properties = mqtt(content)
    assert found == payload
    assert properties.content_type == kind


def test_damaged_message_is_given_as_it_came() -> None:
    """Nobody is hurt by what is wrong within a section."""
    content = b"\x00\x53\x74\xc1\x03\x02\xa1\xff" + amqp(b"x")
    read_head(content)
    payload, properties = mqtt(content)
    assert payload == content
    assert properties.content_type == "application/vnd.amqp"
    assert properties_of(b"t", content) == {"JMSDestination": "t"}
    assert annotated(b"\x00\x53\x72\xc1\x03\x02\xa1\xff" + amqp(), b"").endswith(amqp())


# -- to AMQP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "name", "expected"),
    [
        ({"response_topic": "r/1"}, "reply_to", "topic://r/1"),
        ({"response_topic": "$queue/q"}, "reply_to", "queue://q"),
        ({"correlation_data": b"id"}, "correlation_id", "id"),
        ({"correlation_data": b"\xff"}, "correlation_id", b"\xff"),
        ({"content_type": "image/png"}, "content_type", "image/png"),
        ({"payload_format_indicator": 1}, "content_type", "text/plain; charset=utf-8"),
        ({"user_properties": [("message-id", "i")]}, "message_id", "i"),
        ({"user_properties": [("user-id", "ann")]}, "user_id", b"ann"),
        ({"user_properties": [("subject", "s")]}, "subject", "s"),
        ({"user_properties": [("creation-time", "5")]}, "creation_time", 5),
        ({"user_properties": [("creation-time", "soon")]}, "creation_time", None),
        ({"user_properties": [("JMSXGroupID", "g")]}, "group_id", "g"),
        ({"user_properties": [("JMSXGroupSeq", "2")]}, "group_sequence", 2),
        ({"user_properties": [("content-encoding", "gzip")]}, "content_encoding", "gzip"),
        ({"user_properties": [("reply-to-group-id", "r")]}, "reply_to_group_id", "r"),
    ],
)
def test_properties_to_amqp(given_: dict[str, Any], name: str, expected: object) -> None:
    """One property of MQTT 5."""
    assert getattr(of_mqtt(**given_)[0x73], name) == expected


@pytest.mark.parametrize(
    ("topic", "address"), [(b"a/b", "topic://a/b"), (b"$queue/q", "queue://q")]
)
def test_topic_to_amqp(topic: bytes, address: str) -> None:
    """The topic is the address that it was sent to."""
    assert of_mqtt(topic)[0x73].to == address


def test_user_properties_to_amqp() -> None:
    """Of a repeated name the first counts."""
    found = of_mqtt(user_properties=[("a", "1"), ("b", "2"), ("a", "3")])
    assert found[0x74] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("given_", "kind"),
    [
        ({}, 3),
        ({"payload_format_indicator": 1}, 5),
        ({"content_type": "text/plain"}, 5),
        ({"content_type": "application/json"}, 3),
    ],
)
def test_kind_of_jms_message(given_: dict[str, Any], kind: int) -> None:
    """JMS clients get text or bytes."""
    content = from_mqtt(b"t", b"x", message_block(Properties(**given_)))
    assert b"x-opt-jms-msg-type\x51" + bytes((kind,)) in content
    assert parts(content)[0x75] == b"x"


# -- both ways ---------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


NAMED = st.sampled_from(
    [
        "message-id",
        "user-id",
        "subject",
        "content-encoding",
        "creation-time",
        "JMSXGroupID",
        "JMSXGroupSeq",
        "reply-to-group-id",
    ]
)
"""User properties that stand for properties of AMQP."""

NUMBERS = st.integers(-1, 2**64).map(str) | st.just("007")


@given(
    payload=st.binary(max_size=200),
    topic=TEXTS.filter(lambda text: text and not set(text) & set("+#")),
    reply=st.none() | TEXTS.filter(lambda text: text and not set(text) & set("+#")),
    correlation=st.none() | st.binary(max_size=50),
    kind=st.none() | st.sampled_from(["text/plain", "image/png"]),
    pairs=st.dictionaries(TEXTS.filter(bool) | NAMED, TEXTS | NUMBERS, max_size=5),
)
@example(b"", "t", None, None, None, {"message-id": ""})
def test_mqtt_and_back(
    payload: bytes,
    topic: str,
    reply: str | None,
    correlation: bytes | None,
    kind: str | None,
    pairs: dict[str, str],
) -> None:
    """What MQTT has words for comes back the same, and selectors see the same of both forms."""
    properties = Properties(
        response_topic=reply,
        correlation_data=correlation,
        content_type=kind,
        user_properties=list(pairs.items()),
    )
    block = message_block(properties)
    content = from_mqtt(topic.encode(), payload, block)
    found, again = mqtt(content)
    assert found == payload
    assert again.response_topic == reply
    assert again.correlation_data == correlation
    assert again.content_type == kind
    assert dict(again.user_properties) == pairs
    came = Message(topic.encode(), payload, block)
    went = Message(topic.encode(), content, b"", False, None, AMQP)
    seen = went.properties()
    renamed = {"JMSReplyTo"} if reply is not None and reply.startswith("queue://") else set()
    for name, text in came.properties().items():
        if name not in renamed:
            assert text_of(seen[name]) == text_of(text)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    """Nothing but a protocol error is raised, and what was taken can be put into MQTT's terms."""
    try:
        head = read_head(data)
    except ProtocolError:
        return
    to_mqtt(head.content)
    properties_of(b"t", head.content)
    with_annotation(head.content, "x", 1)


def test_head() -> None:
    """What routing needs; header and delivery annotations are left out of the content."""
    rest = amqp(b"x", MessageProperties(to="queue://q", group_id="g", absolute_expiry_time=9))
    notes = b"\x00\x53\x71" + types.write({Symbol("hop"): 1})
    late = b"\x00\x53\x72" + types.write({Symbol("x-opt-delivery-time"): Typed("timestamp", 77)})
    head = read_head(performatives.write(Header(True, 9, 1_000)) + notes + late + rest)
    assert head.content == late + rest
    assert (head.durable, head.priority, head.ttl) == (True, 9, 1_000)
    assert (head.to, head.group, head.expires_at, head.deliver_at) == ("queue://q", "g", 9, 77)


def test_annotations_of_the_router_replace_its_own() -> None:
    """A dead letter that dies again has each name once."""
    first = with_annotation(amqp(), "x-opt-dead-letter-reason", "rejected")
    again = with_annotation(first, "x-opt-dead-letter-reason", "max-ttl-expired")
    assert parts(again)[0x72] == {Symbol("x-opt-dead-letter-reason"): "max-ttl-expired"}
    assert again.endswith(amqp())


def test_text_of_a_character_that_is_none() -> None:
    """A surrogate is no character."""
    assert text_of(Typed("char", b"\x00\x00\xd8\x00")) is None
