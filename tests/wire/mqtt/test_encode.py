"""Packets to bytes, and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import (
    encode,
    encode_ack,
    encode_publish,
    encode_publish_field,
    publish_prefix,
)
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.properties import (
    BINARY,
    BYTE,
    RULES,
    STRING,
    STRING_PAIR,
    TWO_BYTES,
    Properties,
    encode_properties,
)
from vpnrouter.wire.mqtt.reason import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    REASONS_OF,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    V3_REASONS,
    WILL,
)


def test_packet_encodes_to_its_golden_frame(accepted: Any) -> None:
    """Encoding a golden packet gives its bytes, or, for a wordier form, bytes that say the same."""
    frame = encode(accepted.packet, accepted.level)
    if accepted.canonical:
        assert frame == accepted.frame
    else:
        assert frame != accepted.frame
        assert decode(frame, 0, len(frame), accepted.level) == accepted.packet


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("size", [0, 1, 110, 111, 112, 127, 128, 20_000])
def test_prefix_and_payload_are_a_publish(level: int, size: int) -> None:
    """The prefix for a payload length, and that payload, are the frame that encoding writes."""
    payload = b"p" * size
    frame = publish_prefix(b"topic/of/14/by", size, level) + payload
    assert frame == encode_publish(b"topic/of/14/by", payload, level)
    assert frame == encode(Publish(b"topic/of/14/by", payload), level)


@pytest.mark.parametrize(("qos", "retain", "dup"), [(0, True, False), (1, False, True), (2, 1, 1)])
def test_lean_publish_equals_the_packet(qos: int, retain: bool, dup: bool) -> None:
    """Both lean forms write what the packet object writes."""
    properties = Properties(content_type="x", user_properties=[("a", "b")])
    packet = Publish(b"t", b"p", qos, bool(retain), bool(dup), 9 if qos else 0, properties)
    field = encode_properties(properties)
    lean = encode_publish(b"t", b"p", 5, field[1:], qos, bool(retain), bool(dup), 9)
    assert lean == encode(packet, 5)
    assert lean == encode_publish_field(b"t", b"p", field, qos, bool(retain), bool(dup), 9)


def test_publish_at_level_4_leaves_properties_out() -> None:
    """The block of a message does not reach a 3.1.1 client."""
    assert encode_publish(b"t", b"p", 4, b"\x01\x01") == b"\x30\x04\x00\x01tp"


@pytest.mark.parametrize("kind", [4, 5, 6, 7])
@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("reason", [0, 0x92])
def test_lean_ack_equals_the_packet(kind: int, level: int, reason: int) -> None:
    """The lean acknowledgement is the packet's shortest form."""
    assert encode_ack(kind, 513, level, reason) == encode(Ack(kind, 513, reason), level)


def test_level_4_drops_what_it_can_not_say() -> None:
    """Reason codes become 3.1.1 return codes or vanish, options of MQTT 5 vanish."""
    properties = Properties(reason_string="why")
    request = SubscriptionRequest("a", 1, True, True, 2)
    assert encode(Connack(False, 0x97, properties), 4) == b"\x20\x02\x00\x03"
    assert encode(Ack(4, 1, 0x87, properties), 4) == b"\x40\x02\x00\x01"
    assert encode(Suback(1, [1, 0x97], properties), 4) == b"\x90\x04\x00\x01\x01\x80"
    assert encode(Subscribe(1, [request], properties), 4) == b"\x82\x06\x00\x01\x00\x01a\x01"
    assert encode(Disconnect(0x8E, properties), 4) == b"\xe0\x00"


def test_auth_has_no_form_at_level_4() -> None:
    """AUTH is MQTT 5 only."""
    with pytest.raises(ValueError, match="AUTH"):
        encode(Auth(0x18), 4)


def test_a_bare_packet_has_no_encoding() -> None:
    """The base class is no packet."""
    with pytest.raises(TypeError, match="no encoding"):
        encode(Packet(15), 5)


@pytest.mark.parametrize(
    "packet",
    [
        Connect("x" * 65_536),
        Connect("\x00"),
        Connect("\ud800"),
        Connect("c", keep_alive_s=65_536),
        Connect("c", password=b"x" * 65_536),
        Connect("c", properties=Properties(session_expiry_interval=1 << 32)),
        Publish(b"x" * 65_536, b""),
        Publish(b"t", b"", qos=1, packet_id=65_536),
        Publish(b"t", b"", properties=Properties(subscription_identifiers=[1 << 28])),
        Ack(4, -1),
        Unsubscribe(1, ["x" * 65_536]),
    ],
    ids=repr,
)
def test_value_that_fits_no_field_is_a_value_error(packet: Packet) -> None:
    """What can not be written is refused, not written wrongly."""
    with pytest.raises(ValueError, match=r"fit|sent|variable|surrogates"):
        encode(packet, 5)


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


TEXT = st.text(LETTERS, max_size=12)


FILTER = st.text(LETTERS, min_size=1, max_size=12)


TOPIC = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00+#"), max_size=12)


NAMED_TOPIC = TOPIC.filter(bool)


DATA = st.binary(max_size=20)


PACKET_ID = st.integers(1, 0xFFFF)


QOS = st.integers(0, 2)


def value_of(rule: Any, kind: int) -> st.SearchStrategy[Any]:
    """Legal values of one property in packet type `kind`."""
    if rule.name == "response_topic":
        return NAMED_TOPIC
    if rule.name == "subscription_identifiers":
        most = 1 if kind == SUBSCRIBE else 3
        return st.lists(st.integers(rule.minimum, rule.maximum), max_size=most)
    if rule.kind == STRING_PAIR:
        return st.lists(st.tuples(TEXT, TEXT), max_size=3)
    if rule.kind == STRING:
        return TEXT
    if rule.kind == BINARY:
        return DATA
    top = {BYTE: 0xFF, TWO_BYTES: 0xFFFF}.get(rule.kind, 0xFFFF_FFFF)
    return st.integers(rule.minimum, min(rule.maximum, top))


def properties(kind: int, level: int) -> st.SearchStrategy[Properties]:
    """Property objects that packet type `kind` may carry; empty at level 4."""
    if level == 4:
        return st.builds(Properties)
    optional = {rule.name: value_of(rule, kind) for rule in RULES if (rule.packets >> kind) & 1}
    return st.fixed_dictionaries({}, optional=optional).map(lambda some: Properties(**some))


@st.composite
def connects(draw: st.DrawFn, level: int) -> Connect:
    """CONNECT within the rules of its level."""
    props = draw(properties(CONNECT, level))
    if props.authentication_method is None:
        props.authentication_data = None
    will = None
    if draw(st.booleans()):
        topic = draw(NAMED_TOPIC).encode()
        will = Will(
            topic, draw(DATA), draw(QOS), draw(st.booleans()), draw(properties(WILL, level))
        )
    clean = draw(st.booleans())
    username = draw(st.none() | TEXT)
    password = draw(st.none() | DATA) if level == 5 or username is not None else None
    return Connect(
        draw(TEXT) if clean or level == 5 else draw(FILTER),
        clean,
        draw(st.integers(0, 0xFFFF)),
        level,
        username,
        password,
        will,
        props,
    )


@st.composite
def publishes(draw: st.DrawFn, level: int) -> Publish:
    """PUBLISH within the rules of its level."""
    props = draw(properties(PUBLISH, level))
    topic = draw(NAMED_TOPIC if props.topic_alias is None else TOPIC).encode()
    qos = draw(QOS)
    return Publish(
        topic,
        draw(DATA),
        qos,
        draw(st.booleans()),
        draw(st.booleans()) if qos else False,
        draw(PACKET_ID) if qos else 0,
        props,
    )


@st.composite
def subscribes(draw: st.DrawFn, level: int) -> Subscribe:
    """SUBSCRIBE within the rules of its level."""
    requests = []
    for text in draw(st.lists(FILTER, min_size=1, max_size=3)):
        request = SubscriptionRequest(text, draw(QOS))
        if level == 5:
            request.no_local = draw(st.booleans()) and not text.startswith("$share/")
            request.retain_as_published = draw(st.booleans())
            request.retain_handling = draw(st.integers(0, 2))
        requests.append(request)
    return Subscribe(draw(PACKET_ID), requests, draw(properties(SUBSCRIBE, level)))


@st.composite
def answers(draw: st.DrawFn, level: int) -> Packet:
    """Packets that carry reason codes."""
    kind = draw(st.sampled_from([CONNACK, SUBACK, UNSUBACK, DISCONNECT, AUTH, *range(4, 8)]))
    props = draw(properties(kind, level))
    reasons = st.sampled_from(sorted(REASONS_OF[kind]))
    if kind == CONNACK:
        reason = draw(reasons if level == 5 else st.sampled_from(V3_REASONS))
        return Connack(draw(st.booleans()) if reason == 0 else False, reason, props)
    if kind == SUBACK:
        codes = reasons if level == 5 else st.sampled_from([0, 1, 2, 0x80])
        return Suback(draw(PACKET_ID), draw(st.lists(codes, min_size=1, max_size=4)), props)
    if kind == UNSUBACK:
        listed = draw(st.lists(reasons, min_size=1, max_size=4)) if level == 5 else []
        return Unsuback(draw(PACKET_ID), listed, props)
    reason = draw(reasons) if level == 5 else 0
    if PUBACK <= kind <= PUBCOMP:
        return Ack(kind, draw(PACKET_ID), reason, props)
    if kind == DISCONNECT or level == 4:
        return Disconnect(reason if kind == DISCONNECT else 0, props if level == 5 else None)
    if props.authentication_method is None:
        return Auth()
    return Auth(reason, props)


def packets(level: int) -> st.SearchStrategy[Packet]:
    """Any packet of a level."""
    unsubscribes = st.builds(
        Unsubscribe,
        PACKET_ID,
        st.lists(FILTER, min_size=1, max_size=3),
        properties(UNSUBSCRIBE, level),
    )
    return st.one_of(
        connects(level),
        publishes(level),
        subscribes(level),
        unsubscribes,
        answers(level),
        st.builds(Pingreq),
        st.builds(Pingresp),
    )


ANY = st.sampled_from([4, 5]).flatmap(lambda level: st.tuples(st.just(level), packets(level)))


@given(ANY)
def test_packet_reads_back_as_it_was_written(drawn: tuple[int, Packet]) -> None:
    """Encoding and decoding lose and add nothing, whatever the packet."""
    level, packet = drawn
    frame = encode(packet, level)
    assert frame_at(frame, 0, len(frame), MQTT_PACKET_BYTES) == len(frame)
    again = decode(frame, 0, len(frame), level)
    assert again == packet
    assert encode(again, level) == frame


@given(ANY)
def test_beginning_of_a_packet_is_never_a_packet(drawn: tuple[int, Packet]) -> None:
    """Every truncation is incomplete to framing and ProtocolError to decode."""
    level, packet = drawn
    frame = encode(packet, level)
    for size in range(len(frame)):
        assert frame_at(frame, 0, size, MQTT_PACKET_BYTES) == 0
        with pytest.raises(ProtocolError):
            decode(frame[:size], 0, size, level)


@given(
    st.sampled_from([4, 5]).flatmap(
        lambda level: st.tuples(st.just(level), st.lists(packets(level), max_size=5))
    )
)
def test_stream_fed_byte_by_byte_equals_fed_whole(drawn: tuple[int, list[Packet]]) -> None:
    """A stream of packets gives the same packets in one piece and in single bytes."""
    level, sent = drawn
    stream = b"".join([encode(packet, level) for packet in sent])
    whole = []
    pos = 0
    while size := frame_at(stream, pos, len(stream), MQTT_PACKET_BYTES):
        whole.append(decode(stream, pos, size, level))
        pos += size
    single = []
    buffer = b""
    for at in range(len(stream)):
        buffer += stream[at : at + 1]
        if size := frame_at(buffer, 0, len(buffer), MQTT_PACKET_BYTES):
            single.append(decode(buffer, 0, size, level))
            buffer = buffer[size:]
    assert whole == single == sent
    assert not buffer
