"""Keeps the rows of a router between two looks: rates from differences, and peers of bridges.

Pure: times are arguments, in seconds of a clock that does not jump.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, final

from vpnrouter.bridges.link_registry import client_name_of
from vpnrouter.limits import TUI_HISTORIES, TUI_HISTORY
from vpnrouter.management.answers.rows import Row


def other_end(row: Row, here: str, bridges: Mapping[str, Sequence[Row]]) -> Row | None:
    """The other end of the bridge `row` of the router named `here`; `bridges` are by router name.

    That is the remote's own bridge on the same connection, or what the remote shows of ours: a bridge of
    another router stands there under the name of its client. None while it is not connected, or its remote
    router is none of these.
    """
    msg_vpn = row["remoteMsgVpnName"]
    if not msg_vpn or not here:
        return None
    # Of two bridges of one name, ours may be shown there only as the client that it is.
    names = (
        row["outboundBridgeName"],
        client_name_of(here, row["msgVpnName"], row["bridgeName"]),
    )
    for other in bridges.get(row["remoteRouterName"], ()):
        if (
            other["msgVpnName"] == msg_vpn
            and other["remoteMsgVpnName"] == row["msgVpnName"]
            and other["bridgeName"] in names
            and other["remoteRouterName"] in {here, ""}
        ):
            return other
    return None


def once(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, Row | None]]:
    """Each bridge of several routers once, with its other end; `rows` are router names with their bridges.

    Of two ends that are both own bridges the first is the one, else the bridge that was configured.
    """
    by_router: dict[str, list[Row]] = {}
    for router, row in rows:
        by_router.setdefault(router, []).append(row)
    seconds: set[tuple[str, str, str]] = set()
    found: list[tuple[str, Row, Row | None]] = []
    # Those under the name of a client come last: whose bridge it is may be among the others.
    for router, row in sorted(rows, key=lambda one: is_of_a_peer(one[1])):
        if (router, row["msgVpnName"], row["bridgeName"]) in seconds:
            continue
        other = other_end(row, router, by_router)
        if other is not None:
            place = (row["remoteRouterName"], other["msgVpnName"], other["bridgeName"])
            seconds.add(place)
        found.append((router, row, other))
    return found


def is_of_a_peer(row: Row) -> bool:
    """Whether this is what another router's bridge is here, and none of the router's own configuration."""
    return str(row["bridgeName"]).startswith("#bridge/")


UNWANTED: Final = "unwanted"
"""What a bridge brought of guaranteed messages and nobody wanted."""

DEAD_LETTERS: Final = "dead letters"


def losses_of(link: Row) -> dict[str, int]:
    """What a link of a connector did not bring to its target, by reason, dead letters among them."""
    return {**link["discards"], DEAD_LETTERS: link["deadLetterMsgCount"]}


STEP_S: Final = 0.9
"""Seconds between looks that make a rate: routers bring some counters up to date once a second, and growth
over less would be nothing in one look and twice as much in the next."""


@final
class Meter:
    """Growth of one counter. `rate` is a second over the last two looks, `history` the ones before it."""

    __slots__ = ("_at", "_count", "history", "rate")

    def __init__(self) -> None:
        self.rate = 0.0
        self.history: deque[float] = deque(maxlen=TUI_HISTORY)
        self._count = 0
        self._at: float | None = None

    def measure(self, now: float, count: int) -> float:
        """The counter stands at `count`; returns the rate.

        A counter that fell began anew, with its router or because it was cleared: it grew by what it has.
        """
        if self._at is not None:
            passed = now - self._at
            if passed < STEP_S:
                return self.rate
            grown = count - self._count if count >= self._count else count
            self.rate = grown / passed
            self.history.append(self.rate)
        self._at = now
        self._count = count
        return self.rate

    def set_rate(self, now: float, rate: float) -> None:
        """Note the `rate` (a second) that the router measured, at `now` (seconds)."""
        self.rate = rate
        if self._at is None or now - self._at >= STEP_S:
            self.history.append(rate)
            self._at = now

    def pause(self) -> None:
        """Set the rate to 0 when nothing was seen for a while; what grew meanwhile is left out."""
        self._at = None
        self.rate = 0.0


@final
class Meters:
    """Meters by what they measure; those not looked at for longest are forgotten."""

    def __init__(self, most: int = TUI_HISTORIES) -> None:
        self._most = most
        self._meters: OrderedDict[Hashable, Meter] = OrderedDict()

    def __len__(self) -> int:
        return len(self._meters)

    def measure(self, key: Hashable, now: float, count: int) -> float:
        """Note the `count` of the counter `key` at `now` (seconds); returns its rate a second."""
        return self._meter(key).measure(now, count)

    def set_rate(self, key: Hashable, now: float, rate: float) -> None:
        """Note the `rate` of `key` (a second) that the router measured, at `now` (seconds)."""
        self._meter(key).set_rate(now, rate)

    def _meter(self, key: Hashable) -> Meter:
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = Meter()
            if len(self._meters) > self._most:
                self._meters.popitem(last=False)
        else:
            self._meters.move_to_end(key)
        return meter

    def rate(self, key: Hashable) -> float:
        """Growth a second, 0 for what was never looked at."""
        meter = self._meters.get(key)
        return 0.0 if meter is None else meter.rate

    def history(self, key: Hashable) -> Sequence[float]:
        """Rates, the oldest first."""
        meter = self._meters.get(key)
        return () if meter is None else tuple(meter.history)

    def pause(self) -> None:
        """Set all rates to 0; what grows until the next look is left out of them."""
        for meter in self._meters.values():
            meter.pause()


@final
class RouterState:
    """One router as it was last seen. `name` is its own name, "" while unknown.

    `role` is what its API lets us do: `admin`, `read-only`, or "" while unknown.
    """

    def __init__(self) -> None:
        self.name = ""
        self.role = ""
        self.user = ""
        self.meters = Meters()
        self.certificates: dict[str, int] = {}
        """Until when the certificates of listeners are valid, in seconds since 1970, by listener."""
        self.msg_vpns: list[Row] = []
        self.bridges: list[Row] = []
        self.connectors: list[Row] = []
        self.objects: dict[str, list[Row]] = {}
        """Objects of kinds that have no screen of their own, by the part of the path that lists them."""
        self.queues: list[Row] = []
        """Queues with messages in them."""

    def note_router(self, row: Row) -> None:
        """Note what the router reports about itself and about the user."""
        self.name = str(row.get("routerName", ""))
        self.role = str(row.get("role", ""))
        self.user = str(row.get("user", ""))
        self.certificates = row.get("certificateExpiries", {})

    def note_msg_vpns(self, now: float, rows: list[Row]) -> None:
        """Note the rows of all message VPNs, seen at `now` (seconds)."""
        self.msg_vpns = rows
        for row in rows:
            name = row["msgVpnName"]
            for rate in ("rxMsgRate", "txMsgRate"):
                self.meters.set_rate(("vpn", name, rate), now, row[rate])
            for reason, total in row.get("discarded", {}).items():
                self.meters.measure(("vpn", name, "discarded", reason), now, total)

    def note_bridges(self, now: float, rows: list[Row]) -> None:
        """Note the rows of all bridges, seen at `now` (seconds)."""
        self.bridges = rows
        for row in rows:
            key = (row["msgVpnName"], row["bridgeName"])
            unwanted = row.get("guaranteedUnmatchedMsgCount", 0)
            self.meters.measure(("bridge", *key, UNWANTED), now, unwanted)
            for way in ("Rx", "Tx"):
                self.meters.set_rate(("bridge", *key, way), now, row[f"{way.lower()}MsgRate"])
                for reason, total in row[f"discarded{way}"].items():
                    self.meters.measure(("bridge", *key, way, reason), now, total)

    def note_connectors(self, now: float, rows: list[Row]) -> None:
        """Note the rows of all connectors, seen at `now` (seconds)."""
        self.connectors = rows
        for row in rows:
            key = ("connector", row["msgVpnName"], row["connectorName"])
            for way in ("Rx", "Tx"):
                self.meters.set_rate((*key, way), now, row[f"{way.lower()}MsgRate"])
            for link in row["links"]:
                name = link["linkName"]
                self.meters.set_rate((*key, "link", name), now, link["msgRate"])
                for reason, total in losses_of(link).items():
                    self.meters.measure((*key, "link", name, reason), now, total)

    def note_queues(self, now: float, rows: list[Row]) -> None:
        """Note the rows of the queues with messages in them, seen at `now` (seconds)."""
        self.queues = rows
        for row in rows:
            self.note_queue(now, row)

    def note_queue(self, now: float, row: Row) -> None:
        """Note the counters of one queue, seen at `now` (seconds)."""
        key = (row["msgVpnName"], row["queueName"])
        self.meters.measure(("queue", *key, "in"), now, row["spooledMsgCount"])
        taken_out = row["ackedMsgCount"] + row["movedMsgCount"] + row["deletedMsgCount"]
        self.meters.measure(("queue", *key, "out"), now, taken_out + sum(row["discarded"].values()))
        for what in ("discarded", "refused"):
            self.meters.measure(("queue", *key, what), now, sum(row[what].values()))

    def note_client(self, now: float, row: Row) -> None:
        """Note the counters of one client, seen at `now` (seconds)."""
        key = (row["msgVpnName"], row["clientName"])
        self.meters.measure(("client", *key, "rx"), now, row["rxMsgCount"])
        self.meters.measure(("client", *key, "tx"), now, row["txMsgCount"])

    def may_change(self) -> bool:
        """Whether actions may be tried: False only if the router said that this user may not change anything."""
        return self.role != "read-only"
