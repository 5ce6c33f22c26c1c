"""Who takes part: message VPNs, publishers, subscribers, and what the bridges attract."""

from dataclasses import dataclass
from typing import Final

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
    def hears_alerts(self) -> bool:
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
    """The router of a place."""
    return place.partition("/")[0]


def vpn_of(place: str) -> str:
    """The message VPN of a place."""
    return place.partition("/")[2]
