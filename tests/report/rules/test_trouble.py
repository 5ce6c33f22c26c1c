"""vpnrouter.report.analysis: digests go through all rules together."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.analysis import find_trouble
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.flows.clocks import WHOLE_TIME
from vpnrouter.report.schema import Finding

MakeRow = Callable[..., dict[str, Any]]
Rows = dict[str, list[dict[str, Any]]]
SECOND = 1_000_000_000
WIDTH = 5 * SECOND
TIMES = {"first_ns": 0, "last_ns": 60 * SECOND}
UNMATCHED = "no-subscription-match"


def crossing(bridge: str, goal: str, sent: range, received: range) -> list[dict[str, Any]]:
    """PLACES of a bridge from a/x: 10 messages in each stretch given."""
    router, vpn = goal.split("/")
    way = {"bridge": bridge, "count": 10}
    send = {"event": "bridge_send", "router": "a", "vpn": "x", "peer_router": router}
    receive = {"event": "bridge_receive", "router": router, "vpn": vpn, "peer_router": "a"}
    rows = [{**send, "peer_vpn": vpn, **way, "start_ns": at * WIDTH} for at in sent]
    return rows + [{**receive, "peer_vpn": "x", **way, "start_ns": at * WIDTH} for at in received]


def loss(event: str, reason: str, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at b/y of what came over the bridge `way`."""
    place = {"router": "b", "vpn": "y", "endpoint": "", "bridge": "", "client": "#bridge/way"}
    what = {"event": event, "reason": reason, "crossed": True, "count": 30, "bytes": 5}
    return {**place, **what, **TIMES, **more}


def congestion(**more: Any) -> dict[str, Any]:
    """A row of LOSSES at a/x of what should have crossed the bridge `way`."""
    place = {"router": "a", "vpn": "x", "client": "#bridge/b/y/way", "crossed": False}
    return loss("discard", "transmit-congestion", **{**place, **more})


def use(topic: str | None, event: str, count: int = 9, **more: Any) -> dict[str, Any]:
    """A row of USES at a/x."""
    place = {"router": "a", "vpn": "x", "endpoint": UNMATCHED if event == "discard" else None}
    return {"topic": topic, "event": event, "count": count, "bytes": 10 * count, **place, **more}


def lost(topic: str | None, count: int = 9, **more: Any) -> list[dict[str, Any]]:
    """USES of a topic that is published and not matched."""
    return [use(topic, "ingress", count, **more), use(topic, "discard", count)]


def state(at_ns: int, event: str, topic: str, vpn: str = "x") -> dict[str, Any]:
    """A row of STATES of a client at router a."""
    place = {"router": "a", "vpn": vpn, "client": "c"}
    return {"ts_ns": at_ns, "event": event, "topic": topic, "topic_syntax": "smf", **place}


def path(text: str | None, place: str, count: int, **more: Any) -> dict[str, Any]:
    """A row of PATHS of messages that came to a place."""
    router, vpn = place.split("/")
    return {"path": text, "router": router, "vpn": vpn, "count": count, "bytes": 9} | TIMES | more


def load(endpoint: str, partition: int | None, enqueued: int) -> dict[str, Any]:
    """A row of ENDPOINTS at b/y."""
    place = {"router": "b", "vpn": "y", "endpoint": endpoint}
    taken = {"enqueued": enqueued, "acknowledged": enqueued}
    return {**place, "partition": partition, **taken, "bytes": enqueued}


@pytest.fixture
def run(digest_of: Callable[..., DataFrame]) -> Callable[..., list[Finding]]:
    """Gives the findings in digests, rows of EDGES, LINKS and CLOCKS."""

    def found(rows: Rows, edges: list[Any], links: list[Any], clocks: list[Any]) -> list[Finding]:
        digests = {name: digest_of(name, rows.get(name, [])) for name in DIGESTS}
        return find_trouble(digests, edges, links, clocks, WIDTH)

    return found


def test_a_sick_mesh_has_a_finding_for_each_trouble(
    run: Callable[..., list[Finding]], bridge_row: MakeRow, link_row: MakeRow, double_row: MakeRow
) -> None:
    """Rows of one cause add up to one finding at its place; rows beside them that mean no trouble change nothing."""
    ways = [path("c/z>d/w", "c/z", 4), path("c/z>d/w", "c/z", 3, bridge="second")]
    # The same name on another router, and paths that are not known.
    ways += [path("c/z", "d/z", 100), path("a/x", "b/y", 100), path(None, "b/y", 100)]
    doubles = [
        double_row("deliver", "phone"),
        double_row("deliver", "phone", messages=1, copies=9, first_ns=1),
        double_row("two_ways", "a/x:way", other="c/z:way"),
    ]
    uses = [row for topic in ("gone", "late", "left", "back", "other") for row in lost(topic)]
    uses += [*lost("rare", 2), *lost("sampled", 1, weight=100.0), *lost(None)]
    for event in ("deliver", "enqueue", "bridge_send"):
        uses += [*lost(event), use(event, event, 1)]
    uses += [use("full", "ingress"), use("full", "discard", endpoint=None)]
    uses += [use("brought", "bridge_receive"), use("brought", "discard")]
    # A topic that is taken in another message VPN is another topic.
    uses += [use("gone", "ingress", vpn="y"), use("gone", "deliver", vpn="y")]
    states = [state(1, "subscribe", "late/>"), state(2, "subscribe", "late")]
    states += [state(1, "subscribe", "left"), state(2, "unsubscribe", "left")]
    states += [state(1, "unsubscribe", "back"), state(2, "subscribe", "back")]
    states += [state(1, "subscribe", "other", "y"), state(1, "link_up", "gone")]
    full = "503 Spool Over Quota"
    at_g = {"router": "g", "vpn": "v"}
    losses = [
        loss("reject", full, endpoint="orders"),
        loss("reject", full, endpoint="orders", count=7, first_ns=61 * SECOND, last_ns=70 * SECOND),
        loss("reject", full, endpoint="orders", crossed=False),
        loss("reject", "rejected", endpoint="orders"),
        loss("discard", "ttl-exceeded"),
        loss("discard", UNMATCHED),
        loss("expire", "max-ttl-expired"),
        loss("discard", "loop-detected", **at_g, count=2, example_path="g/v>a/x"),
        loss("discard", "loop-detected", **at_g, count=1, example_path="a/x>g/v"),
        loss("discard", "loop-detected", **at_g, count=50, example_path="a/x"),
        loss("discard", "duplicate", **at_g),
        congestion(),
        congestion(client="phone", count=500),
    ]
    # One bridge stalls; others carry all, end at a router that does not trace, or at one whose clock is ahead.
    places = crossing("way", "b/y", range(12), range(6))
    places += [{**places[11], "count": 1, "mode": "direct"}]
    places += crossing("agreed", "b/y", range(12), range(1, 13))
    places += crossing("untold", "f/v", range(12), range(0))
    places += crossing("tilted", "e/v", range(12), range(8, 20))
    endpoints = [load("q", 0, 10), load("q", 3, 150), load("q", 3, 160), load("plain", None, 500)]
    endpoints += [load("one", 0, 500), load("idle", 0, 2), load("idle", 1, 37)]
    clocks = [
        {"router": name, "reference": "a", "offset_ns": offset, "error_ns": 1_000, **WHOLE_TIME}
        for name, offset in (("b", 3_000_000), ("e", 41 * SECOND))
    ]
    goals = {"way": "b/y", "agreed": "b/y", "untold": "f/v", "tilted": "e/v"}
    found = run(
        {"paths": ways, "doubles": doubles, "uses": uses, "states": states, "losses": losses}
        | {"places": places, "endpoints": endpoints},
        [bridge_row(goal=goal, bridge=name, sent=120) for name, goal in goals.items()]
        + [bridge_row("d/w", "c/z", "other")],
        [
            link_row(up, up + 90, start="d/w", goal="c/z", bridge="other")
            for up in range(0, 500, 100)
        ],
        clocks,
    )
    assert [(one.kind, one.router, one.messages, one.value) for one in found] == [
        ("flapping_link", "c", None, 4.0),
        ("full_queue", "b", 30, None),
        ("head_of_line", "b", 37, 70.0),
        ("hot_bridge", "b", 30, 0.2),
        ("loop", "c", 7, None),
        ("stalled_bridge", "b", 61, 30.0),
        ("black_hole", "a", 9, 9.0),
        ("black_hole", "a", 9, 9.0),
        ("black_hole", "a", 9, 9.0),
        ("black_hole", "a", 1, 100.0),
        ("clock_skew", "e", None, 40.997),
        ("duplicate", "b", 6, 15.0),
        ("skewed_partition", "b", 320, 3.875),
        ("two_ways", "b", 5, 6.0),
        ("loop_stopped", "b", 30, None),
        ("loop_stopped", "g", 3, None),
    ]
    holes = [one.topic for one in found if one.kind == "black_hole"]
    assert holes == ["gone", "left", "other", "sampled"]
    assert all(one.detail.endswith(".") for one in found)


def test_a_healthy_mesh_has_no_trouble(
    run: Callable[..., list[Finding]], bridge_row: MakeRow, link_row: MakeRow, double_row: MakeRow
) -> None:
    """A restart, a redundant bridge, an early publisher and a full buffer are normal."""
    rows: Rows = {
        "paths": [path("a/x", "b/y", 90)],
        "doubles": [double_row("two_ways", "a/x:way", other="c/z:way")],
        "uses": [*lost("early", 4), use("early", "bridge_send", 5)],
        "losses": [
            loss("discard", "duplicate", count=6),
            loss("discard", "loop-detected", example_path="c/z>a/x"),
            loss("reject", "503 Spool Over Quota", endpoint="orders", count=2),
            congestion(count=5),
        ],
        "places": crossing("way", "b/y", range(12), range(1, 12)),
        "endpoints": [load("q", at, 100 + at) for at in range(4)],
    }
    links = [link_row(0, 30), link_row(40, 60)]
    clock = {
        "router": "b",
        "reference": "a",
        "offset_ns": 3_000_000,
        "error_ns": 1_000,
        **WHOLE_TIME,
    }
    found = run(rows, [bridge_row(sent=120, messages=120)], links, [clock])
    assert [(one.kind, one.severity) for one in found] == [("two_ways", "info")]
