from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.receive import arrived, lane, obstacle
from vpnrouter.core.message import Message
from vpnrouter.spool.record import encode_rare
from vpnrouter.wire.link import frames

NOW_NS = 5_000_000_000
SECOND_NS = 1_000_000_000
EXPIRES_IN_60_S = b"\x02\x00\x00\x00\x3c"
GROUP_A = b"\x26\x00\x0bJMSXGroupID\x00\x01a"


def came(
    world: Any, extension: frames.Extension | None, block: bytes = b"", flags: int = 6
) -> Message:
    """The message in a GUARANTEED frame."""
    vpn = world.vpn("red", "core")
    vpn.context.now_ns = NOW_NS
    direct = frames.Direct(b"t/a", block, b"x", extension)
    frame = frames.Guaranteed(1, 2, flags, 7, direct)
    return arrived(frame, world.client(vpn, "c").connection.session, ["edge/blue"], vpn.context)


def test_without_an_extension_it_comes_from_the_sending_vpn(world: Any) -> None:
    """One hop, the path of the link, priority and flags of the frame (LINK-29, LINK-41)."""
    message = came(world, None)
    assert (message.path, message.hops, message.priority) == (["edge/blue"], 1, 7)
    assert (message.persistent, message.dmq_eligible, message.qos) == (True, True, 1)
    assert message.expires_ns == 0
    exact = came(world, None, flags=6 | frames.EXACTLY_ONCE)
    assert (exact.persistent, exact.qos) == (True, 2)
    bare = came(world, None, flags=0)
    assert (bare.persistent, bare.dmq_eligible) == (False, False)


@pytest.mark.parametrize(
    ("expiry_ms", "block", "due_ns"),
    [
        (-1, b"", 0),
        (1500, b"", NOW_NS + 1_500_000_000),
        (0, b"", NOW_NS),
        (-1, EXPIRES_IN_60_S, NOW_NS + 60 * SECOND_NS),
        (1500, EXPIRES_IN_60_S, NOW_NS + 1_500_000_000),
        (4_294_967_295_000, b"", NOW_NS + 4_294_967_295 * SECOND_NS),
        (4_294_967_295_001, EXPIRES_IN_60_S, 0),
        ((1 << 64) - 1, b"", 0),
    ],
)
def test_milliseconds_count_more_than_seconds(
    world: Any, expiry_ms: int, block: bytes, due_ns: int
) -> None:
    """Field 8 before the property, the property where there is none (LINK-41); too long is never."""
    assert came(world, frames.Extension([], 1, expiry_ms=expiry_ms), block).expires_ns == due_ns


def test_obstacles() -> None:
    """Too large, visited before, too many hops: never taken (LINK-36)."""
    message = Message(b"t", b"12345")
    message.path = ["a/b"]
    message.hops = 3
    assert obstacle(message, "c/d", 3, 5) == ""
    assert obstacle(message, "c/d", 3, 4) == "msg-too-big"
    assert obstacle(message, "c/d", 2, 5) == "ttl-exceeded"
    assert obstacle(message, "a/b", 3, 5) == "loop-detected"


def test_a_path_that_the_spool_has_no_room_for() -> None:
    """Names at their bound fit up to LINK_PATH_KEPT of them; one more is refused, whatever `max_ttl` says."""
    message = Message(b"t", b"x")
    message.path = ["é" * 127 + "x"] * limits.LINK_PATH_KEPT
    message.hops = len(message.path)
    assert obstacle(message, "c/d", 255, 5) == ""
    assert encode_rare(message.hops, message.path, "r" * 255, "v" * 255, 1, 1, 1)
    message.path.append("a/b")
    assert obstacle(message, "c/d", 255, 5) == "ttl-exceeded"


def test_a_lane_is_a_topic_or_a_partition_key() -> None:
    """The key where lanes go by it and there is one, else the topic."""
    plain, other, keyed = Message(b"t/a", b""), Message(b"t/b", b""), Message(b"t/a", b"", GROUP_A)
    by_topic, by_key = frames.LANES_TOPIC, frames.LANES_PARTITION_KEY
    assert lane(plain, by_topic) == lane(keyed, by_topic) != lane(other, by_topic)
    assert lane(plain, by_key) == lane(plain, by_topic) != lane(keyed, by_key)
    assert lane(keyed, by_key) == lane(Message(b"t/b", b"", GROUP_A), by_key)
