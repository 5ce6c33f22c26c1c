"""Steps of the wall clock, back and forth: life times count on, nothing is lost and nothing comes twice."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

HOUR_NS = 3_600_000_000_000
SECOND_NS = 1_000_000_000
DECADES_NS = 40 * 365 * 24 * HOUR_NS


def pass_time(router: SpooledWorld, seconds: float, step_ns: int) -> None:
    """Let time pass, and afterwards the wall clock be `step_ns` off; all bodies have to be read again."""
    router.advance(seconds)
    context = router.router.context
    router.router.tick(router.now_ns, context.wall_ns + step_ns)
    router.settle()
    for spool_id in list(router.spool.bodies.kept):
        router.spool.bodies.drop(spool_id)


@pytest.mark.parametrize("step_ns", [-DECADES_NS, -HOUR_NS, HOUR_NS, DECADES_NS])
@pytest.mark.parametrize("max_ttl", [0, 60])
def test_life_times_count_on(router: SpooledWorld, step_ns: int, max_ttl: int) -> None:
    """A message of 60 seconds lives for 60 seconds; its rest is told as it is."""
    queue = router.queue("q", "a", respect_ttl_enabled=True, max_ttl=max_ttl)
    source = router.join("p")
    life = Properties(message_expiry_interval=None if max_ttl else 60)
    source.pub("a", b"1", properties=life)
    source.pub("a", b"2", pid=2, properties=life)
    pass_time(router, 1, step_ns)
    pass_time(router, 1, 0)
    pass_time(router, 56, step_ns)
    assert queue.spooled_count == 2
    first = router.join("first", properties=Properties(receive_maximum=1))
    assert first.sub("$queue/q") == 1
    (message,) = first.rest
    assert isinstance(message, Publish)
    assert message.payload == b"1"
    if not max_ttl:
        assert message.properties.message_expiry_interval == 2
    first.puback(message)
    first.lose()
    router.settle()
    assert queue.spooled_count == 1
    pass_time(router, 4, step_ns)
    assert queue.spooled_count == 0


@pytest.mark.parametrize("step_ns", [-HOUR_NS, HOUR_NS])
def test_sessions_count_on(router: SpooledWorld, step_ns: int) -> None:
    """A session of 100 seconds ends after 100 seconds."""
    client = router.join("c", clean_start=False, properties=Properties(session_expiry_interval=100))
    assert client.sub("a") == 1
    client.lose()
    pass_time(router, 50, step_ns)
    pass_time(router, 49, step_ns)
    assert "c" in router.vpn().clients
    pass_time(router, 2, step_ns)
    assert "c" not in router.vpn().clients


def test_traffic_goes_on(router: SpooledWorld) -> None:
    """Exactly once and in order, whatever the clock does; the delivery delay of a queue holds."""
    seed = random.SystemRandom().getrandbits(32)
    draws = random.Random(seed)
    router.queue("q", "a", respect_ttl_enabled=True, max_ttl=1_000, delivery_delay=5)
    source = router.lasting("p")
    reader = router.join("reader")
    assert reader.sub("$queue/q", 2) == 2
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    due: list[bytes] = []
    delayed: list[bytes] = []
    here: list[bytes] = []
    for number in range(1, 60):
        due.append(b"%d" % number)
        source.pub("a", due[-1], qos=2, pid=number)
        router.settle()
        assert reader.messages() == [], f"seed {seed}: sooner than after five seconds"
        pass_time(router, draws.choice([1, 6]), draws.choice([-HOUR_NS, 0, HOUR_NS]))
        here += client.take()
        pass_time(router, 5, 0)
        delayed += reader.take()
    assert here == due, f"seed {seed}"
    assert delayed == due, f"seed {seed}"
