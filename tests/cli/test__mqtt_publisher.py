"""Windows, answers and failures of publishing, against a link that answers as told."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.cli.pub import Messages, Publisher, Same
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Ack, Connack, Packet, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC

Answer = Callable[[Packet], list[Packet]]


class Link:
    """A link whose broker answers each packet by `answer`; `most` is how many were ever unanswered."""

    level = 5

    def __init__(self, answer: Answer, **properties: Any) -> None:
        self.connack = Connack(properties=Properties(**properties))
        self.sent: list[Packet] = []
        self._answer = answer
        self._waiting: list[Packet] = []
        self.most = 0

    def send(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            size = frame_at(data, start, len(data), len(data))
            packet = decode(data, start, size, 5)
            start += size
            self.sent.append(packet)
            self._waiting += self._answer(packet)
        self.most = max(self.most, len(self._waiting))

    def receive(self, until_s: float) -> list[Packet]:
        found, self._waiting = self._waiting, []
        return found

    def settle(self) -> list[Packet]:
        return []


def run(answer: Answer, count: int, qos: int, **properties: Any) -> tuple[Publisher, Link]:
    """Publish `count` messages."""
    link = Link(answer, **properties)
    messages = Messages("t", Same(b"x"), count=count)
    one: Any = link
    publisher = Publisher(one, messages, qos=qos, patience_s=0.01)
    publisher.run()
    return publisher, link


def acknowledge(packet: Packet) -> list[Packet]:
    """What a good broker says."""
    if isinstance(packet, Publish):
        return [Ack(PUBACK if packet.qos == 1 else PUBREC, packet.packet_id)] if packet.qos else []
    return [Ack(PUBCOMP, packet.packet_id)] if isinstance(packet, Ack) else []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_all_are_sent(qos: int) -> None:
    """As many PUBLISHes as messages, each with an id that is free."""
    publisher, link = run(acknowledge, 3_000, qos)
    assert publisher.outcome.good
    assert sum(isinstance(packet, Publish) for packet in link.sent) == 3_000
    assert sum(publisher.outcome.acknowledged.values()) == (3_000 if qos else 0)


def test_the_window_is_kept() -> None:
    """Never more in flight than the broker's Receive Maximum."""
    publisher, link = run(acknowledge, 100, 1, receive_maximum=7)
    assert publisher.outcome.good
    assert link.most == 7


@pytest.mark.parametrize("qos", [1, 2])
def test_refusals_are_counted(qos: int) -> None:
    """Each reason with its count; only the first are told one by one."""

    def answer(packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish):
            code = 0x97 if packet.packet_id % 2 else 0x10
            found = Ack(PUBACK if qos == 1 else PUBREC, packet.packet_id, code)
            found.properties.reason_string = "503 X" if code == 0x97 else None
            return [found]
        return acknowledge(packet)

    publisher, _ = run(answer, 40, qos)
    outcome = publisher.outcome
    assert outcome.refused == {"0x97 Quota exceeded (503 X)": 20}
    assert outcome.acknowledged == {"0x10 No matching subscribers": 20}
    assert len(outcome.told) == 10
    assert not outcome.good


def test_nobody_answers() -> None:
    """After the patience it ends, and says how many were not answered."""
    publisher, _ = run(lambda _: [], 5, 1)
    assert publisher.outcome.unanswered == 5
    assert "5 messages were not answered" in publisher.outcome.failure
    publisher, _ = run(lambda _: [], 5, 1, receive_maximum=2)
    assert publisher.outcome.unanswered == 2


def test_lost_underway() -> None:
    """What was acknowledged before stays counted."""

    def answer(packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish) and packet.packet_id == 2:
            raise OperationError("lost")
        return acknowledge(packet)

    publisher, _ = run(answer, 2, 1)
    assert publisher.outcome.failure == "lost"
    assert publisher.outcome.unanswered == 2
    assert publisher.outcome.as_json()["failure"] == "lost"


def test_answers_of_a_fool() -> None:
    """Answers to what was never asked are let be."""
    publisher, _ = run(lambda packet: [Ack(PUBACK, 999), *acknowledge(packet)], 3, 1)
    assert publisher.outcome.good
