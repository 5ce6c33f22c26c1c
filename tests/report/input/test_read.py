"""vpnrouter.report.spark: files become one frame."""

from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from vpnrouter.errors import OperationError
from vpnrouter.report.inventory import Inventory, Span, take_inventory
from vpnrouter.report.schema import TRACES
from vpnrouter.report.spark import read_traces, read_until
from vpnrouter.trace.schema import ALWAYS_KEY

pytestmark = pytest.mark.spark

NAMES = ["odd %2F/+ü name", "007", "2013-01-01", "a=b", "true", " x", "back\\slash", "[a]{b}*?"]


def test_every_router_keeps_its_name(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Names that look like numbers, dates or patterns come back as written, wherever they stand."""
    root = tmp_path / "tr[a]ces {x} *?"
    rows = [tracefiles.row("ingress", 0, "blue")]
    for name in NAMES:
        tracefiles.write(root, name, rows)
    tracefiles.write(root / "loose", "free", rows, partitioned=False)
    tracefiles.write(root / "in", "inside", rows, router_inside=True)
    frame = read_traces(spark, take_inventory([root]))
    assertSchemaEqual(frame.schema, TRACES)
    found = sorted(row.router for row in frame.select("router").collect())
    assert found == sorted([*NAMES, "free", "inside"])


def test_columns_that_a_file_lacks_are_null(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """An older file without a column, and a newer one with another, are read all the same."""
    path = tracefiles.write(tmp_path, "edge", [tracefiles.row("ingress", 0, "blue", topic="t")])
    table = pq.read_table(path, partitioning=None).drop_columns(["reason"])
    pq.write_table(table.append_column("colour", pa.array(["red"])), path)
    (row,) = read_traces(spark, take_inventory([tmp_path])).collect()
    assert (row.topic, row.reason) == ("t", None)
    assert "colour" not in row


def weights(spark: SparkSession, root: Path) -> dict[str, float | None]:
    """The weight of each row, by its topic."""
    frame = read_traces(spark, take_inventory([root]))
    return {row.topic: row.weight for row in frame.select("topic", "weight").collect()}


def test_one_rate_weighs_every_row(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Where all routers trace at one rate, every row stands for as many messages."""
    for router in ("edge", "core"):
        rows = [tracefiles.row("deliver", 0, "v", topic=router)]
        tracefiles.write(tmp_path, router, rows, sample=0.25)
    assert weights(spark, tmp_path) == {"edge": 4.0, "core": 4.0}


def test_the_rate_is_that_of_the_first_router(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """With several rates a row has the weight of where its message entered, or none."""
    entered = {"origin_router": "edge", "origin_vpn": "blue"}
    at_edge = [tracefiles.row("ingress", 0, "blue", topic="published")]
    at_core = [
        tracefiles.row("bridge_receive", 0, "yellow", topic="bridged", **entered),
        tracefiles.row("deliver", 0, "yellow", topic="delivered"),
        tracefiles.row("ingress", 0, "yellow", topic="local"),
    ]
    tracefiles.write(tmp_path, "edge", at_edge, sample=0.5)
    tracefiles.write(tmp_path, "core", at_core, sample=1.0)
    assert weights(spark, tmp_path) == {
        "published": 2.0,
        "bridged": 2.0,
        "delivered": None,
        "local": 1.0,
    }


def test_no_stated_rate_is_no_weight(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Files that do not state their rate give counts, not estimates."""
    tracefiles.write(tmp_path, "edge", [tracefiles.row("ingress", 0, "blue", topic="t")])
    assert weights(spark, tmp_path) == {"t": None}


def test_no_file_is_an_error(spark: SparkSession) -> None:
    """An inventory without a readable file cannot become a frame."""
    with pytest.raises(OperationError, match="no readable trace file"):
        read_traces(spark, Inventory(files=(), set_aside=()))


def write_always(files: ModuleType, root: Path, router: str, sample: float) -> None:
    """A file of a router that records every discard: one message picked, one not, and 41 together."""
    rows = [
        files.row("ingress", 0, "v", topic=f"{router}/in"),
        files.row("discard", 0, "v", topic=f"{router}/picked", trace_id="1"),
        files.row("discard", 0, "v", topic=f"{router}/one", trace_id=None),
        files.row("discard", 0, "v", topic=f"{router}/many", trace_id=None, count=41),
    ]
    path = files.write(root, router, rows, sample=sample)
    table = pq.ParquetFile(path).read()
    metadata = table.schema.metadata | {ALWAYS_KEY.encode(): b"discard,reject"}
    pq.write_table(table.replace_schema_metadata(metadata), path)


@pytest.mark.parametrize("rates", [(0.25, 0.25), (0.25, 0.5), (1.0, 1.0)])
def test_what_is_always_recorded_stands_for_itself(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path, rates: tuple[float, float]
) -> None:
    """At one rate, at several, and where everything is traced: a row counts as often as it says."""
    for router, rate in zip(("edge", "core"), rates, strict=True):
        write_always(tracefiles, tmp_path, router, rate)
    assert weights(spark, tmp_path) == {
        f"{router}/{what}": weight
        for router, rate in zip(("edge", "core"), rates, strict=True)
        for what, weight in {"in": 1 / rate, "picked": 1.0, "one": 1.0, "many": 41.0}.items()
    }


def test_rows_of_a_time(spark: SparkSession, tracefiles: ModuleType, tmp_path: Path) -> None:
    """From its begin up to but not including its end; what was before is there for those who ask."""
    for part, times in enumerate([(0, 5), (8, 10, 15), (19, 20, 30), (40,)]):
        rows = [tracefiles.row("ingress", at, "v", topic=str(at)) for at in times]
        tracefiles.write(tmp_path, "edge", rows, part=part)
    start = tracefiles.START
    span = Span(since_ns=start + 10, until_ns=start + 20)
    inventory = take_inventory([tmp_path], span=span)
    found = read_traces(spark, inventory, span).collect()
    assert sorted(int(row.topic) for row in found) == [10, 15, 19]
    known = read_until(spark, inventory, span).collect()
    assert sorted(int(row.topic) for row in known) == [0, 5, 8, 10, 15, 19]
    assert read_traces(spark, inventory).count() == 6
