"""The subscribers' processes."""

import json
from typing import Any

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.publishing import connected
from vpnrouter.demo.routers import Routers
from vpnrouter.demo.subscribing import Ear, alert, is_late, origin, read


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
    assert origin(read(payload)) == told
    assert "?" not in scene.PLACES


LATE = {"from": "edge/blue", "dep_delay": 60, "flight": 7, "carrier": "UA", "origin": "JFK"}


@pytest.mark.parametrize(
    ("changes", "late"),
    [
        ({}, True),
        ({"dep_delay": 59}, False),
        ({"dep_delay": None}, False),
        ({"from": "core/yellow"}, False),
        ({"from": "edge/green"}, False),
    ],
)
def test_who_is_answered(changes: dict[str, Any], late: bool) -> None:
    """Flights of blue that left an hour late are answered, those of yellow's own publisher never."""
    assert is_late(LATE | changes) is late


def test_answers(routers: Routers) -> None:
    """A late flight heard in yellow is one alert on its route, heard in blue and in yellow."""
    hears = [
        Ear(scene.Subscriber(f"hears-{place[-1]}", place, "alerts/#"), routers.addresses[place])
        for place in (scene.BLUE, scene.YELLOW)
    ]
    answers = Ear(
        scene.Subscriber("answers", scene.YELLOW, "late/#", answers=True),
        routers.addresses[scene.YELLOW],
    )
    flight = LATE | {"dest": "LAX"}
    client = connected("late-publisher", routers.addresses[scene.YELLOW])
    client.publish("late/x", json.dumps(flight))
    while answers.count < 1:
        answers.listen()
    for ear in hears:
        while ear.count < 1:
            ear.listen()
        assert ear.tally == {"core/yellow": {"alerts/UA/JFK/LAX": 1}}
    topic, payload = alert(flight)
    assert topic == "alerts/UA/JFK/LAX"
    assert json.loads(payload) == {"from": "core/yellow", "flight": 7, "late_min": 60}
    client.disconnect()
