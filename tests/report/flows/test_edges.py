"""vpnrouter.report.flows.tables: bridges as directed edges."""

from typing import Any

from vpnrouter.report.flows.tables import Latency, Seen, Span, edges, seen_edges
from vpnrouter.report.schema import EDGES

FARES = ("edge", "blue", "core", "yellow", "fares")
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}


def total(event: str, count: int, *, remote: bool = False, **more: Any) -> dict[str, Any]:
    """A row of totals about bridge "fares"."""
    ends = AT_EDGE if remote else AT_CORE
    figures = {"direct": count - 1, "weight": 2.0 * count, "bytes": 64 * count, "peak": 3}
    times = {"stretches": 2, "first_ns": 10, "last_ns": 20}
    said = {"event": event, "bridge": "fares", "remote": remote, "count": count}
    return {**ends, **said, **figures, **times, **more}


def sent(count: int, **more: Any) -> dict[str, Any]:
    """What the remote end sent."""
    return total("bridge_send", count, remote=True, **more)


def found(*totals: dict[str, Any]) -> dict[str, Any]:
    """The one edge of these totals."""
    (row,) = edges(seen_edges(totals), {}, {}, {}, {})
    return row


def test_both_sides_make_one_edge() -> None:
    """Rows of sender and receiver give one edge with exact counts, bytes, modes and percentiles."""
    seen = seen_edges([sent(99, first_ns=5), total("bridge_receive", 100, last_ns=30)])
    spans = {FARES: [Span(1, 4), Span(6)]}
    times = {FARES: Latency(80, 50, 95, 99)}
    rows = edges(seen, times, spans, {"core": 40, "edge": 30}, {"core": "edge", "edge": "edge"})
    assert [list(row) for row in rows] == [EDGES.names]
    # fmt: off
    assert tuple(rows[0].values()) == (
        *FARES,
        100, 200, 6_400, 99, 100, 99, 1, 3,
        80, 50, 95, 99, True,
        0, 0, 37, 5, 30,
        None, None, None,
    )
    # fmt: on


def test_the_side_that_saw_more_counts() -> None:
    """Messages that were sent twice, or lost, count as the sender saw them."""
    row = found(sent(3, peak=2, weight=None), total("bridge_receive", 1))
    assert (row["messages"], row["sent"], row["received"], row["bytes"]) == (3, 3, 1, 192)
    assert (row["messages_estimated"], row["direct"], row["peak_messages"]) == (None, 2, 2)
    assert found(sent(1, weight=None), total("bridge_receive", 1))["messages_estimated"] == 2


def test_one_side_is_enough() -> None:
    """With one router's traces alone the edge is there, with what that side can know."""
    for row, figures in (
        (found(sent(5)), (5, 5, 0)),
        (found(total("bridge_receive", 5)), (5, 0, 5)),
    ):
        assert tuple(row[name] for name in EDGES.names[:5]) == FARES
        assert (row["messages"], row["sent"], row["received"]) == figures
        assert (row["latency_samples"], row["latency_p50_ns"]) == (0, None)
        assert row["latency_corrected"] is False


def test_directions_and_names_are_edges_of_their_own() -> None:
    """The way back, and a second bridge between the same VPNs, are separate edges."""
    rows = [
        total("bridge_receive", 1, bridge="more"),
        total("bridge_receive", 1),
        {**total("bridge_receive", 1, bridge="back"), **AT_EDGE},
        total("bridge_receive", 1, bridge=None),
    ]
    assert list(seen_edges(rows)) == [
        ("core", "yellow", "edge", "blue", "back"),
        (*FARES[:4], ""),
        FARES,
        (*FARES[:4], "more"),
    ]


def test_links_are_counted_once_for_both_ends() -> None:
    """Both ends write down a link's ups and downs; they are the same edge and count once."""
    local = [total("link_up", 2), total("link_down", 1)]
    remote = [total("link_up", 2, remote=True), total("link_down", 1, remote=True)]
    for rows in (local, remote, local + remote, remote + local[:1]):
        row = found(*rows)
        assert (row["from_router"], row["to_router"], row["bridge"]) == ("edge", "core", "fares")
        assert (row["link_ups"], row["link_downs"], row["messages"]) == (2, 1, 0)
        assert row["messages_estimated"] == 0


def test_time_up_ends_when_a_router_was_last_seen() -> None:
    """Null without a row about the link; a far end that is not traced has no say."""
    seen = {FARES: Seen()}

    def up(spans: list[Span], last_seen: dict[str, int]) -> int | None:
        (row,) = edges(seen, {}, {FARES: spans} if spans else {}, last_seen, {})
        result: int | None = row["up_ns"]
        return result

    assert up([], {"core": 9}) is None
    assert up([Span(4)], {"core": 9}) == 5
    assert up([Span(4)], {"core": 9, "edge": 11}) == 7
    assert up([Span(4, 6)], {}) == 2
    assert up([Span(4)], {}) == 0


def test_clocks_of_one_group_are_corrected() -> None:
    """Across groups nothing is; within one router nothing needs to be."""
    own = ("core", "blue", "core", "yellow", "own")
    seen = {own: Seen(), FARES: Seen()}

    def corrected(references: dict[str, str]) -> list[bool]:
        return [row["latency_corrected"] for row in edges(seen, {}, {}, {}, references)]

    assert corrected({}) == [True, False]
    assert corrected({"core": "a", "edge": "b"}) == [True, False]
    assert corrected({"core": "a", "edge": "a"}) == [True, True]


def test_rows_without_an_end_are_no_edge() -> None:
    """A row that does not say both ends, or concerns no crossing, makes no edge."""
    rows = [
        total("bridge_receive", 1, peer_vpn=None),
        total("link_down", 1, vpn=None),
        total("discard", 1),
    ]
    assert seen_edges(rows) == {}
