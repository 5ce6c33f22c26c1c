"""What crosses a bridge and what it costs: long messages, compression, many subscriptions, silence."""

import random
import time
from typing import Any, Final

LIMIT_BYTES: Final = 10_000


def test_a_message_too_long_for_the_other_side(bridged: Any, paho: Any) -> None:
    """It is discarded and counted, those around it arrive, and the link stays up."""
    two = bridged(vpn={"max_msg_size": LIMIT_BYTES})
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    near = paho(two.edge.port("mqtt"), "near")
    two.forget_lines()
    failures = two.core.bridge("from-blue")["failureCount"]
    for turn in range(3):
        near.publish("out/fits", b"x" * LIMIT_BYTES)
        near.publish("out/too-long", b"x" * (LIMIT_BYTES + 1) * (turn * 30 + 1))
    near.publish("out/end")
    assert [far.next()[0] for _ in range(4)] == ["out/fits"] * 3 + ["out/end"]
    (row,) = two.core.bridges()
    assert row["discardedRx"] == {"msg-too-big": 3}
    assert (row["rxImbalance"], row["failureCount"]) == (0, failures)
    assert not two.core.told("DOWN") + two.edge.told("DOWN")


def test_compression_saves_bytes(bridged: Any, paho: Any) -> None:
    """A compressed link carries the same messages in fewer bytes, and starts anew after a cut."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    two = bridged(compressed=True)
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    near = paho(two.edge.port("mqtt"), "near")
    for _ in range(2):
        before = sum(two.link.passed)
        plain = 0
        for number in range(200):
            payload = b'{"sensor": %d, "celsius": %d}' % (number, draws.randrange(40)) * 10
            plain += len(payload)
            near.publish("out/x", payload)
            assert far.next() == ("out/x", payload)
        crossed = sum(two.link.passed) - before
        print(f"{plain} bytes of payload in {crossed} bytes on the link")
        assert crossed < plain / 3
        (row,) = two.core.bridges()
        assert row["compressed"]
        assert row["rxImbalance"] == 0
        two.forget_lines()
        two.link.cut()
        two.core.says("VPN_BRIDGING_LINK_UP")
        two.edge.says("VPN_BRIDGING_LINK_UP")


def test_local_subscriptions_cost_the_link_nothing(bridged: Any, paho: Any) -> None:
    """Ten thousand changes of clients' subscriptions on both sides send no frame over the link."""
    two = bridged()
    before = two.core.bridge("from-blue")
    began = time.monotonic()
    for router in (two.edge, two.core):
        client = paho(router.port("mqtt"), "c")
        for first in range(0, 2_500, 250):
            topics = [(f"out/{number}", 0) for number in range(first, first + 250)]
            client.client.subscribe(topics)
            client.client.unsubscribe([topic for topic, _ in topics])
        client.subscribe("out/#")
    seconds = time.monotonic() - began
    after = two.core.bridge("from-blue")
    # A heartbeat and its answer in each direction for each interval of 150 ms, at most.
    beats = 2 * (seconds / 0.15 + 2)
    for name in ("controlTxMsgCount", "controlRxMsgCount"):
        assert after[name] - before[name] <= beats, (name, seconds)
    assert after["loginTxMsgCount"] == before["loginTxMsgCount"]


def test_many_remote_subscriptions_are_few_frames(bridged: Any, paho: Any) -> None:
    """5,000 filters of MQTT, which are 10,000 here, go over in a handful of frames, each time anew."""
    two = bridged(
        5_000,
        topic_syntax="mqtt",
        remote_subscriptions=[f"out/{number}/#" for number in range(5_000)],
    )
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    near = paho(two.edge.port("mqtt"), "near")
    frames = 0
    for turn in range(2):
        row = two.core.bridge("from-blue", inboundState="ready-in-sync")
        assert row["controlTxMsgCount"] - frames <= 12
        frames = row["controlTxMsgCount"]
        near.publish(f"out/4999/{turn}", b"x")
        assert far.next() == (f"out/4999/{turn}", b"x")
        two.forget_lines()
        two.link.cut()
        two.core.says("VPN_BRIDGING_LINK_UP")


def test_health_is_what_was_forwarded(bridged: Any, paho: Any) -> None:
    """A link that stands still looks up until it is missed; how long ago it forwarded shows at once."""
    two = bridged(5_000)
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    near = paho(two.edge.port("mqtt"), "near")
    assert two.core.bridge("from-blue")["lastRxAgeMs"] == -1
    near.publish("out/x", b"1")
    assert far.next() == ("out/x", b"1")
    first = two.core.bridge("from-blue")["lastRxAgeMs"]
    assert 0 <= first < 5_000
    two.link.freeze()
    near.publish("out/x", b"2")
    time.sleep(0.3)
    row = two.core.bridge("from-blue")
    assert row["health"] == "up"
    assert row["lastRxAgeMs"] >= first + 300
    assert far.arrived.empty()
