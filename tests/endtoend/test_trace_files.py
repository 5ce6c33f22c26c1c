"""Trace files of a router process that is stopped, killed and started again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

TEXT = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
trace: {directory: ./traces, sample: 1.0, rotation: {max_seconds: SECONDS}}
msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}
"""


def text(seconds: int) -> str:
    """A configuration; a file is complete after so many seconds."""
    return TEXT.replace("SECONDS", str(seconds))


def files(folder: Path) -> list[Path]:
    """Complete files, oldest first."""
    found = folder.glob("traces/date=*/router=edge/part-*.parquet")
    return sorted(found, key=lambda path: [int(part) for part in path.stem.split("-")[1:]])


def topics(folder: Path) -> list[str]:
    """Topics of what was published, from all complete files."""
    found: list[str] = []
    for path in files(folder):
        rows = pq.ParquetFile(path).read(columns=["ts_ns", "event", "topic"]).to_pylist()
        found += [row["topic"] for row in rows if row["event"] == "ingress"]
    return found


def test_trace_files_survive_stops_and_kills(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    patiently: Callable[..., None],
    tmp_path: Path,
) -> None:
    """A clean stop writes everything; a kill loses the open file alone; nothing is overwritten."""
    first = start(text(60))
    paho(first.port("mqtt")).publish("a/1")
    assert first.stop() == 0
    assert topics(tmp_path) == ["a/1"]

    second = start(text(1))
    client = paho(second.port("mqtt"))
    client.publish("a/2")
    patiently(lambda: topics(tmp_path) == ["a/1", "a/2"], "a/2 in a complete file")
    client.publish("a/3")
    patiently(lambda: any(tmp_path.glob("traces/**/.part-*")) or len(files(tmp_path)) > 2, "a/3")
    second.kill()
    before = {path: path.read_bytes() for path in files(tmp_path)}
    assert topics(tmp_path)[:2] == ["a/1", "a/2"]
    for path in before:
        pq.ParquetFile(path).read()

    third = start(text(60))
    paho(third.port("mqtt")).publish("a/4")
    assert third.stop() == 0
    assert topics(tmp_path)[:2] == ["a/1", "a/2"]
    assert topics(tmp_path)[-1] == "a/4"
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob("traces/**/.part-*"))
    assert len(files(tmp_path)) > len(before) >= 2


LINKED = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: v}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
trace: {directory: ./traces, sample: 1.0}
msg_vpns:
  v:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    BRIDGES
"""
BRIDGE = (
    "bridges: {b: {remote_authentication: {basic: {client_username: c}}, remote_msg_vpns:"
    ' [{name: v, location: "127.0.0.1:LINK"}], remote_subscriptions: [TOPIC]}}'
)
MESSAGES = 2_000


@pytest.fixture
def crossed(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    free_port: Callable[[], int],
    tmp_path: Path,
) -> Path:
    """Traces of two routers of this machine, whose messages crossed bridges both ways while others were served."""
    ports = {"edge": free_port(), "core": free_port()}
    routers = {}
    for name, other, topic in (("edge", "core", "down/>"), ("core", "edge", "up/>")):
        bridge = BRIDGE.replace("LINK", str(ports[other])).replace("TOPIC", topic)
        listener = f'{{protocol: link, bind: "127.0.0.1:{ports[name]}"}}'
        written = LINKED.replace('{protocol: link, bind: "127.0.0.1:0"}', listener)
        routers[name] = start(written.replace("BRIDGES", bridge), name)
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
    return tmp_path / "traces"


def test_nothing_arrives_before_it_was_sent(crossed: Path) -> None:
    """The rows of both ends of a bridge, between routers of one machine, are in the order in which it happened."""
    sent: dict[tuple[str, str], int] = {}
    came: dict[tuple[str, str], int] = {}
    hosts = set()
    for path in crossed.glob("**/part-*.parquet"):
        file = pq.ParquetFile(path)
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


@pytest.mark.slow
@pytest.mark.spark
def test_the_clocks_of_one_machine_are_left_alone(crossed: Path, tool: Any, tmp_path: Path) -> None:
    """A report on them takes nothing off, and shows no latency below 0."""
    tool("report", str(crossed), "--output", str(tmp_path / "report"), timeout=900)
    clocks = pq.read_table(tmp_path / "report" / "tables" / "clocks.parquet").to_pylist()
    assert {row["router"]: row["offset_ns"] for row in clocks} == {"edge": 0, "core": 0}
    latencies = pq.read_table(tmp_path / "report" / "tables" / "latencies.parquet").to_pylist()
    assert sum(row["messages"] for row in latencies) >= 2 * MESSAGES
    assert min(row["latency_ns"] for row in latencies) >= 0
