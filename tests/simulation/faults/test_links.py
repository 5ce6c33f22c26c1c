from typing import Any

import pytest

START_NS = 1_772_352_000 * 10**9
SECOND_NS = 10**9


def is_of(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row at the local end tells of the bridge of a fault."""
    names = ("router", "vpn", "peer_router", "peer_vpn", "bridge")
    return all(row[name] == fault[name] for name in names)


def is_sent(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row at the remote end tells of the bridge of a fault."""
    pairs = (("router", "peer_router"), ("vpn", "peer_vpn"), ("peer_router", "router"))
    return row["bridge"] == fault["bridge"] and all(row[a] == fault[b] for a, b in pairs)


def test_a_flapping_link_carries_nothing_while_down(faulty: Any) -> None:
    """Ups and downs take turns at both ends, with reasons, and no message comes or goes between."""
    faults = faulty.faults("flapping_link")
    assert faults
    for fault in faults:
        rows = [row for row in faulty.rows if is_of(fault, row)]
        rows.sort(key=lambda row: row["ts_ns"])
        links = [row["event"] for row in rows if row["event"].startswith("link_")]
        assert links == ["link_up", "link_down"] * (fault["value"] + 1)
        up = False
        for row in rows:
            if row["event"].startswith("link_"):
                up = row["event"] == "link_up"
            else:
                assert up
        far = [row for row in faulty.rows if is_sent(fault, row) and row["event"] == "link_down"]
        assert len(far) == fault["value"] + 1
        assert len({row["reason"] for row in far}) > 1
    flapping = {(fault["router"], fault["vpn"], fault["bridge"]) for fault in faults}
    for row in faulty.of("link_down"):
        if row["reason"] != "503 Service Unavailable" and row["client"] is None:
            assert (row["router"], row["vpn"], row["bridge"]) in flapping


def test_a_stalled_bridge_loses_all_for_a_while(faulty: Any) -> None:
    """In the span there are sends and no receives; outside each send has arrived."""
    (fault,) = faulty.faults("stalled_bridge")
    clocks = faulty.truth["clocks"]

    def seconds(row: dict[str, Any]) -> float:
        return float(row["ts_ns"] - START_NS - clocks[row["router"]]) / SECOND_NS

    received = [row for row in faulty.of("bridge_receive") if is_of(fault, row)]
    sent = [row for row in faulty.of("bridge_send") if is_sent(fault, row)]
    begin, end = fault["begin_s"], fault["end_s"]
    inside = [row for row in sent if begin + 0.1 < seconds(row) < end - 0.1]
    assert len(inside) > 3
    assert not [row for row in received if begin + 0.5 < seconds(row) < end]
    lost = {row["trace_id"] for row in sent} - {row["trace_id"] for row in received}
    assert {row["trace_id"] for row in inside} <= lost
    assert len(lost) <= len(inside) + 2


def test_a_hot_bridge_discards_and_is_late(faulty: Any) -> None:
    """Its sending end discards for congestion, nobody else does; late messages take longer than early."""
    (fault,) = faulty.faults("hot_bridge")
    client = f"#bridge/{fault['router']}/{fault['vpn']}/{fault['bridge']}"
    discards = [row for row in faulty.of("discard") if row["reason"] == "transmit-congestion"]
    assert discards
    assert {(row["router"], row["vpn"], row["client"]) for row in discards} == {
        (fault["peer_router"], fault["peer_vpn"], client)
    }
    topic = discards[0]["topic"]
    taken = [row for row in faulty.of("bridge_receive") if row["topic"] == topic]
    share = len(discards) / (len(discards) + len(taken))
    assert share == pytest.approx(fault["value"], abs=0.02)
    taken.sort(key=lambda row: row["origin_ts_ns"])
    ages = [row["ts_ns"] - row["origin_ts_ns"] for row in taken]
    assert ages[-1] - ages[0] > 100_000_000


def test_an_endpoint_refuses_what_a_bridge_brings(faulty: Any) -> None:
    """All rejects are at the endpoint of the fault, within its span; outside it takes the messages."""
    (fault,) = faulty.faults("head_of_line")
    rejects = faulty.of("reject")
    assert rejects
    assert {(row["router"], row["vpn"], row["endpoint"]) for row in rejects} == {
        (fault["router"], fault["vpn"], fault["endpoint"])
    }
    assert all(row["bridge"] and row["client"] == f"#bridge/{row['bridge']}" for row in rejects)
    offset = faulty.truth["clocks"][fault["router"]]
    times = [(row["ts_ns"] - START_NS - offset) / SECOND_NS for row in rejects]
    assert fault["begin_s"] <= min(times) <= max(times) <= fault["end_s"] + 1
    taken = [row for row in faulty.of("enqueue") if row["endpoint"] == fault["endpoint"]]
    assert taken
    refused = {row["trace_id"] for row in rejects}
    assert not refused & {row["trace_id"] for row in taken}
