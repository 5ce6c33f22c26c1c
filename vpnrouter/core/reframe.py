"""The same messages in the frame form of the other MQTT level."""

from __future__ import annotations

from mypy_extensions import i64

from vpnrouter.wire.mqtt.encode import publish_prefix


def reframe(run: bytes, count: i64, size: i64, start: i64, topic: bytes, level: int) -> bytes:
    """A run of `count` frames of `size` bytes in the other protocol level's form.

    `start` is where the payload begins in each frame.
    """
    prefix = publish_prefix(topic, size - start, level)
    if count == 1:
        return prefix + run[start:]
    parts: list[bytes] = []
    at: i64 = 0
    for _ in range(count):
        parts.append(prefix)
        parts.append(run[at + start : at + size])
        at += size
    return b"".join(parts)
