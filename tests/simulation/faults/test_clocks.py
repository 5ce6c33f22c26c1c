from typing import Any

import pytest


def test_one_clock_is_wrong(faulty: Any) -> None:
    """The router's clock is off by what the fault says; all others are right within a millisecond."""
    (fault,) = faulty.faults("clock_skew")
    clocks = dict(faulty.truth["clocks"])
    skew = clocks.pop(fault["router"])
    assert skew / 1e9 == pytest.approx(fault["value"], abs=1e-6)
    assert 0.05 <= abs(fault["value"]) <= 5
    assert max(abs(offset) for offset in clocks.values()) < 1_000_000


def test_the_skew_shifts_all_rows_of_the_router(faulty: Any) -> None:
    """What crosses to the router seems to take the skew longer, and what comes from it as much less; what
    began there has its origin time by that clock.
    """
    (fault,) = faulty.faults("clock_skew")
    skew = faulty.truth["clocks"][fault["router"]]
    sent = {
        (row["trace_id"], row["peer_router"], row["peer_vpn"], row["bridge"]): row["ts_ns"]
        for row in faulty.of("bridge_send")
    }
    seen = set()
    for row in faulty.of("bridge_receive"):
        key = (row["trace_id"], row["router"], row["vpn"], row["bridge"])
        towards = row["router"] == fault["router"]
        if towards == (row["peer_router"] == fault["router"]):
            continue
        delay = row["ts_ns"] - sent[key] - (skew if towards else -skew)
        assert 0 < delay < 1_000_000_000
        seen.add(towards)
    assert seen == {True, False}
    ingress = [row for row in faulty.of("ingress") if row["router"] == fault["router"]]
    assert all(row["origin_ts_ns"] == row["ts_ns"] for row in ingress)
