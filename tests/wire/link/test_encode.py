from collections.abc import Callable

import pytest

from vpnrouter import limits
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import link_frame_at

LONG = "x" * (limits.LINK_TEXT_BYTES + 1)
MANY = limits.LINK_SUBSCRIBE_FILTERS + 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: encode.hello(frames.Hello(LONG, "b", "v", "w")),
        lambda: encode.hello(frames.Hello("r", "b", "v", "w", password=LONG)),
        lambda: encode.refuse(frames.Refuse(0x87, LONG)),
        lambda: encode.close(frames.Close(0x87, LONG)),
        lambda: encode.subscribed(frames.Subscribed(1, [0], LONG)),
        lambda: encode.subscribed(frames.Subscribed(1, [])),
        lambda: encode.subscribed(frames.Subscribed(1, [0] * MANY)),
        lambda: encode.subscribe(frames.Subscribe(1, [])),
        lambda: encode.subscribe(frames.Subscribe(1, [(0, "a")] * MANY)),
        lambda: encode.subscribe(frames.Subscribe(1, [(0, "")])),
        lambda: encode.unsubscribe(frames.Unsubscribe(1, ["a" * (limits.TOPIC_BYTES + 1)])),
        lambda: encode.unsubscribe(frames.Unsubscribe(1, ["a"] * MANY)),
        lambda: encode.subscription_flags(5, deliver_always=False),
        lambda: encode.direct_body(b"", b"", b""),
        lambda: encode.direct_body(b"a" * (limits.TOPIC_BYTES + 1), b"", b""),
    ],
)
def test_what_no_peer_would_take_is_not_built(build: Callable[[], bytes]) -> None:
    """One step beyond each bound is a ValueError, before a byte is on its way."""
    with pytest.raises(ValueError):
        build()


def test_a_hello_with_every_text_at_its_bound_passes_a_stranger_s_limit() -> None:
    """LINK_HANDSHAKE_BYTES has room for the longest HELLO that can be built."""
    text = "x" * limits.LINK_TEXT_BYTES
    raw = encode.hello(
        frames.Hello(
            text,
            text,
            text,
            text,
            remote_router=text,
            client_username=text,
            password=text,
            tls=True,
            features=1,
            heartbeat_ms=1,
            max_frame=limits.LINK_HANDSHAKE_BYTES,
            incarnation=1,
        )
    )
    assert link_frame_at(raw, 0, len(raw), limits.LINK_HANDSHAKE_BYTES) == len(raw)


def test_the_largest_message_fits_a_frame() -> None:
    """LINK_FRAME_BYTES has room for 16 MiB of payload beside the longest topic and properties."""
    most = 5 + 2 + limits.TOPIC_BYTES + 4 + 65_535 + 3 + 65_535 + 16_777_216
    assert most <= limits.LINK_FRAME_BYTES


def test_direct_is_a_publish_of_mqtt_5() -> None:
    """DIRECT is, type byte included, what MQTT 5 sends as QoS 0 PUBLISH (3.3)."""
    raw = encode.direct(encode.direct_body(b"a/b", b"\x01\x01", b"hi"))
    assert raw == bytes.fromhex("30 0a 0003") + b"a/b" + bytes.fromhex("02 01 01") + b"hi"


def test_flags_of_a_subscription() -> None:
    """Bit 0 is deliver-always, the bits above the deliver-to-one priority."""
    assert encode.subscription_flags(0, deliver_always=False) == 0
    assert encode.subscription_flags(1, deliver_always=True) == 0b011
    assert encode.subscription_flags(4, deliver_always=False) == 0b1000
