"""What a simulation writes, looked at from outside: rows, files, truth."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.inventory import take_inventory
from vpnrouter.simulation.simulate import Options, all_faults, simulate
from vpnrouter.trace.schema import (
    FILE_COLUMNS,
    ROUTER_KEY,
    SAMPLE_KEY,
    VERSION_KEY,
)

SECOND_NS = 10**9


def edge_of(row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """The ends of a send or receive row's bridge, remote end first, and its name."""
    here, there = (row["router"], row["vpn"]), (row["peer_router"], row["peer_vpn"])
    if row["event"] == "bridge_receive":
        here, there = there, here
    return (*here, *there, row["bridge"])


def test_rows_are_as_many_as_asked_for_and_as_the_truth_says(calm: Any, faulty: Any) -> None:
    """The truth's counts, which come from the plan, are those of the rows."""
    for made, asked in ((calm, 6_000), (faulty, 25_000)):
        counts = made.truth["counts"]
        assert counts["rows"] == len(made.rows)
        assert asked - 50 <= len(made.rows) <= asked
        assert counts["events"] == Counter(row["event"] for row in made.rows)
        assert counts["messages"] == len(made.of("ingress"))
        assert counts["vpns"] == len({(row["router"], row["vpn"]) for row in made.rows})
        topics = {row["topic"] for row in made.rows if row["trace_id"] is not None}
        assert counts["topics"] == len(topics)


def test_each_bridge_carried_what_the_truth_says(calm: Any, faulty: Any) -> None:
    """Sends and receives of each edge are those of the truth; without faults every send arrives."""
    for made in (calm, faulty):
        sent = Counter(edge_of(row) for row in made.of("bridge_send"))
        received = Counter(edge_of(row) for row in made.of("bridge_receive"))
        names = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
        edges = {tuple(edge[name] for name in names): edge for edge in made.truth["edges"]}
        assert {edge: one["sent"] for edge, one in edges.items()} == {
            edge: sent[edge] for edge in edges
        }
        assert {edge: one["received"] for edge, one in edges.items()} == {
            edge: received[edge] for edge in edges
        }
        assert sent.keys() | received.keys() <= edges.keys()
    assert all(edge["sent"] == edge["received"] > 0 for edge in calm.truth["edges"])


def test_every_arrival_has_its_departure(calm: Any, faulty: Any) -> None:
    """Each bridge_receive has a bridge_send of the same message over the same bridge."""
    for made in (calm, faulty):
        sent = Counter((row["trace_id"], edge_of(row)) for row in made.of("bridge_send"))
        received = Counter((row["trace_id"], edge_of(row)) for row in made.of("bridge_receive"))
        assert not received - sent


def test_paths_follow_the_edges(faulty: Any) -> None:
    """A path's message VPNs, and the one where the row stands, are joined by bridges; hops count them."""
    edges = {
        (f"{one['from_router']}/{one['from_vpn']}", f"{one['to_router']}/{one['to_vpn']}")
        for one in faulty.truth["edges"]
    }
    for row in faulty.of("bridge_receive"):
        way = [*row["path"].split(">"), f"{row['router']}/{row['vpn']}"]
        assert len(way) == row["hops"] + 1
        assert all(pair in edges for pair in pairwise(way))
        assert way[0] == f"{row['origin_router']}/{row['origin_vpn']}"


def test_rows_of_a_message_agree(calm: Any) -> None:
    """Topic, message id, size and time of origin are the same in all rows of a trace; ids differ."""
    of_trace = defaultdict(set)
    for row in calm.rows:
        if row["trace_id"] is not None:
            names = ("message_id", "topic", "size_bytes", "origin_ts_ns", "mode")
            of_trace[row["trace_id"]].add(tuple(row[name] for name in names))
    assert all(len(found) == 1 for found in of_trace.values())
    ids = {next(iter(found))[0] for found in of_trace.values()}
    assert len(ids) == len(of_trace) == calm.truth["counts"]["messages"]
    assert all(len(trace) == 32 for trace in of_trace)


def test_times_go_forward(calm: Any) -> None:
    """A message is received after it was sent, by clocks that are corrected, and since_ingress_ns is the
    time since it came into the router.
    """
    clocks = calm.truth["clocks"]
    sent = {(row["trace_id"], edge_of(row)): row["ts_ns"] for row in calm.of("bridge_send")}
    came = {
        (row["trace_id"], row["router"], row["vpn"]): row["ts_ns"]
        for row in (*calm.of("ingress"), *calm.of("bridge_receive"))
    }
    for row in calm.of("bridge_receive"):
        edge = edge_of(row)
        late = row["ts_ns"] - clocks[edge[2]] - (sent[row["trace_id"], edge] - clocks[edge[0]])
        assert 100_000 <= late < SECOND_NS
    for row in calm.of("deliver"):
        since = row["ts_ns"] - came[row["trace_id"], row["router"], row["vpn"]]
        assert row["since_ingress_ns"] == since > 0


def test_a_calm_mesh_loses_nothing(calm: Any) -> None:
    """Without faults nothing is discarded or rejected, every message is delivered, nobody gets one twice,
    nobody waits in vain, and no message comes twice into a message VPN.
    """
    assert calm.of("discard") == calm.of("reject") == calm.truth["faults"] == []
    delivered = Counter(
        (row["trace_id"], row["router"], row["vpn"], row["client"]) for row in calm.of("deliver")
    )
    assert set(delivered.values()) == {1}
    assert len({trace for trace, *_ in delivered}) == calm.truth["counts"]["messages"]
    into = Counter((r["trace_id"], r["router"], r["vpn"]) for r in calm.of("bridge_receive"))
    assert set(into.values()) == {1}
    assert max(abs(offset) for offset in calm.truth["clocks"].values()) < 1_000_000


def test_who_subscribes_gets_something(calm: Any) -> None:
    """Each subscription of a client, a bridge or a queue is matched by a message that went there."""
    got = defaultdict(set)
    for row in calm.rows:
        if row["event"] in {"deliver", "bridge_send"}:
            got[row["router"], row["vpn"], row["client"]].add(row["topic"])
        elif row["event"] == "enqueue":
            got[row["router"], row["vpn"], row["endpoint"]].add(row["topic"])
    assert {row["topic_syntax"] for row in calm.of("subscribe")} == {"mqtt", "smf"}
    for row in calm.of("subscribe"):
        topics = got[row["router"], row["vpn"], row["client"]]
        wanted = row["topic"].rstrip("#>")
        assert any(topic.startswith(wanted) for topic in topics), row


def test_links_come_up_first_and_go_down_last(calm: Any) -> None:
    """Both ends tell of each link; all messages are between its up and its down."""
    bridges = calm.truth["counts"]["bridges"]
    assert len(calm.of("link_up")) == len(calm.of("link_down")) == 2 * bridges
    messages = [row["ts_ns"] for row in calm.rows if row["trace_id"] is not None]
    assert max(row["ts_ns"] for row in calm.of("link_up")) < min(messages)
    assert min(row["ts_ns"] for row in calm.of("link_down")) > max(messages)
    assert all(row["client"].startswith("#bridge/") for row in calm.of("link_up") if row["client"])


def test_files_are_trace_files(faulty: Any) -> None:
    """The report takes every file; columns, metadata and names are those of the format."""
    found = take_inventory([faulty.folder / "traces"])
    assert found.set_aside == ()
    assert found.rows == len(faulty.rows)
    assert len(found.files) == faulty.truth["files"]
    for file in found.files:
        assert file.sample == 1.0
        assert file.router_from == "directory"
        assert pq.read_schema(file.path).names == [column.name for column in FILE_COLUMNS]
        metadata = pq.read_metadata(file.path).metadata
        assert {VERSION_KEY.encode(), ROUTER_KEY.encode(), SAMPLE_KEY.encode()} <= metadata.keys()
        first = pq.read_table(file.path, columns=["ts_ns"], partitioning=None)["ts_ns"]
        assert file.path.name == f"part-{first[0].as_py()}-1.parquet"
        times = first.to_pylist()
        assert all(one <= other + 2_048 for one, other in pairwise(times))


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two runs write equal files; another seed writes others."""

    def contents(name: str, seed: int) -> dict[str, bytes]:
        folder = tmp_path / name
        simulate(Options(vpns=6, rows=2_500, faults=("loop",), seed=seed), folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    one = contents("one", 5)
    assert one == contents("two", 5)
    assert one != contents("three", 6)


def test_rows_are_split_at_midnight(tmp_path: Path) -> None:
    """A file holds rows of one UTC date."""
    midnight = 1_772_409_600 * SECOND_NS
    options = Options(vpns=6, rows=2_000, start_ns=midnight - 1_800 * SECOND_NS)
    simulate(options, tmp_path)
    paths = list((tmp_path / "traces").rglob("*.parquet"))
    assert {path.parts[-3] for path in paths} == {"date=2026-03-01", "date=2026-03-02"}
    for path in paths:
        times = pq.read_table(path, columns=["ts_ns"], partitioning=None)["ts_ns"].to_pylist()
        late = path.parts[-3] == "date=2026-03-02"
        assert all((ts >= midnight) == late for ts in times)


def test_untraced_discards_stand_for_several(tmp_path: Path) -> None:
    """At a rate below 1 the discards of messages that are not traced are told in rows that count them."""
    options = Options(vpns=8, rows=3_000, sample=0.01, faults=("black_hole",))
    truth = simulate(options, tmp_path)
    (file, *_) = take_inventory([tmp_path / "traces"]).files
    assert file.sample == 0.01
    discards = [
        row
        for path in (tmp_path / "traces").rglob("*.parquet")
        for row in pq.read_table(path, partitioning=None).to_pylist()
        if row["event"] == "discard"
    ]
    traced = [row for row in discards if row["trace_id"] is not None]
    others = [row for row in discards if row["trace_id"] is None]
    assert {row["count"] for row in traced} == {None}
    assert all(row["count"] > 1 and row["message_id"] is None for row in others)
    assert sum(row["count"] for row in others) == pytest.approx(99 * len(traced), rel=0.05)
    assert {row["topic"] for row in discards} == {fault["topic"] for fault in truth["faults"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"network": "sndlib/nowhere"}, "no network sndlib/nowhere"),
        ({"network": "../../etc/passwd"}, "no network"),
        ({"vpns": 100, "rows": 500}, "500 rows are too few"),
        ({"vpns": 5, "faults": ("loop",) * 9, "rows": 9_000}, "too few message VPNs"),
        ({"vpns": 4, "faults": ("clock_skew",) * 2, "rows": 9_000}, "too few routers"),
        ({"seconds": 5.0}, "60 seconds or more"),
        ({"sample": 0.0}, "a sample above 0"),
    ],
)
def test_refusals_say_why(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    """What cannot be simulated is refused in words, before anything is written."""
    with pytest.raises(OperationError, match=said):
        simulate(Options(**options), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_traces_are_not_mixed(tmp_path: Path) -> None:
    """A directory that has traces is refused."""
    simulate(Options(vpns=4, rows=1_000), tmp_path)
    with pytest.raises(OperationError, match="has traces already"):
        simulate(Options(vpns=4, rows=1_000), tmp_path)


def test_all_faults_come_twice_where_there_is_room() -> None:
    """A large mesh has two faults of each kind, so that a rule cannot be right by luck."""
    assert len(all_faults(1_000)) == 2 * len(all_faults(10))
