"""What must arrive, against the slowest way to count it."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.scene import Flights

ALL = {one.name: one for one in scene.SUBSCRIBERS}


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


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if not one.hears_alerts])
def test_received(name: str, flights: Flights) -> None:
    """A subscriber's tally is what one gets by looking at one flight after the other."""
    subscriber = ALL[name]
    wants = as_regex(subscriber.filter)
    crosses = [as_regex(text) for text in scene.REMOTE_SUBSCRIPTIONS]
    brute: dict[str, Counter[str]] = {subscriber.place: Counter()}
    if subscriber.place == scene.YELLOW:
        brute[scene.BLUE] = Counter()
    for at, topic in enumerate(topics_one_by_one(flights)):
        if not wants(topic):
            continue
        if subscriber.place == scene.BLUE or at % scene.LOCAL_STEP == 0:
            brute[subscriber.place][topic] += 1
        if subscriber.place == scene.YELLOW and any(takes(topic) for takes in crosses):
            brute[scene.BLUE][topic] += 1
    assert scene.tally(flights, subscriber) == brute
    sums = scene.cumulative(scene.received(flights, subscriber), len(flights))
    assert sums[0] == 0
    assert sums[-1] == sum(counts.total() for counts in brute.values()) > 0
    assert (sums[1:] >= sums[:-1]).all()


@pytest.mark.parametrize("name", [one.name for one in scene.SUBSCRIBERS if one.hears_alerts])
def test_alerts(name: str, flights: Flights) -> None:
    """Each flight that crosses and is late by an hour is due once in blue and in yellow as an alert."""
    crosses = [as_regex(text) for text in scene.REMOTE_SUBSCRIPTIONS]
    brute: Counter[str] = Counter()
    delays = flights.table["dep_delay"].to_pylist()
    for topic, delay in zip(topics_one_by_one(flights), delays, strict=True):
        if delay is not None and delay >= 60 and any(takes(topic) for takes in crosses):
            brute[topic.replace("flights/", "alerts/")] += 1
    assert scene.tally(flights, ALL[name]) == {scene.YELLOW: brute}
    assert 0 < brute.total() == scene.crossings(flights)[scene.YELLOW, scene.BLUE]


def test_published_count(flights: Flights) -> None:
    """In yellow alerts are published besides flights, elsewhere flights only."""
    for place in scene.PLACES:
        besides = int(scene.alerted(flights).sum()) if place == scene.YELLOW else 0
        sent = int(scene.published_at(flights, place).sum())
        assert scene.published_count(flights, place) == sent + besides


@pytest.mark.parametrize("pattern", scene.REMOTE_SUBSCRIPTIONS)
def test_each_remote_subscription_matters(pattern: str, flights: Flights) -> None:
    """Without any one of the remote subscriptions less would cross, so that its lack is seen."""
    others = [text for text in scene.REMOTE_SUBSCRIPTIONS if text != pattern]
    assert scene.taken(flights, others).sum() < scene.bridged(flights).sum() < len(flights)


def test_airports_share_the_flights(flights: Flights) -> None:
    """Each flight is published in blue by exactly one airport."""
    masks = [scene.published(flights, one) for one in scene.PUBLISHERS if one.place == scene.BLUE]
    assert sum(int(mask.sum()) for mask in masks) == len(flights)
    assert scene.published_at(flights, scene.BLUE).all()


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
    assert scene.takes(pattern, ("UA", "JFK", "LAX")) is taken
    assert (as_regex(pattern)("flights/UA/JFK/LAX") is not None) is taken
