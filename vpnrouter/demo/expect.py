"""What each subscriber must receive, counted from the flights alone.

Nothing of the router is used here, so that a mistake in its topic engine cannot hide itself: filters
are compared with (carrier, origin, dest), column by column.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vpnrouter.demo import scene
from vpnrouter.demo.flights import Flights, topic

Mask = npt.NDArray[np.bool_]
Tally = dict[str, Counter[str]]
"""Messages by place of origin and topic."""


def takes(pattern: str, route: tuple[str, str, str]) -> bool:
    """Whether a filter on flights/{carrier}/{origin}/{dest}, or alerts/…, takes a route, in either
    dialect.
    """
    levels = pattern.split("/")
    if levels[0] in {"#", ">"}:
        return True
    if levels[0] not in {"flights", "alerts"}:
        return False
    for at, level in enumerate(levels[1:]):
        # MQTT's # also stands for nothing; after the first level alone there is always one here.
        if level == "#":
            return True
        if at == len(route):
            return False
        if level == ">":
            return True
        if level in {"*", "+"}:
            continue
        if level.endswith("*"):
            if not route[at].startswith(level[:-1]):
                return False
        elif level != route[at]:
            return False
    return len(levels) - 1 == len(route)


def taken(flights: Flights, patterns: Sequence[str]) -> Mask:
    """For each flight, whether at least one of the filters takes it."""
    by_route = np.array(
        [any(takes(pattern, route) for pattern in patterns) for route in flights.routes], np.bool_
    )
    return by_route[flights.route_of]


def published(flights: Flights, publisher: scene.Publisher) -> Mask:
    """For each flight, whether the publisher publishes it."""
    if publisher.airport is None:
        mask = np.zeros(len(flights), np.bool_)
        mask[:: scene.LOCAL_STEP] = True
        return mask
    by_route = np.array([route[1] == publisher.airport for route in flights.routes], np.bool_)
    return by_route[flights.route_of]


def published_count(flights: Flights, place: str) -> int:
    """How many messages are published in the message VPN `place`, alerts among them."""
    alerts = int(alerted(flights).sum()) if place == scene.YELLOW else 0
    return int(published_at(flights, place).sum()) + alerts


def published_at(flights: Flights, place: str) -> Mask:
    """For each flight, whether somebody publishes it in the message VPN `place`."""
    masks = [published(flights, one) for one in scene.PUBLISHERS if one.place == place]
    together: Mask = np.logical_or.reduce(masks)
    return together


def bridged(flights: Flights) -> Mask:
    """For each flight, whether it crosses the bridge from blue to yellow."""
    return published_at(flights, scene.BLUE) & taken(flights, scene.REMOTE_SUBSCRIPTIONS)


def alerted(flights: Flights) -> Mask:
    """For each flight, whether yellow answers it with an alert."""
    return bridged(flights) & (flights.delays >= scene.LATE_MIN)


def crossings(flights: Flights) -> dict[tuple[str, str], int]:
    """How many messages cross between two places: flights one way, their alerts the other."""
    return {
        (scene.BLUE, scene.YELLOW): int(bridged(flights).sum()),
        (scene.YELLOW, scene.BLUE): int(alerted(flights).sum()),
    }


def received(flights: Flights, subscriber: scene.Subscriber) -> dict[str, Mask]:
    """For each place of origin that may reach the subscriber, the flights it must receive, or those
    whose alerts it must.
    """
    wanted = taken(flights, [subscriber.filter])
    if subscriber.hears_alerts:
        return {scene.YELLOW: alerted(flights) & wanted}
    masks = {subscriber.place: published_at(flights, subscriber.place) & wanted}
    if subscriber.place == scene.YELLOW:
        masks[scene.BLUE] = bridged(flights) & wanted
    return masks


def tally(flights: Flights, subscriber: scene.Subscriber) -> Tally:
    """What the subscriber must receive, counted by topic."""
    of = "alerts" if subscriber.hears_alerts else "flights"
    result: Tally = {}
    for place, mask in received(flights, subscriber).items():
        counts = np.bincount(flights.route_of[mask], minlength=len(flights.routes))
        result[place] = Counter(
            {
                topic(route, of): int(count)
                for route, count in zip(flights.routes, counts, strict=True)
                if count
            }
        )
    return result


def cumulative(masks: Mapping[str, Mask], length: int) -> npt.NDArray[np.int64]:
    """How many messages the first k flights mean, for k from 0 to `length`."""
    sums = np.zeros(length + 1, np.int64)
    for mask in masks.values():
        sums[1:] += np.cumsum(mask)
    return sums
