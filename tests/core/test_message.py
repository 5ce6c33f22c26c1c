"""vpnrouter.core.message: one message off the batch path."""

from vpnrouter.core.message import Message
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties, encode_block


def test_frames_are_encoded_once_and_plain() -> None:
    """Retain is cleared; the properties are in the MQTT 5 form only; the second call gives the same bytes."""
    properties = Properties(content_type="t")
    message = Message(b"a", b"x", encode_block(properties), True)
    assert message.frame4() == encode(Publish(b"a", b"x"), 4)
    assert message.frame5() == encode(Publish(b"a", b"x", properties=properties), 5)
    assert message.frame4() is message.frame4()
    assert message.frame5() is message.frame5()


def test_a_message_is_traced_by_either_half_of_its_id() -> None:
    """Both halves 0 mean not traced."""
    for high, low, traced in ((0, 0, False), (0, 1, True), (1, 0, True)):
        message = Message(b"a", b"x")
        message.trace_high, message.trace_low = high, low
        assert message.traced == traced


def test_what_is_retained() -> None:
    """Topic, payload, properties and expiry stay; encoded frames and the trace do not."""
    message = Message(b"a", b"x", b"\x01\x01", True)
    message.expires_ns = 5
    message.trace_low = 1
    kept = message.to_retain()
    assert (kept.topic, kept.payload, kept.block, kept.retain) == (b"a", b"x", b"\x01\x01", True)
    assert kept.expires_ns == 5
    assert not kept.traced
    assert kept.source is None


def test_properties_are_taken_apart_once() -> None:
    """Selectors see user properties and the topic; the second look gets the same object."""
    message = Message(b"a/b", b"x", encode_block(Properties(user_properties=[("k", "v")])))
    assert message.properties() == {"JMSDestination": "a/b", "k": "v"}
    assert message.properties() is message.properties()
