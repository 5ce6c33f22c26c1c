"""vpnrouter.core.guaranteed.replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS, REPLAY_LOG
from vpnrouter.core.guaranteed.replay import ReplayLog
from vpnrouter.topics.grammar import SMF, parse_filter

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def logged(world: SpoolWorld, *filters: str, **settings: Any) -> ReplayLog:
    """A replay log."""
    endpoint = world.endpoint("log", kind=REPLAY_LOG, **settings)
    return keep(world, endpoint, *filters)


def keep(world: SpoolWorld, endpoint: Endpoint, *filters: str) -> ReplayLog:
    """Let the message VPN have a replay log."""
    log = ReplayLog(endpoint, [parse_filter(text, SMF, exceptions=True) for text in filters])
    world.spool.replay_logs["blue"] = log
    return log


def test_what_is_logged(world: SpoolWorld) -> None:
    """Every guaranteed or promoted message that was not rejected, also one that nobody wants."""
    log = logged(world)
    world.endpoint("q", "a", max_spooled_msg_count=2, reject_behavior=ALWAYS)
    for number in range(3):
        world.publish("a", b"%d" % number)
    world.publish("nobody", b"3")
    world.direct("nobody", b"4")
    world.settings(world.endpoints[1], max_spooled_msg_count=3)
    world.direct("a", b"5")
    world.direct("a", b"6")
    world.commit()
    assert [row.message.payload for row in log.endpoint.browse(0, 9)] == [b"0", b"1", b"3", b"5"]
    log.endpoint.settings.ingress_enabled = False
    world.publish("nobody")
    assert log.endpoint.spooled_count == 4


def test_topic_filter(world: SpoolWorld) -> None:
    """Subscriptions and exceptions choose; a changed filter holds from then on."""
    log = logged(world, "a/>", "!a/secret/>")
    for topic in ("a/b", "b/c", "a/secret/d", "a/b"):
        world.publish(topic, topic.encode())
    log.take_filters([])
    world.publish("b/c", b"b/c")
    world.commit()
    found = [row.message.payload for row in log.endpoint.browse(0, 9)]
    assert found == [b"a/b", b"a/b", b"b/c"]


def test_the_oldest_is_trimmed(world: SpoolWorld) -> None:
    """At its quota the log forgets; nobody is refused for it; a restart knows how far."""
    log = logged(world, max_msg_spool_usage=1_000)
    for number in range(1_000):
        world.publish("a", b"%09d" % number)
        if number % 7 == 0:
            world.commit()
            assert log.endpoint.spooled_bytes <= 1_100
    world.commit()
    assert 90 <= log.endpoint.spooled_count <= 100
    assert log.endpoint.counters.discarded.counts == {
        "replay-log-over-quota": 1_000 - log.endpoint.spooled_count
    }
    assert log.trimmed == log.endpoint.browse(0, 1)[0].msg_id - 1
    world.publish("a", b"x" * 1_001)
    assert log.endpoint.counters.refused.counts == {"max-msg-spool-usage-exceeded": 1}
    before = log.trimmed
    (endpoint,) = world.restart()
    log = keep(world, endpoint)
    assert log.trimmed == before
    # Sizes of what was there before are read back.
    for number in range(50):
        world.publish("a", b"%09d" % number)
        world.commit()
    assert 90 <= log.endpoint.spooled_count <= 100
    assert log.trimmed > before
