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
