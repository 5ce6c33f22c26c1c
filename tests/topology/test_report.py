"""vpnrouter.topology.report: from files to findings."""

import json
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.topology import limits, report
from vpnrouter.topology.engine.progress import Quiet
from vpnrouter.topology.input.inventory import Inventory, take_inventory
from vpnrouter.topology.report import build_report, run_jobs
from vpnrouter.topology.tables import prepare


class Stages(Quiet):
    """Keeps the names of the stages."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str) -> None:
        """Keep it."""
        self.names.append(name)


def traces(files: ModuleType, root: Path, messages: int = 20) -> None:
    """Messages at edge/blue, every second of which crosses to core/yellow."""
    edge = []
    core = []
    for number in range(1, messages + 1):
        times = {"sent_ns": 1_000, "received_ns": 51_000} if number % 2 == 0 else {}
        at_edge, at_core = files.crossing(number, f"flights/{number % 3}", **times)
        edge += at_edge
        core += at_core
    edge.append(files.row("discard", 0, "blue", reason="slow", client="c", topic="flights/0"))
    files.write(root, "edge", edge, sample=1.0)
    files.write(root, "core", core, sample=1.0)


def spoil(path: Path) -> None:
    """Damage a file's contents and leave its footer whole."""
    contents = bytearray(path.read_bytes())
    for at in range(8, len(contents) // 2):
        contents[at] ^= 0x5A
    path.write_bytes(contents)
    assert pq.read_metadata(path).num_rows > 0


@pytest.mark.spark
def test_all_tables_come_of_the_traces(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Nodes, edges, topics, discards and timeline agree with the rows written and with their files."""
    traces(tracefiles, tmp_path / "traces")
    prepare(tmp_path / "out")
    heard = Stages()
    found, left = run_jobs(spark, take_inventory([tmp_path / "traces"]), tmp_path / "out", heard)
    assert left.set_aside == ()
    assert heard.names == ["bridges", "message VPNs", "topics", "discards", "timeline"]
    assert [(n["vpn"], n["ingress"], n["delivered"], n["discarded"]) for n in found.nodes] == [
        ("yellow", 0, 10, 0),
        ("blue", 20, 0, 1),
    ]
    assert [(e["bridge"], e["messages"], e["latency_p99_ns"]) for e in found.edges] == [
        ("fares", 10, 50_000)
    ]
    assert found.topic_count == 6
    assert sum(topic["published"] for topic in found.topics) == 20
    assert [(row["reason"], row["messages"]) for row in found.discards] == [("slow", 1)]
    assert sum(row["ingress"] for row in found.timeline) == 20
    for name in ("nodes", "edges", "topics", "discards", "timeline"):
        rows = getattr(found, name)
        assert json.loads((tmp_path / "out" / f"{name}.json").read_text()) == rows
        assert pq.read_table(tmp_path / "out/tables" / f"{name}.parquet").to_pylist() == rows


@pytest.mark.spark
def test_a_file_that_spark_cannot_read_is_set_aside(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Damage behind a sound footer costs that file, named; the rest is reported."""
    traces(tracefiles, tmp_path / "traces")
    rows = [tracefiles.row("ingress", at, "green", topic=f"t{at}") for at in range(3_000)]
    bad = tracefiles.write(tmp_path / "traces", "odd name", rows)
    spoil(bad)
    prepare(tmp_path / "out")
    inventory = take_inventory([tmp_path / "traces"])
    found, left = run_jobs(spark, inventory, tmp_path / "out", Quiet())
    assert [aside.path for aside in left.set_aside] == [bad]
    assert {node["router"] for node in found.nodes} == {"edge", "core"}


@pytest.mark.spark
def test_too_many_damaged_files_end_the_report(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound of restarts the report gives up and names the last file."""
    assert report.REPORT_DAMAGED_FILES == limits.REPORT_DAMAGED_FILES
    monkeypatch.setattr(report, "REPORT_DAMAGED_FILES", 1)
    traces(tracefiles, tmp_path / "traces")
    rows = [tracefiles.row("ingress", at, "green", topic=f"t{at}") for at in range(3_000)]
    for part in (1, 2):
        spoil(tracefiles.write(tmp_path / "traces", "edge", rows, part=part))
    prepare(tmp_path / "out")
    with pytest.raises(OperationError, match="more than 1 damaged trace files"):
        run_jobs(spark, take_inventory([tmp_path / "traces"]), tmp_path / "out", Quiet())


@pytest.mark.spark
def test_tables_are_cut_at_their_bounds(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Topics and discards beyond the bounds are left out of the tables, and topics still counted."""
    beyond = max(limits.REPORT_TOPICS, limits.REPORT_DISCARDS) + 1
    rows = [
        tracefiles.row(event, at, "blue", topic=f"t{at}", client=f"c{at}")
        for at in range(beyond)
        for event in ("ingress", "discard")
    ]
    tracefiles.write(tmp_path / "traces", "edge", rows)
    prepare(tmp_path / "out")
    inventory = take_inventory([tmp_path / "traces"])
    found, _ = run_jobs(spark, inventory, tmp_path / "out", Quiet())
    assert (len(found.topics), found.topic_count) == (limits.REPORT_TOPICS, beyond)
    assert len(found.discards) == limits.REPORT_DISCARDS
    assert found.nodes[0]["discarded"] == beyond


def test_nothing_to_report_on_is_said_before_spark_starts(tmp_path: Path) -> None:
    """An empty directory, and one with damaged files only, are refused with every file named."""
    with pytest.raises(OperationError, match="nothing to report on"):
        build_report([tmp_path], tmp_path / "out")
    for number in range(12):
        (tmp_path / f"part-{number:02}.parquet").write_bytes(b"")
    with pytest.raises(OperationError) as refused:
        build_report([tmp_path], tmp_path / "out")
    lines = str(refused.value).splitlines()
    assert len(lines) == 12
    assert lines[1].endswith("part-00.parquet: empty: no bytes")
    assert lines[-1].strip() == "and 2 more"
    assert not (tmp_path / "out").exists()


def test_groupings_grow_with_the_traces(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A partition per million rows, between the two bounds."""
    traces(tracefiles, tmp_path, messages=2)
    (file, *_) = take_inventory([tmp_path]).files

    def partitions(rows: int) -> int:
        grown = type(file)(**{**vars(file), "rows": rows})
        return report.partitions_for(Inventory(files=(grown,), set_aside=()))

    assert partitions(5) == limits.REPORT_SHUFFLE_PARTITIONS
    assert partitions(50_000_000) == 50
    assert partitions(10**12) == limits.REPORT_SHUFFLE_PARTITIONS_MOST
