"""Who used what on which day, from the digest of usage; and what a trace row becomes in that digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.digests import counts
from vpnrouter.report.digests.condense import Condensed
from vpnrouter.report.flows.usage import not_attributed, usage
from vpnrouter.report.schema import USAGE, Rows
from vpnrouter.units import DAY_NS, SECOND_NS

Make = Callable[[str, Rows], DataFrame]

DAY: Final = 20_000 * DAY_NS
"""2024-10-04"""


def used(event: str, count: int, size: int = 10, *, day: int = 0, **more: Any) -> dict[str, Any]:
    """A row of the digest at edge/blue; each message has `size` bytes and stands for two."""
    row = {"router": "edge", "vpn": "blue", "event": event, "day_ns": DAY + day * DAY_NS}
    return {**row, "count": count, "bytes": count * size, "weight": 2.0 * count, **more}


def crossed(event: str, count: int, origin: str = "edge", **more: Any) -> dict[str, Any]:
    """The same of the bridge fares from edge/blue to core/yellow."""
    here, there = ("edge", "blue"), ("core", "yellow")
    if event == "bridge_receive":
        here, there = there, here
    names = ("router", "vpn", "peer_router", "peer_vpn")
    ends = dict(zip(names, (*here, *there), strict=True))
    origins = {"origin_router": origin, "origin_vpn": "blue"}
    return used(event, count, **{**ends, **origins, "bridge": "fares", **more})


def short(row: dict[str, Any]) -> dict[str, Any]:
    """What a row of USAGE says, without what is null or 0."""
    assert row.keys() == set(USAGE.names)
    return {name: value for name, value in row.items() if value}


@pytest.fixture
def digest(digest_of: Make) -> DataFrame:
    """Two clients, two days, and a bridge of which the sender saw more; two origins."""
    rows = [
        used("ingress", 3, client="pub"),
        used("ingress", 2, client="pub"),
        used("deliver", 4, client="pub"),
        used("ingress", 1, day=1, client="pub"),
        used("deliver", 1, 7, client="sub", weight=None),
        crossed("bridge_send", 5),
        crossed("bridge_send", 2, "north"),
        crossed("bridge_receive", 6),
        crossed("bridge_send", 9, peer_vpn=None),
    ]
    return digest_of("usage", rows)


def test_usage_of_clients_and_bridges(digest: DataFrame) -> None:
    """By day, the most bytes first; a bridge counts by the side that saw more of it, its messages by where they
    entered; an estimate is missing where a weight is.
    """
    edge = dict(zip(("from_router", "from_vpn", "to_router", "to_vpn", "bridge"),
                    ("edge", "blue", "core", "yellow", "fares"), strict=True))  # fmt: skip
    blue = {"day": "2024-10-04", "router": "edge", "vpn": "blue", "rows": 1}
    pub = {**blue, "what": "client", "client": "pub"}
    figures = {"published": 5, "published_bytes": 50, "published_estimated": 10}
    bridge = {**blue, **edge, "what": "bridge"}
    assert [short(row) for row in usage(digest)] == [
        {**pub, **figures, "delivered": 4, "delivered_bytes": 40, "delivered_estimated": 8},
        {**bridge, "crossings": 5, "crossing_bytes": 50, "crossings_estimated": 10},
        {**bridge, "router": "north", "crossings": 2, "crossing_bytes": 20}
        | {"crossings_estimated": 4},
        {**blue, "what": "client", "client": "sub", "delivered": 1, "delivered_bytes": 7},
        {**pub, "day": "2024-10-05", "published": 1, "published_bytes": 10}
        | {"published_estimated": 2},
    ]


def test_rows_beyond_the_bound_are_one(digest: DataFrame) -> None:
    """Nothing is lost of the sums, but an estimate of which a part is not known; with room there is no such row."""
    *kept, rest = usage(digest, most=2)
    assert [(row["what"], row["crossings"]) for row in kept] == [("client", 0), ("bridge", 5)]
    assert short(rest) == {
        "what": "rest",
        "rows": 3,
        "published": 1,
        "published_bytes": 10,
        "published_estimated": 2,
        "delivered": 1,
        "delivered_bytes": 7,
        "crossings": 2,
        "crossing_bytes": 20,
        "crossings_estimated": 4,
    }
    assert rest["delivered_estimated"] is None
    assert len(usage(digest, most=5)) == 5
    assert all(row["what"] != "rest" for row in usage(digest, most=5))


def test_a_note_says_what_is_not_attributed() -> None:
    """Where message VPNs had more messages than clients are known to have published."""
    rows = [{"published": 3}, {"published": 4}]
    assert not_attributed(rows, [{"ingress": 7}, {"ingress": None}]) == []
    assert not_attributed(rows, [{"ingress": 1_000}]) == [
        "usage: 993 published messages of 1,000 cannot be told by client and day"
    ]


def test_the_digest_of_usage(condensed_of: Callable[[dict[str, Rows]], Condensed]) -> None:
    """By UTC day; a message that crossed no bridge yet began where it is sent; rows of a bridge have no client."""
    row = {"vpn": "blue", "mode": "direct", "size_bytes": 10, "topic": "t"}
    late = DAY + DAY_NS - 1
    sent = {**row, "event": "bridge_send", "client": "#bridge/core/yellow/fares", "ts_ns": late}
    sent |= {"bridge": "fares", "peer_router": "core", "peer_vpn": "yellow"}
    rows = [
        {**row, "event": "ingress", "client": "pub", "ts_ns": late},
        {**row, "event": "ingress", "client": "pub", "ts_ns": late + 1},
        {**row, "event": "deliver", "client": "sub", "ts_ns": DAY, "bridge": "x/y"},
        sent,
        {**sent, "origin_router": "north", "origin_vpn": "v"},
        {**row, "event": "enqueue", "endpoint": "q", "ts_ns": DAY},
        {**row, "event": "deliver", "client": "sub", "ts_ns": DAY, "vpn": None},
        {"event": "subscribe", "vpn": "blue", "client": "sub", "ts_ns": DAY},
    ]
    names = ("event", "client", "origin_router", "origin_vpn", "bridge", "peer_router", "peer_vpn")
    found = [
        (
            *(one[name] for name in names),
            (one["day_ns"] - DAY) // SECOND_NS,
            one["count"],
            one["weight"],
            one["bytes"],
        )
        for one in counts.usage(condensed_of({"edge": rows})).collect()
    ]
    nothing = (None,) * 5
    bridge = ("fares", "core", "yellow", 0, 1, 2.0, 10)
    assert sorted(found, key=repr) == sorted(
        [
            ("ingress", "pub", *nothing, 0, 1, 2.0, 10),
            ("ingress", "pub", *nothing, 86_400, 1, 2.0, 10),
            ("deliver", "sub", *nothing, 0, 1, 2.0, 10),
            ("bridge_send", None, "edge", "blue", *bridge),
            ("bridge_send", None, "north", "v", *bridge),
        ],
        key=repr,
    )
