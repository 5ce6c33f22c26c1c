from collections import Counter
from typing import Any


def at(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row stands in the message VPN of a fault."""
    return bool(row["router"] == fault["router"] and row["vpn"] == fault["vpn"])


def ways_of(made: Any) -> dict[str, list[str]]:
    """Topic to the ways of its messages, each message VPN included."""
    ways: dict[str, list[str]] = {}
    for row in made.of("bridge_receive"):
        way = f"{row['path']}>{row['router']}/{row['vpn']}"
        ways.setdefault(row["topic"], []).append(way)
    return ways


def test_a_loop_brings_messages_back(faulty: Any) -> None:
    """Messages of the loop's topic visit a message VPN twice; those of no other topic do."""
    (loop,) = faulty.faults("loop")
    again = {
        topic
        for topic, ways in ways_of(faulty).items()
        if any(len(set(way.split(">"))) < len(way.split(">")) for way in ways)
    }
    assert len(again) == 1
    (topic,) = again
    ring = {
        name for way in ways_of(faulty)[topic] for name in way.split(">") if way.count(name) > 1
    }
    assert min(ring) == f"{loop['router']}/{loop['vpn']}"


def test_two_ways_meet(faulty: Any) -> None:
    """Messages come into the message VPN over two bridges, and the second copy is discarded."""
    (fault,) = faulty.faults("two_ways")
    discards = [row for row in faulty.of("discard") if row["reason"] == "duplicate"]
    assert discards
    assert all(at(fault, row) for row in discards)
    traces = {row["trace_id"] for row in discards}
    over = Counter(
        row["trace_id"]
        for row in faulty.of("bridge_receive")
        if at(fault, row) and row["trace_id"] in traces
    )
    assert set(over.values()) == {2}


def test_duplicates_reach_the_queue(faulty: Any) -> None:
    """The endpoint of the fault takes each message twice; no other endpoint and no other client does."""
    (fault,) = faulty.faults("duplicate")
    twice = Counter(
        (row["trace_id"], row["router"], row["vpn"], row["endpoint"])
        for row in faulty.of("enqueue")
    )
    places = {place for place, many in twice.items() if many > 1}
    assert {place[1:] for place in places} == {(fault["router"], fault["vpn"], fault["endpoint"])}
    got = Counter(
        (row["trace_id"], row["router"], row["vpn"], row["client"]) for row in faulty.of("deliver")
    )
    clients = {place[1:3] for place, many in got.items() if many > 1}
    assert clients == {(fault["router"], fault["vpn"])}
