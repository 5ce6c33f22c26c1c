"""vpnrouter.core.mqtt: whatever breaks when, QoS 2 arrives exactly once, QoS 1 at least once, all in order.

A publisher and a consumer as the standard wants them, over a router whose connections break, whose packets are
delayed and which crashes between any two steps; the seed is printed when a run fails.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

MESSAGES = 40
SEEDS = 25


class Sender:
    """Publishes payloads 1, 2, 3 …; keeps its side of the session over connections."""

    def __init__(self, level: int, qos: int) -> None:
        self.level = level
        self.qos = qos
        self.client: SpooledClient | None = None
        self.next = 1
        # Packet identifier → payload, while PUBLISH is unanswered; or None, while PUBREL is.
        self.open: dict[int, int | None] = {}
        self.answered: set[int] = set()

    def connect(self, world: SpooledWorld) -> None:
        """Resume the session and repeat what was not answered (MQTT-4.4.0-1)."""
        self.client = world.lasting("sender", self.level)
        for pid, number in self.open.items():
            if number is None:
                self.client.ack(PUBREL, pid)
            else:
                self.client.pub("t", b"%d" % number, self.qos, pid, dup=True)

    def step(self, packets: list[Any]) -> None:
        """Take answers, publish one message more."""
        assert self.client is not None
        for packet in packets:
            assert isinstance(packet, Ack)
            assert packet.reason_code in (0, 0x92)
            if packet.packet_type == PUBREC:
                number = self.open.get(packet.packet_id)
                if number is not None:
                    self.answered.add(number)
                self.open[packet.packet_id] = None
                self.client.ack(PUBREL, packet.packet_id)
            else:
                number = self.open.pop(packet.packet_id, None)
                if number is not None:
                    self.answered.add(number)
        if self.next <= MESSAGES and len(self.open) < 8:
            pid = next(pid for pid in range(1, 20) if pid not in self.open)
            self.open[pid] = self.next
            self.client.pub("t", b"%d" % self.next, self.qos, pid)
            self.next += 1


class Taker:
    """Consumes with method A of the standard: a QoS 2 message is taken when its PUBLISH comes first."""

    def __init__(self, level: int, qos: int, text: str) -> None:
        self.level = level
        self.qos = qos
        self.text = text
        self.client: SpooledClient | None = None
        self.taken: list[int] = []
        self.held: set[int] = set()

    def connect(self, world: SpooledWorld) -> None:
        """Resume the session; a queue has to be bound again, and what was held of it is another's."""
        self.client = world.lasting("taker", self.level)
        packets = self.client.rest
        assert self.client.sub(self.text, self.qos) == self.qos
        self.step(packets + self.client.rest)

    def step(self, packets: list[Any]) -> None:
        """Take messages and go on with each exchange."""
        assert self.client is not None
        for packet in packets:
            if isinstance(packet, Publish):
                if packet.qos == 1:
                    self.taken.append(int(packet.payload))
                    self.client.ack(PUBACK, packet.packet_id)
                    continue
                if packet.packet_id not in self.held:
                    self.held.add(packet.packet_id)
                    self.taken.append(int(packet.payload))
                self.client.ack(PUBREC, packet.packet_id)
            elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                self.held.discard(packet.packet_id)
                self.client.ack(PUBCOMP, packet.packet_id)


def run(new: Callable[[], SpooledWorld], seed: int, level: int, qos: int, queue: bool) -> Taker:
    """One history; everything published has been answered at its end, and everything delivered."""
    draw = random.Random(seed)
    world = new()
    if queue:
        world.queue("q", "t")
        world.settle()
    sender = Sender(level, qos)
    taker = Taker(level, qos, "$queue/q" if queue else "t")
    taker.connect(world)
    sender.connect(world)
    quiet = 0
    while quiet < 5:
        over = sender.next > MESSAGES and not sender.open
        chance = draw.random()
        assert sender.client is not None
        assert taker.client is not None
        if over:
            quiet += 1
            world.settle()
        elif chance < 0.05:
            world = world.restart()
            if queue:
                world.attract("q", "t")
            taker.connect(world)
            sender.connect(world)
        elif chance < 0.10:
            taker.client.lose()
            taker.connect(world)
        elif chance < 0.15:
            sender.client.lose()
            sender.connect(world)
        elif chance < 0.5:
            world.round()
        elif chance < 0.55 and world.spool.syncing is None:
            batch = world.spool.end_round()
            if batch is not None and draw.random() < 0.5:
                # Written down and not told to anybody: the router dies at this very moment.
                world.store.commit(batch)
                world = world.restart()
                if queue:
                    world.attract("q", "t")
                taker.connect(world)
                sender.connect(world)
            elif batch is not None:
                world.store.commit(batch)
                world.spool.committed()
        if draw.random() < 0.7:
            sender.step(sender.client.received())
        if draw.random() < 0.7 or over:
            taker.step(taker.client.received())
    return taker


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("queue", [False, True])
def test_qos_2_arrives_exactly_once(spooled: Any, level: int, queue: bool) -> None:
    """Through a session's own endpoint, in order; a queue's consumers may get one again (at least once)."""
    for seed in range(SEEDS):
        taker = run(spooled.SpooledWorld, seed, level, 2, queue)
        if queue:
            assert set(taker.taken) == set(range(1, MESSAGES + 1)), f"seed {seed}"
        else:
            assert taker.taken == list(range(1, MESSAGES + 1)), f"seed {seed}"


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("queue", [False, True])
def test_qos_1_arrives_at_least_once(spooled: Any, level: int, queue: bool) -> None:
    """The first copies come in order, unless the publisher had to repeat itself."""
    for seed in range(SEEDS):
        taker = run(spooled.SpooledWorld, seed, level, 1, queue)
        assert set(taker.taken) == set(range(1, MESSAGES + 1)), f"seed {seed}"
