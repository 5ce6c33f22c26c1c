"""Traces of a simulated mesh, its truth, and the mark of a report."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.traces.inventory import take_inventory
from vpnrouter.simulation import files, mesh, plan, traffic
from vpnrouter.simulation.files import RowGenerator
from vpnrouter.simulation.score import compare, read
from vpnrouter.simulation.simulate import Options, all_faults, simulate, truth_of
from vpnrouter.simulation.templates import Journey, Templates, key_of, partitions_of, walk
from vpnrouter.simulation.traffic import Feed
from vpnrouter.trace.schema import FILE_COLUMNS, ROUTER_KEY, SAMPLE_KEY, VERSION_KEY

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
    found = take_inventory([str(faulty.folder / "traces")])
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
        assert Path(file.path).name == f"part-{first[0].as_py()}-1.parquet"
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
    (file, *_) = take_inventory([str(tmp_path / "traces")]).files
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


def drafted(seed: int = 1, vpns: int = 12) -> tuple[plan.Plan, np.random.Generator]:
    """A plan of a small mesh, without templates."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), vpns, 1, rng)
    return plan.draft(built, 600.0, 1.0, 3, rng), rng


@pytest.mark.parametrize("rows", [3_000, 4_321, 50_000, 10_000_000])
def test_rows_come_out_as_asked(rows: int) -> None:
    """Messages are shared out by weight, each stream has some, and rows fall short by less than a message."""
    made, rng = drafted()
    plan.lay_out(made, 1.0, rng)
    counts = plan.share_out(made, rows)
    length = [made.templates.length[stream.template] for stream in made.streams]
    total = int((counts * length).sum()) + len(made.states)
    assert rows - max(length) < total <= rows
    assert counts.min() >= plan.LEAST_MESSAGES


def test_too_few_rows_are_refused() -> None:
    """The words say how many it takes, and so many are enough."""
    made, rng = drafted()
    plan.lay_out(made, 1.0, rng)
    with pytest.raises(OperationError, match="at least") as refused:
        plan.share_out(made, 10)
    least = int(str(refused.value).split("at least ")[1].split(", or")[0].replace(",", ""))
    assert plan.share_out(made, least).min() == plan.LEAST_MESSAGES
    with pytest.raises(OperationError):
        plan.share_out(made, least - 1)


def test_feeds_avoid_links_that_are_down() -> None:
    """Every stream over such a bridge has a profile that is silent in the span."""
    made, rng = drafted()
    number = max(range(len(made.mesh.bridges)), key=lambda at: len(made.mesh.bridges[at].filters))
    made.downs[number] = [(100.0, 200.0, "gone")]
    plan.lay_out(made, 1.0, rng)
    first = {stream.template: stream for stream in made.streams}
    touched = [
        stream
        for template, stream in first.items()
        if number
        in made.templates.bridge_number[
            made.templates.first[template] : made.templates.first[template]
            + made.templates.length[template]
        ]
    ]
    assert touched
    for stream in touched:
        assert made.profiles[stream.profile].share_within([(100.0, 200.0)]) == 0
    links = [
        made.templates.columns["event"][state.row]
        for state in made.states
        if 99.9 < state.at_s < 200.1
    ]
    assert links.count("link_down") == links.count("link_up") == 2


@pytest.mark.parametrize("other", [None, (400.0, 500.0), (250.0, 350.0), (220.0, 280.0)])
def test_feeds_are_parted_at_stalls(other: tuple[float, float] | None) -> None:
    """Over a bridge that stalls nothing arrives in its span, and all at other times; of one feed's bridges two may
    stall.
    """
    made, rng = drafted()
    feed = max(made.feeds, key=lambda feed: len(feed.onward))
    first, last = list(_in_order(made, feed))[:2]
    made.stalls[first] = (200.0, 300.0)
    if other is not None:
        made.stalls[last] = other
    plan.lay_out(made, 1.0, rng)
    arrived = dict.fromkeys(made.stalls, 0)
    for stream in made.streams:
        begin = made.templates.first[stream.template]
        rows = range(begin, begin + made.templates.length[stream.template])
        for number, span in made.stalls.items():
            events = {
                made.templates.columns["event"][at]
                for at in rows
                if made.templates.bridge_number[at] == number
            }
            if events:
                inside = made.profiles[stream.profile].share_within([span])
                assert inside == pytest.approx(0 if "bridge_receive" in events else 1)
                arrived[number] += "bridge_receive" in events
    assert all(arrived.values())


def _in_order(made: plan.Plan, feed: Feed) -> Iterator[int]:
    """The bridges that messages of the feed cross, one after the other, on one way."""
    site = feed.origin
    while site in feed.onward:
        number = feed.onward[site][0]
        yield number
        site = made.mesh.bridges[number].target


@pytest.fixture
def made() -> tuple[mesh.Mesh, list[int]]:
    """A mesh, and three of its sites in a row."""
    built = mesh.build(mesh.load("sndlib/polska"), 8, 1, np.random.default_rng(2))
    middle = max(range(len(built.near)), key=lambda site: len(built.near[site]))
    one, other, *_ = built.near[middle]
    return built, [one, middle, other]


def events_of(templates: Templates, template: int) -> list[str]:
    """Events of one template with the hops so far."""
    first, length = templates.first[template], templates.length[template]
    columns = templates.columns
    return [f"{columns['event'][at]} {columns['hops'][at]}" for at in range(first, first + length)]


def test_a_direct_message_goes_all_the_way(made: tuple[mesh.Mesh, list[int]]) -> None:
    """It is sent, received and delivered at each stage; a send counts the bridge that it goes over."""
    built, way = made
    feed = traffic.new_feed(built, "prices", traffic.DIRECT, way[0], np.random.default_rng(1))
    feed.receivers = {way[1]: [traffic.Receiver("near")], way[2]: [traffic.Receiver("far")]}
    traffic.route(built, feed, way)
    templates = Templates()
    template = walk(templates, built, feed, 0)
    assert events_of(templates, template) == [
        "ingress 0",
        "bridge_send 1",
        "bridge_receive 1",
        "deliver 1",
        "bridge_send 2",
        "bridge_receive 2",
        "deliver 2",
    ]
    here = [built.sites[site].name for site in way]
    assert templates.columns["path"][-1] == f"{here[0]}>{here[1]}"
    assert templates.columns["path"][:2] == [None, None]
    assert templates.columns["client"][1] == built.client_of(built.bridges[feed.onward[way[0]][0]])


def test_a_persistent_message_waits_in_queues(made: tuple[mesh.Mesh, list[int]]) -> None:
    """It is enqueued and acknowledged at the bridge's queue and at the receiver's."""
    built, way = made
    feed = traffic.new_feed(built, "orders", traffic.PERSISTENT, way[0], np.random.default_rng(1))
    feed.receivers = {way[1]: [traffic.Receiver("worker", "q", 4)]}
    traffic.route(built, feed, way[:2])
    templates = Templates()
    template = walk(templates, built, feed, 0, partition=2)
    assert events_of(templates, template) == [
        "ingress 0",
        "enqueue 0",
        "bridge_send 1",
        "acknowledge 0",
        "bridge_receive 1",
        "enqueue 1",
        "deliver 1",
        "acknowledge 1",
    ]
    assert templates.columns["partition"] == [None] * 5 + [2] * 3
    assert templates.columns["client"][-1] == "worker-2"
    assert partitions_of(feed) == 4


def test_a_stalled_bridge_is_where_it_ends(made: tuple[mesh.Mesh, list[int]]) -> None:
    """What is sent over it never arrives, nor anything behind it."""
    built, way = made
    feed = traffic.new_feed(built, "prices", traffic.DIRECT, way[0], np.random.default_rng(1))
    feed.receivers = {way[2]: [traffic.Receiver("far")]}
    traffic.route(built, feed, way)
    templates = Templates()
    (second,) = feed.onward[way[1]]
    template = walk(templates, built, feed, 0, stalled=[second])
    assert events_of(templates, template)[-1] == "bridge_send 2"


def test_only_who_wants_an_item_gets_it(made: tuple[mesh.Mesh, list[int]]) -> None:
    """Items with a receiver of their own have templates of their own, the others share one."""
    built, way = made
    feed = traffic.new_feed(built, "prices", traffic.DIRECT, way[0], np.random.default_rng(1))
    feed.items = 3
    feed.receivers = {way[0]: [traffic.Receiver("all"), traffic.Receiver("one", item=1)]}
    templates = Templates()
    many = [templates.length[walk(templates, built, feed, item)] for item in range(3)]
    assert many == [2, 3, 2]
    assert [key_of(feed, item) for item in range(3)] == [(), (1,), ()]


def test_rejects_name_endpoint_and_bridge(made: tuple[mesh.Mesh, list[int]]) -> None:
    """The row tells who refused what came by whom."""
    built, way = made
    feed = traffic.new_feed(built, "orders", traffic.PERSISTENT, way[0], np.random.default_rng(1))
    traffic.route(built, feed, way[:2])
    templates = Templates()
    journey = Journey(templates, built, feed)
    (number,) = feed.onward[way[0]]
    visit = journey.cross(journey.ingress(), number)
    journey.reject(visit, "q", "503 Spool Over Quota", built.bridges[number])
    last = {name: column[-1] for name, column in templates.columns.items()}
    assert last["event"] == "reject"
    assert last["endpoint"] == "q"
    assert last["bridge"] == built.bridges[number].name
    assert last["peer_router"] == built.sites[way[0]].router_name


START_NS = 1_772_352_000 * 10**9


def write(folder: Path, slices: int = 1) -> files.TraceFiles:
    """The traces of a small mesh."""
    rng = np.random.default_rng(1)
    built = mesh.build(mesh.load("sndlib/polska"), 6, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    generator = RowGenerator(made, plan.share_out(made, 3_000), START_NS, rng)
    out = files.TraceFiles(folder, made, rng, 1.0)
    for at in range(slices):
        out.write(*generator.draw(600.0 * (at + 1) / slices))
    out.close()
    return out


def test_a_router_has_one_file_while_there_is_room(tmp_path: Path) -> None:
    """Slices are appended as row groups; what is written is hidden until it is complete."""
    out = write(tmp_path, 5)
    found = sorted(tmp_path.rglob("*"))
    assert sorted(out.paths) == [path for path in found if path.suffix == ".parquet"]
    assert not [path for path in found if path.name.startswith(".")]
    assert len({path.parent for path in out.paths}) == len(out.paths)
    assert all(pq.read_metadata(path).num_row_groups == 5 for path in out.paths)


def test_files_and_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full file is followed by another of the router; no row is lost or doubled."""
    whole = sum(pq.read_metadata(path).num_rows for path in write(tmp_path / "one").paths)
    monkeypatch.setattr(files, "FILE_ROWS", 200)
    monkeypatch.setattr(files, "GROUP_ROWS", 50)
    out = write(tmp_path / "two")
    footers = [pq.read_metadata(path) for path in out.paths]
    assert len(out.paths) > len({path.parent for path in out.paths})
    assert sum(footer.num_rows for footer in footers) == whole
    assert max(footer.num_rows for footer in footers) < 250
    groups = [footer.row_group(at) for footer in footers for at in range(footer.num_row_groups)]
    assert max(group.num_rows for group in groups) <= 50


def test_a_write_that_fails_is_told(tmp_path: Path) -> None:
    """The error of the writing thread comes out of the next call."""
    place = tmp_path / "traces"
    place.write_text("a file is in the way")
    with pytest.raises(OSError, match="traces"):
        write(place)


def test_ids_look_drawn_and_are_distinct() -> None:
    """Message ids of neighbouring numbers differ in about half of their bits; none is met twice."""
    numbers = np.arange(1, 100_001, dtype=np.int64)
    mixed = files._mixed(numbers)
    assert len(np.unique(mixed)) == len(numbers)
    bits: Any = np.bitwise_count(mixed[1:] ^ mixed[:-1])
    assert 31 < bits.mean() < 33


def test_truth_is_counted_from_the_plan() -> None:
    """Rows by event are templates times messages, and states; clocks are of routers in use."""
    rng = np.random.default_rng(1)
    built = mesh.build(mesh.load("sndlib/polska"), 10, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    counts = np.full(len(made.streams), 5)
    told = truth_of(made, counts, [{"kind": "loop"}], [])
    numbers = told["counts"]
    assert numbers["messages"] == numbers["events"]["ingress"] == 5 * len(made.streams)
    assert sum(numbers["events"].values()) == numbers["rows"]
    assert numbers["events"]["link_up"] == 2 * len(built.bridges)
    assert set(told["clocks"]) == {site.router_name for site in built.sites}
    assert sum(edge["sent"] for edge in told["edges"]) == numbers["events"]["bridge_send"]
    assert told["faults"] == [{"kind": "loop"}]


LOOP = {"kind": "loop", "router": "a", "vpn": "v"}


HOT = {"kind": "hot_bridge", "router": "a", "vpn": "v", "peer_router": "b", "bridge": "x"}


def found(fault: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The finding that agrees with a fault."""
    empty = dict.fromkeys(("peer_router", "peer_vpn", "bridge", "client", "topic"))
    return {"severity": "error", **empty, **fault, **more}


def test_all_found_and_nothing_else_is_good() -> None:
    """Fields that the fault does not state do not matter, nor do findings of severity info."""
    findings = [
        found(LOOP, messages=7, topic="t"),
        found(HOT, peer_vpn="w"),
        found({"kind": "cut_bridge", "router": "q"}, severity="info"),
    ]
    score = compare([LOOP, {**HOT, "value": 0.3, "endpoint": "q"}], [], findings)
    assert score.good
    assert (score.total.recall, score.total.precision) == (1.0, 1.0)
    assert [one.kind for one in score.kinds] == ["hot_bridge", "loop"]


def test_info_may_find_and_is_never_wrong() -> None:
    """A fault that a report takes lightly is found; what it tells besides as info is not held against it."""
    noted = [found(LOOP, severity="info"), found(HOT, severity="info")]
    score = compare([LOOP], [], noted)
    assert score.good
    assert (score.total.found, score.total.raised) == (1, 0)


def test_a_missed_fault_is_not_good() -> None:
    """One field that differs makes a finding wrong and leaves its fault missed."""
    other = found(HOT, bridge="y")
    score = compare([LOOP, HOT], [], [found(LOOP), other])
    assert not score.good
    assert score.total.recall == 0.5
    assert score.missed == (HOT,)
    assert score.wrong == (other,)


def test_consequences_are_right_but_need_not_be_found() -> None:
    """What follows from a fault counts for precision only."""
    wasted = {"kind": "wasted_crossing", "router": "a"}
    assert compare([LOOP], [wasted], [found(LOOP)]).good
    score = compare([LOOP], [wasted], [found(LOOP), found(wasted)])
    assert score.good
    assert score.total.right == 2


def test_precision_has_a_bound() -> None:
    """One wrong finding among fifty is let pass, two are not."""
    right = [found(LOOP)] * 49
    assert compare([LOOP], [], [*right, found(HOT)]).good
    assert not compare([LOOP], [], [*right, found(HOT), found(HOT)]).good


def test_nothing_planted_and_nothing_raised_is_good() -> None:
    """A calm mesh with an empty report scores 1."""
    score = compare([], [], [])
    assert score.good
    assert json.loads(json.dumps(score.as_json()))["recall"] == 1.0


@pytest.mark.parametrize(
    ("truth", "findings", "said"),
    [
        (None, "[]", "cannot read"),
        ("{}", "[]", "no truth"),
        ("{", "[]", "no JSON"),
        ('{"faults": []}', "{}", "no list of findings"),
        ('{"faults": []}', None, "cannot read"),
    ],
)
def test_files_that_are_something_else_are_named(
    tmp_path: Path, truth: str | None, findings: str | None, said: str
) -> None:
    """What is missing or is not what it should be is told, with its path."""
    for name, text in (("truth.json", truth), ("findings.json", findings)):
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(OperationError, match=said):
        read(tmp_path / "truth.json", tmp_path)
