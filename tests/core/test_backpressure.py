"""Publishers are left unread for receivers that read, also late ones, and for no others: on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from vpnrouter import limits
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.testing.memory import Client, MemoryRouter
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish

MILLISECOND_NS: Final = 1_000_000
TURN: Final = encode(Publish(b"t/a", bytes(16_384)), 5) * 8
"""What a publisher sends in a turn: 128 KiB."""

TURNS: Final = 8
"""Turns of all publishers in a millisecond: a gigabyte in a second."""

Reads = Callable[[int], int]
"""How many bytes a receiver takes in a millisecond, by the number of it."""


class Stage:
    """Publishers that send as fast as they are read, and receivers that take as much as the test says."""

    def __init__(
        self, *reads: Reads, publishers: int = 1, limit: int = limits.OUTBOX_BYTES
    ) -> None:
        self.world = MemoryRouter("blue")
        profile = ClientProfile("default", max_outbox_bytes=limit)
        self.world.add_vpn("blue", profile=profile)
        self.context = self.world.router.context
        self.context.backpressure.active = True
        self.receivers: list[tuple[Outbox, Reads]] = []
        for each in reads:
            self.receive(each)
        self.publishers = [self.world.connect(f"p{number}") for number in range(publishers)]
        self.sent = 0
        self.now_ms = 0
        self.held_ms = 0
        """Milliseconds for which all publishers were unread."""

    def receive(self, reads: Reads) -> Client:
        """One more receiver."""
        client = self.world.connect(f"r{len(self.receivers)}")
        client.subscribe("#")
        self.receivers.append((client.connection.outbox, reads))
        return client

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        for _ in range(milliseconds):
            self.now_ms += 1
            self.world.advance(0.001)
            self.held_ms += all(publisher.connection.held for publisher in self.publishers)
            for _ in range(TURNS):
                publisher = self.publishers.pop(0)
                self.publishers.append(publisher)
                if not publisher.connection.paused:
                    publisher.raw(TURN)
                    self.sent += 8
            for outbox, reads in self.receivers:
                self._take(outbox, reads(self.now_ms))
            self.context.ready.clear()
            self.context.backpressure.step(self.context.now_ns)

    @staticmethod
    def _take(outbox: Outbox, count: int) -> None:
        while count and outbox.size:
            data = outbox.take(count)
            sent = min(count, len(data))
            if sent < len(data):
                outbox.put_back(data, sent)
            outbox.has_left(sent)
            count -= sent

    @property
    def lost(self) -> int:
        """Messages that had no room, of all receivers."""
        return sum([outbox.discarded for outbox, _ in self.receivers])


def never(_: int) -> int:
    """Take nothing."""
    return 0


def quickly(_: int) -> int:
    """Take more than a publisher sends."""
    return 2_000_000


def late(away: int, every: int, count: int = 1_500_000) -> Reads:
    """Take nothing in the first milliseconds of each period: others have the processor."""
    return lambda now: 0 if now % every < away else count


@pytest.mark.parametrize("reads", [late(12, 30), late(25, 60), late(30, 100), late(5, 10, 400_000)])
@pytest.mark.parametrize("publishers", [1, 5])
def test_a_receiver_that_reads_late_loses_nothing(reads: Reads, publishers: int) -> None:
    """What comes while it does not run has room, and it catches up before the next time."""
    stage = Stage(reads, publishers=publishers)
    stage.run(400)
    assert stage.sent > 500
    assert stage.lost == 0


def test_a_late_receiver_beside_fast_ones_loses_nothing() -> None:
    """Each is waited for, and those that are always there get the same messages."""
    stage = Stage(late(15, 40), quickly, late(15, 35), quickly)
    stage.run(300)
    assert stage.lost == 0
    assert len({outbox.messages for outbox, _ in stage.receivers}) == 1


def test_a_slower_receiver_slows_its_publisher_down() -> None:
    """With 50 MB/s it loses nothing: the publisher has its speed."""
    stage = Stage(lambda _: 50_000)
    stage.run(400)
    assert stage.lost == 0
    assert stage.sent * 16_384 < 400 * 50_000 + limits.OUTBOX_BYTES


@pytest.mark.parametrize("count", [0, 1, 1_000, 5_000])
def test_a_receiver_that_hardly_reads_holds_nobody_up(count: int) -> None:
    """Of five seconds it takes its publisher less than a hundred milliseconds, whether it reads nothing or a little."""
    stage = Stage(lambda _: count, quickly, limit=4_000_000)
    stage.run(100)
    first = stage.held_ms
    assert first <= limits.PUBLISHER_HELD_NS // MILLISECOND_NS + (40 if count else 1)
    stage.run(900)
    assert stage.held_ms - first <= (80 if count else 0)
    assert stage.lost > 0
    assert stage.receivers[1][0].discarded == 0


def test_receivers_that_stop_one_after_the_other_hold_nobody_up_for_long() -> None:
    """Fifty of them, a new one every ten milliseconds, have a quarter of the publisher's time."""
    stage = Stage(quickly, limit=4_000_000)
    for _ in range(50):
        stage.receive(never)
        stage.run(10)
    assert stage.held_ms <= 500 // 4 + 20
    assert stage.receivers[0][0].discarded == 0


def test_all_publishers_of_a_crowded_receiver_wait() -> None:
    """Each is left unread that sends to it, not only the first one, and all are read again."""
    stage = Stage(lambda _: 400_000, publishers=20)
    stage.run(200)
    assert stage.lost == 0
    assert all(outbox.size < limits.CROWDED_BYTES + 21 * len(TURN) for outbox, _ in stage.receivers)
    stage.receivers[:] = [(outbox, quickly) for outbox, _ in stage.receivers]
    stage.run(20)
    assert not any(publisher.connection.held for publisher in stage.publishers)


def test_a_receiver_that_ends_frees_its_publisher() -> None:
    """A publisher that waits for it is read in the same round."""
    stage = Stage(never)
    stage.run(3)
    assert stage.publishers[0].connection.held
    stage.receivers[0][0].close()
    stage.context.backpressure.step(stage.context.now_ns)
    assert not stage.publishers[0].connection.held


def test_a_receiver_that_runs_rarely_is_waited_for_again() -> None:
    """It is away four fifths of the time, whenever its publisher waits: it is still waited for when it reads."""
    stage = Stage(late(12, 15, 3_000_000))
    stage.run(1_000)
    assert stage.lost == 0
    assert stage.held_ms > 300
