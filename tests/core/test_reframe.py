"""vpnrouter.core.forward: the same messages at the other level."""

from __future__ import annotations

import pytest

from vpnrouter.core.forward import reframe
from vpnrouter.wire.mqtt.encode import encode_publish, publish_prefix


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(("level", "other"), [(4, 5), (5, 4)])
@pytest.mark.parametrize("size", [0, 1, 110, 111, 112, 300, 16_380])
def test_each_frame_has_the_other_form(count: int, level: int, other: int, size: int) -> None:
    """A run becomes what encoding each message at the other level gives, over every length border."""
    topic = b"some/topic/0"
    payloads = [bytes([number % 256]) * size for number in range(count)]
    run = b"".join(encode_publish(topic, payload, level) for payload in payloads)
    start = len(publish_prefix(topic, size, level))
    expected = b"".join(encode_publish(topic, payload, other) for payload in payloads)
    assert reframe(run, count, len(run) // count, start, topic, other) == expected
