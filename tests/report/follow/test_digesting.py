"""vpnrouter.report.follow: what each batch of a stream adds."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertSchemaEqual

from vpnrouter.errors import OperationError
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.digests.sums import middle_ns
from vpnrouter.report.follow import MESSAGES, ROWS, Digesting, DigestStore, met
from vpnrouter.report.inventory import Inventory, Span

pytestmark = pytest.mark.spark

MS = 1_000_000
SECOND = 1_000_000_000


class Made:
    """A store, what fills it, and what it told."""

    def __init__(self, spark: SparkSession, folder: Path, span: Span) -> None:
        self.heard: list[Inventory] = []
        self.store = DigestStore(folder)
        self.digesting = Digesting(spark, self.store, span, SECOND, self.heard.append)
        self._spark = spark

    def rows(self, number: int, *paths: Path) -> None:
        """A batch of the first stream."""
        uris = [(path.as_uri(),) for path in paths]
        self.digesting.rows(self._spark.createDataFrame(uris, "path string"), number)

    def counts(self, name: str, event: str) -> int:
        """How many trace rows of an event a digest stands for."""
        rows = self.digesting.frame(name).where(f"event = '{event}'").collect()
        return sum(row["count"] for row in rows)


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Callable[..., Made]:
    """Makes a store in the test's folder, or opens it again."""

    def made(span: Span | None = None) -> Made:
        return Made(spark, tmp_path / "out", span or Span())

    return made


def written(files: ModuleType, root: Path, numbers: range, part: int = 0) -> list[Path]:
    """Messages that cross from edge/blue to core/yellow, in a file of each router."""
    edge: list[Any] = []
    core: list[Any] = []
    for number in numbers:
        sent, came = files.crossing(number, sent_ns=MS, received_ns=7 * MS)
        edge += sent
        core += came
    return [
        files.write(root, name, rows, part=part) for name, rows in (("edge", edge), ("co re", core))
    ]


def test_each_batch_counts_once(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A batch adds what its files hold; run again, by this process or by the next, it adds nothing."""
    first = written(tracefiles, tmp_path / "tr aces", range(1, 4))
    made = make()
    assert made.digesting.clocks() == []
    made.rows(0, *first)
    made.rows(0, *first)
    assert (made.store.taken(ROWS), made.store.taken(MESSAGES)) == (0, -1)
    assert [[file.path for file in one.files] for one in made.heard] == [sorted(first)]
    again = make()
    again.rows(0, *first)
    assert again.heard == []
    again.rows(1, *written(tracefiles, tmp_path / "tr aces", range(4, 6), part=1))
    assert [again.counts("places", one) for one in ("bridge_send", "bridge_receive")] == [5, 5]
    assert again.counts("uses", "deliver") == 5
    (way,) = again.digesting.frame("paths").collect()
    assert (way["router"], way["peer_router"], way["count"]) == ("co re", "edge", 5)
    assert {row["router"] for row in again.digesting.clocks()} == {"co re", "edge"}
    # Many files become one, and say the same.
    again.digesting.compact(1)
    files = {name: len(again.store.files(name)) for name in DIGESTS}
    assert {name for name in DIGESTS if files[name]} == {"places", "paths", "uses", "delays"}
    assert max(files.values()) == 1
    assert again.counts("places", "bridge_send") == 5
    for name, schema in DIGESTS.items():
        assertSchemaEqual(again.digesting.frame(name).schema, schema)


def test_only_rows_of_the_time_asked_for(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """What was before does not count."""
    made = make(Span(since_ns=tracefiles.START + 3 * SECOND))
    made.rows(0, *written(tracefiles, tmp_path / "traces", range(1, 6)))
    assert made.counts("places", "ingress") == 3


def test_what_cannot_be_read_is_named(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """A cut file, and one whose contents are damaged behind a sound footer; the rest counts."""
    sound = written(tracefiles, tmp_path / "traces", range(1, 4))
    rows = [tracefiles.row("ingress", at, "v", topic=f"t{at}") for at in range(3_000)]
    worse = tracefiles.write(tmp_path / "traces", "odd name", rows)
    contents = bytearray(worse.read_bytes())
    contents[8 : len(contents) // 2] = bytes(one ^ 0x5A for one in contents[8 : len(contents) // 2])
    worse.write_bytes(contents)
    assert pq.read_metadata(worse).num_rows == 3_000
    cut = sound[0].parent / "part-00009.parquet"
    cut.write_bytes(b"PAR1")
    made = make()
    made.rows(0, cut, worse, *sound)
    (heard,) = made.heard
    assert [one.path for one in heard.set_aside] == [cut, worse]
    assert [one.path for one in heard.files] == sorted(sound)
    assert made.counts("places", "ingress") == 3
    made.rows(1, cut)
    assert (made.store.taken(ROWS), made.counts("places", "ingress")) == (1, 3)


def test_a_newer_format_is_refused(
    make: Callable[..., Made], tracefiles: ModuleType, tmp_path: Path
) -> None:
    """The batch is not taken, so that a newer program finds it."""
    row = tracefiles.row("ingress", 0, "blue")
    path = tracefiles.write(tmp_path / "traces", "edge", [row], version=99)
    made = make()
    with pytest.raises(OperationError, match="newer"):
        made.rows(0, path)
    assert (made.store.taken(ROWS), made.heard) == (-1, [])


def test_messages_that_are_complete(
    make: Callable[..., Made], frame_of: Callable[..., DataFrame], tracefiles: ModuleType
) -> None:
    """Their times and their copies, each batch once."""
    rows: dict[str, list[Any]] = {"edge": [], "core": []}
    for number in range(1, 4):
        sent, came = tracefiles.crossing(number, sent_ns=MS, received_ns=7 * MS)
        rows["edge"] += sent
        rows["core"] += came
    rows["core"].append(rows["core"][-1])
    made = make()
    for number in (0, 0, 1):
        made.digesting.messages(met(frame_of(rows), 10), number)
    assert (made.store.taken(ROWS), made.store.taken(MESSAGES)) == (-1, 1)
    assert made.heard == [Inventory(files=(), set_aside=())] * 2
    (hop,) = made.digesting.frame("hops").collect()
    assert hop["count"] == 6
    assert middle_ns(hop["bucket"]) == pytest.approx(6 * MS, rel=0.02)
    (double,) = made.digesting.frame("doubles").collect()
    assert (double["kind"], double["who"], double["copies"]) == ("deliver", "board", 2)
