"""Bridges side by side: what happens to one leaves the others, and the clients, alone; pairs and chains of routers."""

import itertools
import statistics
import time
from pathlib import Path
from typing import Any, Final

import pytest
from pyarrow import parquet

from vpnrouter.report.output import newest_table

QUICK: Final = {"retry_delay": 0, "heartbeat_interval": 150}


@pytest.fixture
def out(bridge: Any) -> Any:
    """`out(LOCATION, VPN)`: a bridge that takes out/> and misses its remote soon."""

    def written(location: Any, vpn: str = "blue", **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = bridge(vpn, location, "out/>", remote_connection=QUICK, **more)
        return found

    return written


def aim(link: Any, router: Any) -> None:
    """Have a link lead to a router."""
    link.target = ("127.0.0.1", router.port("link"))


def round_trips(client: Any, count: int) -> list[float]:
    """Seconds that messages to oneself take, one after the other."""
    found = []
    for number in range(count):
        began = time.perf_counter()
        client.publish("here/x", str(number).encode())
        client.next()
        found.append(time.perf_counter() - began)
    return found


def test_dead_remotes_slow_no_client(site: Any, out: Any, network: Any, paho: Any) -> None:
    """Remotes that refuse, hang or have no name leave the 99th percentile of local traffic as it was."""
    dead, frozen, refused = (network.link() for _ in range(3))
    frozen.freeze()
    refused.unreachable()
    names = ("no-such-host.invalid:1", "a" * 80 + ":55555", "v:elsewhere")
    places = [dead, frozen, refused, *names] * 4
    bridges = {f"b{number}": out(place, "v") for number, place in enumerate(places)}
    quiet, busy = site("quiet", v={}), site("busy", v=bridges)
    assert busy.ready_after_s < quiet.ready_after_s + 5
    figures = []
    for each in (quiet, busy):
        client = paho(each.port("mqtt"), "c")
        client.subscribe("here/#")
        client.publish("here/x", b"")
        client.next()
        figures.append(statistics.quantiles(round_trips(client, 200), n=100)[98])
    print("p99 in ms without and with dead remotes:", *(round(s * 1000, 2) for s in figures))
    assert figures[1] < figures[0] + 0.1
    assert all(row["health"] == "down" for row in busy.bridges())
    assert busy.stop() == 0
    assert not busy.told("Traceback")


def test_a_fault_stays_with_its_bridge(
    site: Any, out: Any, network: Any, paho: Any, publishing: Any
) -> None:
    """Two bridges between the same two routers: one fails again and again, the other misses nothing."""
    bad, good = network.link(), network.link()
    edge = site("edge", blue={}, green={})
    for link in (bad, good):
        aim(link, edge)
    core = site("core", yellow={"from-blue": out(bad)}, red={"from-green": out(good, "green")})
    core.bridges_up(2)
    yellow, red = (paho(core.port("mqtt", index), "s") for index in range(2))
    for client in (yellow, red):
        client.subscribe("#")
    loads = [publishing(paho(edge.port("mqtt", index), "p"), "out/x") for index in range(2)]
    for fault in (bad.cut, bad.freeze, bad.unreachable, bad.orphan):
        loads[1].passes(50)
        fault()
        loads[1].passes(50)
        bad.heal()
    bad.cut()
    failures = core.bridge("from-blue", inboundState="ready-in-sync")["failureCount"]
    assert failures >= 2
    last = loads[1].stop() - 1
    red.until_number(last)
    assert red.numbers() == list(range(last + 1))
    assert core.bridge("from-green")["failureCount"] == 0
    # The same topic and the same numbers in both pairs of VPNs: what is yellow's came once, in order.
    loads[0].stop()
    found = yellow.numbers()
    assert found == sorted(set(found))


def test_vpns_stay_apart(site: Any, out: Any, network: Any, paho: Any) -> None:
    """Between the VPNs of two routers messages cross where a bridge is, that way only, and nowhere else."""
    link = network.link()
    edge = site("edge", blue={}, green={})
    aim(link, edge)
    core = site("core", yellow={"from-blue": out(link)}, red={})
    core.bridges_up()
    places = {
        "blue": edge.port("mqtt", 0),
        "green": edge.port("mqtt", 1),
        "yellow": core.port("mqtt", 0),
        "red": core.port("mqtt", 1),
    }
    heard = {name: paho(port, "s") for name, port in places.items()}
    for client in heard.values():
        client.subscribe("#")
    for turn in range(2):
        for name, client in heard.items():
            client.publish("out/x", name.encode())
            client.publish("private/x", name.encode())
            for _ in range(2):
                assert client.next()[1] == name.encode()
            if name == "blue":
                assert heard["yellow"].next() == ("out/x", b"blue")
        if turn == 0:
            link.cut()
            core.says("VPN_BRIDGING_LINK_DOWN")
            core.bridge("from-blue", inboundState="ready-in-sync")
    assert all(client.arrived.empty() for client in heard.values())


def test_two_ways_one_copy(site: Any, out: Any, network: Any, paho: Any, patiently: Any) -> None:
    """Over a pair of routers, each bridged to core and to its twin, each message comes once, also with one way cut."""
    names = ("one", "two")
    links = {name: network.link() for name in names}
    twins = {name: network.link() for name in names}
    routers = {
        name: site(name, blue={f"from-{twin}": out(twins[twin])})
        for name, twin in (names, names[::-1])
    }
    for name in names:
        aim(links[name], routers[name])
        aim(twins[name], routers[name])
    core = site("core", yellow={f"from-{name}": out(links[name]) for name in names})
    for name, twin in (names, names[::-1]):
        routers[name].bridge(f"from-{twin}", inboundState="ready-in-sync")
        core.bridge(f"from-{name}", inboundState="ready-in-sync")
    far = paho(core.port("mqtt"), "far")
    far.subscribe("#")
    near = paho(routers["one"].port("mqtt"), "near")

    def all_come_once(phase: str) -> None:
        for number in range(100):
            near.publish(f"out/{phase}", str(number).encode())
        assert [far.next() for _ in range(100)] == [
            (f"out/{phase}", str(number).encode()) for number in range(100)
        ]

    all_come_once("whole")
    links["one"].unreachable()
    core.says("VPN_BRIDGING_LINK_DOWN")
    all_come_once("by way of two")
    links["one"].heal()
    core.bridge("from-one", inboundState="ready-in-sync")
    all_come_once("whole again")
    near.publish("out/end")
    assert far.next()[0] == "out/end"

    def second_copies_came() -> bool:
        """The copies by the longer way are discarded when they arrive, which may be after the end."""
        discarded = [row["discardedRx"] for row in core.bridges()]
        return sum(each.get("duplicate", 0) for each in discarded) >= 100

    patiently(second_copies_came, "a hundred duplicates discarded")
    assert far.arrived.empty()


@pytest.mark.slow
def test_a_half_open_primary_spares_the_secondary(
    site: Any, out: Any, network: Any, paho: Any
) -> None:
    """While the better remote takes connections and says nothing, the other one serves; then it goes back."""
    primary, secondary = network.link(), network.link()
    routers = [site(name, blue={}) for name in ("one", "two")]
    for link, each in zip((primary, secondary), routers, strict=True):
        aim(link, each)
    made = out(primary)
    made["remote_msg_vpns"] = [
        {"name": "blue", "location": link.address, "connect_order": order}
        for order, link in ((1, primary), (2, secondary))
    ]
    made["remote_connection"] = QUICK | {"failback_delay": 1}
    core = site("core", yellow={"b": made})
    core.bridge("b", inboundState="ready-in-sync", remoteRouterName="one")
    far = paho(core.port("mqtt"), "far")
    far.subscribe("#")
    primary.freeze()
    core.bridge("b", inboundState="ready-in-sync", remoteRouterName="two")
    core.err.clear()
    near = paho(routers[1].port("mqtt"), "near")
    ends = time.monotonic() + 2.5
    number = 0
    while time.monotonic() < ends:
        near.publish("out/x", str(number).encode())
        assert far.next() == ("out/x", str(number).encode())
        number += 1
        time.sleep(0.05)
    assert core.told("DOWN") == []
    primary.heal()
    primary.cut()
    back = core.bridge("b", inboundState="ready-in-sync", remoteRouterName="one")
    up = {row["remoteMsgVpnLocation"]: row["up"] for row in back["remotes"]}
    assert up == {primary.address: True, secondary.address: False}
    paho(routers[0].port("mqtt"), "near").publish("out/x", b"back")
    assert far.next() == ("out/x", b"back")
    assert core.told("DOWN") == []


CHAIN: Final = ("first", "middle", "last")


class Chain:
    """Three routers by name, each with a bridge from the one before, and links towards them."""

    def __init__(self, site: Any, bridge: Any, network: Any, traces: Path) -> None:
        self._site = site
        self._traces = {"trace": {"directory": str(traces), "sample": 1.0}}
        self.links = {name: network.link() for name in CHAIN}
        self._bridges: dict[str, dict[str, Any]] = {"first": {}}
        for before, name in itertools.pairwise(CHAIN):
            from_before = bridge(f"v-{before}", self.links[before], ">", remote_connection=QUICK)
            self._bridges[name] = {f"from-{before}": from_before}
        self.routers: dict[str, Any] = {}
        for name in CHAIN:
            self.start(name)

    def start(self, name: str) -> None:
        """Start a router; after it was killed, again."""
        vpn = {f"v-{name}": self._bridges[name]}
        self.routers[name] = self._site(name, more=self._traces, **vpn)
        aim(self.links[name], self.routers[name])

    def up(self, *names: str) -> None:
        """Wait until the bridges of these routers are up."""
        for name in names:
            self.routers[name].says("VPN_BRIDGING_LINK_UP: VPN v-" + name + " bridge")

    def port(self, name: str) -> int:
        """The MQTT port of a router."""
        return int(self.routers[name].port("mqtt"))


@pytest.fixture
def chain(site: Any, bridge: Any, network: Any, tmp_path: Path) -> Chain:
    """The chain, its bridges up."""
    made = Chain(site, bridge, network, tmp_path / "traces")
    made.up("middle", "last")
    return made


def test_any_hop_may_restart(chain: Chain, paho: Any) -> None:
    """Whichever router is killed and restarted, the first message after the bridges are up arrives."""
    affected = {"first": ["middle"], "middle": ["middle", "last"], "last": ["last"]}
    for name, bridges in affected.items():
        chain.routers[name].kill()
        for router in chain.routers.values():
            router.err.clear()
        chain.start(name)
        chain.up(*bridges)
        far = paho(chain.port("last"), "far")
        far.subscribe("#")
        paho(chain.port("first"), "near").publish(f"after/{name}", b"first")
        assert far.next() == (f"after/{name}", b"first")
        far.stop()


def test_traces_tell_the_way(chain: Chain, paho: Any, tmp_path: Path) -> None:
    """The traces of all three routers, put together, name each hop of a message once, in order."""
    far = paho(chain.port("last"), "far")
    far.subscribe("#")
    paho(chain.port("first"), "near").publish("the/way", b"x")
    assert far.next() == ("the/way", b"x")
    for name in CHAIN:
        assert chain.routers[name].stop() == 0
    rows = [
        row | {"router": path.parent.name.removeprefix("router=")}
        for path in (tmp_path / "traces").rglob("*.parquet")
        for row in parquet.ParquetFile(path).read().to_pylist()
        if row["topic"] == "the/way"
    ]
    assert len({row["trace_id"] for row in rows}) == 1
    sent = sorted(
        (row["hops"], row["router"], row["peer_router"])
        for row in rows
        if row["event"] == "bridge_send"
    )
    assert sent == [(1, "first", "middle"), (2, "middle", "last")]
    taken = sorted(
        (row["hops"], row["router"], row["path"])
        for row in rows
        if row["event"] == "bridge_receive"
    )
    assert taken == [
        (1, "middle", "first/v-first"),
        (2, "last", "first/v-first>middle/v-middle"),
    ]


MESSAGES: Final = 2_000


@pytest.fixture
def crossed(site: Any, bridge: Any, network: Any, paho: Any, tmp_path: Path) -> Path:
    """Traces of two routers of this machine, whose messages crossed bridges both ways while others were served."""
    traces = tmp_path / "traces"
    links = {name: network.link() for name in ("edge", "core")}
    routers = {}
    for name, other, topic in (("edge", "core", "down/>"), ("core", "edge", "up/>")):
        more = {"trace": {"directory": str(traces), "sample": 1.0}}
        routers[name] = site(name, more=more, v={"b": bridge("v", links[other], topic)})
        aim(links[name], routers[name])
    for router in routers.values():
        router.bridge("b", inboundState="ready-in-sync")
    # What stands in a round beside the message that crosses makes it long.
    for number in range(20):
        paho(routers["edge"].port("mqtt"), f"s{number}").subscribe("#")
    ends = {}
    for name, topic in (("core", "up/end"), ("edge", "down/end")):
        ends[name] = paho(routers[name].port("mqtt"), f"end-{name}")
        ends[name].subscribe(topic)
    near = paho(routers["edge"].port("mqtt"), "near")
    far = paho(routers["core"].port("mqtt"), "far")
    for number in range(MESSAGES):
        near.client.publish(f"up/{number % 10}", b"x" * 200)
        far.client.publish(f"down/{number % 10}", b"x" * 200)
    near.publish("up/end")
    far.publish("down/end")
    for client in ends.values():
        client.next()
    assert [router.stop() for router in routers.values()] == [0, 0]
    return traces


def test_nothing_arrives_before_it_was_sent(crossed: Path) -> None:
    """The rows of both ends of a bridge, between routers of one machine, are in the order in which it happened."""
    sent: dict[tuple[str, str], int] = {}
    came: dict[tuple[str, str], int] = {}
    hosts = set()
    for path in crossed.glob("**/part-*.parquet"):
        file = parquet.ParquetFile(path)
        hosts.add(file.schema_arrow.metadata[b"vpnrouter.host"])
        for row in file.read(["ts_ns", "event", "trace_id", "topic"]).to_pylist():
            if row["event"] in {"bridge_send", "bridge_receive"}:
                place = sent if row["event"] == "bridge_send" else came
                place[row["trace_id"], row["topic"]] = row["ts_ns"]
    assert len(hosts) == 1
    assert len(came) >= 2 * MESSAGES
    assert came.keys() == sent.keys()
    early = [key for key in came if came[key] < sent[key]]
    assert not early, f"{len(early):,} of {len(came):,}"


@pytest.mark.long
@pytest.mark.spark
def test_the_clocks_of_one_machine_are_left_alone(crossed: Path, tool: Any, tmp_path: Path) -> None:
    """A report on them takes nothing off, and shows no latency below 0."""
    tool("report", str(crossed), "--output", str(tmp_path / "report"), timeout=900)
    clocks = newest_table(tmp_path / "report", "clocks").to_pylist()
    assert {row["router"]: row["offset_ns"] for row in clocks} == {"edge": 0, "core": 0}
    latencies = newest_table(tmp_path / "report", "latencies").to_pylist()
    assert sum(row["messages"] for row in latencies) >= 2 * MESSAGES
    assert min(row["latency_ns"] for row in latencies) >= 0
