"""Exchanges of a subscriber, against a link that says what it is told to."""

from collections.abc import Sequence
from typing import Any

import pytest

from vpnrouter.cli._mqtt_link import stamped
from vpnrouter.cli.sub import Subscriber
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL


class Link:
    """A link that gives what stands in `coming`, and notes what is sent."""

    level = 5

    def __init__(self, *coming: list[Packet]) -> None:
        self.coming = list(coming)
        self.sent: list[Packet] = []
        self.ended = False

    def say(self, packet: Packet) -> None:
        self.sent.append(packet)

    def send(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            size = frame_at(data, start, len(data), len(data))
            self.sent.append(decode(data, start, size, 5))
            start += size

    def receive(self, until_s: float) -> list[Packet]:
        return self.coming.pop(0)

    def end(self) -> None:
        self.ended = True


def made(link: Any, **given: Any) -> tuple[Subscriber, list[bytes]]:
    """A subscriber, and the payloads that it writes."""
    written: list[bytes] = []

    def write(packets: Sequence[Publish], now_ns: int) -> None:
        # Nothing is acknowledged before it is written.
        assert not [packet for packet in link.sent if isinstance(packet, Ack)]
        written.extend(packet.payload for packet in packets)

    return Subscriber(link, [SubscriptionRequest("t", 2)], write, **given), written


def message(payload: bytes, qos: int = 0, packet_id: int = 0) -> Publish:
    """A message on topic t."""
    return Publish(b"t", payload, qos, packet_id=packet_id)


def test_granted() -> None:
    """SUBACK's codes become lines; what was retained may come before it."""
    link = Link([message(b"early")], [Suback(1, [2])])
    subscriber, written = made(link)
    assert subscriber.subscribe() == ["subscribed to t (QoS 2)"]
    assert isinstance(link.sent[0], Subscribe)
    assert written == [b"early"]


def test_refused() -> None:
    """A filter that is refused is named with the reason."""
    subscriber, _ = made(Link([Suback(1, [0x87])]))
    with pytest.raises(OperationError, match="refused t: 0x87 Not authorized"):
        subscriber.subscribe()


@pytest.mark.parametrize(("accept", "code"), [(True, 0), (False, 0x83)])
def test_written_then_answered(accept: bool, code: int) -> None:
    """QoS 1 is answered by PUBACK, QoS 2 by PUBREC; a rejection has its code."""
    link = Link([message(b"0"), message(b"1", 1, 4), message(b"2", 2, 5)])
    subscriber, written = made(link, accept=accept)
    subscriber.receive(0.0)
    assert written == [b"0", b"1", b"2"]
    assert link.sent == [Ack(PUBACK, 4, code), Ack(PUBREC, 5, code)]
    assert (subscriber.total, subscriber.bytes) == (3, 3)


def test_exactly_once() -> None:
    """A repeated PUBLISH of QoS 2 is answered and not written again, until it is released."""
    link = Link([message(b"x", 2, 5), message(b"x", 2, 5)], [Ack(PUBREL, 5), Ack(PUBREL, 6)])
    subscriber, written = made(link)
    subscriber.receive(0.0)
    assert written == [b"x"]
    subscriber.finish()
    assert link.sent[2:] == [Ack(PUBCOMP, 5), Ack(PUBCOMP, 6, 0x92)]
    assert link.ended


def test_no_more_than_wanted() -> None:
    """What comes beyond the count is neither written nor acknowledged."""
    link = Link([message(b"1", 1, 1), message(b"2", 1, 2)])
    subscriber, written = made(link, count=1)
    subscriber.receive(0.0)
    assert subscriber.done
    assert written == [b"1"]
    assert link.sent == [Ack(PUBACK, 1)]


def test_latency() -> None:
    """Messages that say when they were published have one."""
    subscriber, _ = made(Link([message(stamped(b"x", 1)), message(b"x")]))
    subscriber.receive(0.0)
    assert len(subscriber.latencies_ns) == 1
    assert subscriber.latencies_ns[0] > 1_000_000_000
