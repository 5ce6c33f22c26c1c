"""vpnrouter.core.guaranteed.message_record: messages as records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed.message_record import lane_of, read_headers
from vpnrouter.core.message import Message
from vpnrouter.wire.mqtt.properties import with_user_properties

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def test_promotion(world: SpoolWorld) -> None:
    """A Direct message is kept as non-persistent by endpoints, not by sessions' queues."""
    queue = world.endpoint("q", "a/#")
    assert world.direct("a/b", b"one") == ""
    assert world.direct("b") == "no-subscription-match"
    world.commit()
    flow = world.bind(queue)
    world.commit()
    (message,) = flow.unacked.values()
    assert (message.persistent, message.payload) == (False, b"one")
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    (message,) = flow.unacked.values()
    assert (message.persistent, message.qos) == (False, 0)


def test_a_record_tells_everything(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """What comes back from the store is what went in, its life time in the new process's clock."""
    queue = world.endpoint("q", "a")
    message = spool_kit.guaranteed(
        "a", b"x", 2, priority="7", dmq_eligible="false", JMSXGroupID="k"
    )
    message.expires_ns = world.context.now_ns + 90 * spool_kit.SECOND_NS
    message.path = ["far/red"]
    message.hops = 1
    message.trace_high = 5
    world.give(message)
    world.commit()
    world.advance(30)
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    (found,) = flow.unacked.values()
    assert found is not message
    for name in ("topic", "payload", "block", "qos", "priority", "lane", "dmq_eligible", "path"):
        assert getattr(found, name) == getattr(message, name), name
    assert (found.hops, found.trace_high, found.persistent) == (1, 5, True)
    assert found.expires_ns - world.context.now_ns == 60 * spool_kit.SECOND_NS
    assert found.ingress_ns == spool_kit.WALL_NS


def read(**properties: str) -> Message:
    """A message with these user properties, after they were read."""
    pairs = [(name.replace("_", "-"), text) for name, text in properties.items()]
    message = Message(b"a", b"x", with_user_properties(b"", pairs))
    read_headers(message)
    return message


@pytest.mark.parametrize(
    ("text", "priority"),
    [("0", 0), ("9", 9), ("10", 9), ("99999999", 9), ("", 4), ("-1", 4), ("x", 4), ("²", 4)],
)
def test_priority(text: str, priority: int) -> None:
    """More than 9 is 9; what is no number is the default."""
    assert read(priority=text).priority == priority


def test_eligibility() -> None:
    """Eligible unless it says no."""
    assert [
        read(dmq_eligible=text).dmq_eligible for text in ("false", "0", "FALSE", "true", "x")
    ] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_lanes() -> None:
    """The same number for a key for ever, never 0, and well spread."""
    # The published FNV-1a value of this text is 0xBF9CF968.
    assert lane_of(b"foobar") == 0xBF9C ^ 0xF968
    lanes = [lane_of(b"%d" % number) for number in range(20_000)]
    assert min(lanes) > 0
    assert max(lanes) < 1 << 16
    shares = [sum(1 for lane in lanes if lane % 8 == part) for part in range(8)]
    assert all(2_000 < share < 3_000 for share in shares)
    assert read(JMSXGroupID="key").lane == lane_of(b"key")
    assert (read(JMSXGroupID="").lane, read(other="x").lane) == (0, 0)
