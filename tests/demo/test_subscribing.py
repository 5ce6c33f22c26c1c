"""The subscribers' processes."""

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.publishing import connected
from vpnrouter.demo.routers import Routers
from vpnrouter.demo.subscribing import Ear, origin


def test_counts_by_origin_and_topic(routers: Routers) -> None:
    """A subscriber counts by what payload and topic say, and passes over nothing."""
    address = routers.addresses[scene.CORE_GREEN]
    ear = Ear(scene.Subscriber("count", scene.CORE_GREEN, "a/+"), address)
    client = connected("count-publisher", address)
    for topic, payload in (("a/1", '{"from":"x"}'), ("a/1", '{"from":"y"}'), ("a/2", "none")):
        client.publish(topic, payload)
    while ear.count < 3:
        ear.listen()
    assert ear.tally == {"x": {"a/1": 1}, "y": {"a/1": 1}, "?": {"a/2": 1}}
    client.disconnect()


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b'{"from":"edge/blue","day":1}', "edge/blue"),
        (b'{"day":1}', "?"),
        (b"[1]", "?"),
        (b"\xff", "?"),
        (b"", "?"),
    ],
)
def test_origin(payload: bytes, told: str) -> None:
    """A payload that does not say where it is from is counted as from nowhere, thus as a leak."""
    assert origin(payload) == told
    assert "?" not in scene.PLACES
