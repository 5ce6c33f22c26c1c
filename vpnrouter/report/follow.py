"""Keeps a report up to date while routers write traces: streams of files become digests on disk, batch by batch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_DIGEST_FILES, REPORT_FOLLOW_FILES
from vpnrouter.report.analysis import Analysis, analyse
from vpnrouter.report.build import engine_for
from vpnrouter.report.digests.columns import Corrections, ends, settled_by, with_bucket
from vpnrouter.report.digests.condense import WrongContexts, condensed
from vpnrouter.report.digests.counts import (
    ages,
    delays,
    endpoints,
    losses,
    paths,
    places,
    standing_at,
    states,
    usage,
    uses,
)
from vpnrouter.report.digests.digest import combined
from vpnrouter.report.digests.journeys import message
from vpnrouter.report.digests.merge import merged
from vpnrouter.report.digests.schema import DIGESTS, DOUBLES, HOPS
from vpnrouter.report.engine.failures import DamagedTraceFile, JavaEnded, spark_errors
from vpnrouter.report.engine.kept import KeptFrames
from vpnrouter.report.engine.progress import Progress
from vpnrouter.report.flows.clocks import clock_ages, clock_offsets
from vpnrouter.report.lakehouse.formats import LAKEHOUSE
from vpnrouter.report.output import HTML, Output, Summary, parquet_of, summary_of, write_report
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.schema import EDGE, TRACE_READ, Rows, conform
from vpnrouter.report.traces.inventory import (
    AHEAD_NS,
    OLDEST_NS,
    Inventory,
    read_footers,
    take_inventory,
)
from vpnrouter.report.traces.rows import narrowed, read_traces, wrong_times
from vpnrouter.report.traces.span import Span
from vpnrouter.report.traces.storage import (
    LOCAL,
    Storage,
    Storages,
    StoredFile,
    below,
    is_uri,
    without_links,
)
from vpnrouter.text import counted

WINDOW_S: Final = 5
"""Seconds of a window: what waits longest waits so much longer than it must."""

AHEAD: Final = "ahead"
"""The name under which the stream of messages tells how many rows it left out, since they entered in the future."""

_SLACK_SHARE: Final = 3
"""A third of the time for late rows is what it has above the longest time that a router keeps a file open: by so much a
clock may be ahead before rows of others are late for it.
"""

_EVENTS: Final = ("bridge_send", "bridge_receive", "deliver", "enqueue")
_PLACE: Final = ("kind", "router", "vpn", "who", "peer_router", "peer_vpn")


def message_places(traces: DataFrame, late_s: int) -> DataFrame:
    """Return a stream of one row for each message and place, when its window is `late_s` seconds past, from TRACES.

    Columns: `message`, `kind` (bridge, deliver, enqueue), `router`, `vpn`, `who`, the peer of a bridge,
    `trace_id`, `sent_ns`, `came_ns`, `last_ns`, `copies`.

    Messages that entered later than now are left out and counted (AHEAD): the clock of one router that is a day ahead
    would make the rows of all others late.
    """
    event = F.col("event")
    sending = event == "bridge_send"
    bridged = event.isin("bridge_send", "bridge_receive")
    of = ends(sending)
    receiver = F.when(event == "deliver", F.col("client")).otherwise(F.col("endpoint"))
    rows = traces.where(
        event.isin(*_EVENTS) & F.col("trace_id").isNotNull() & F.col("origin_ts_ns").isNotNull()
    ).select(
        [
            F.timestamp_seconds(F.col("origin_ts_ns") / 1_000_000_000).alias("entered"),
            message().alias("message"),
            F.when(bridged, "bridge").otherwise(event).alias("kind"),
            F.when(bridged, of["to_router"]).otherwise(F.col("router")).alias("router"),
            F.when(bridged, of["to_vpn"]).otherwise(F.col("vpn")).alias("vpn"),
            F.when(bridged, of["bridge"]).otherwise(receiver).alias("who"),
            F.when(bridged, of["from_router"]).alias("peer_router"),
            F.when(bridged, of["from_vpn"]).alias("peer_vpn"),
            "trace_id",
            F.when(sending, F.col("ts_ns")).alias("sent"),
            F.when(~sending, F.col("ts_ns")).alias("came"),
        ],
    )
    window = F.window("entered", f"{WINDOW_S} seconds")
    slack = F.make_interval(secs=F.lit(late_s / _SLACK_SHARE))
    is_ahead = F.col("entered") > F.current_timestamp() + slack
    return (
        rows.observe(AHEAD, F.count(F.when(is_ahead, F.lit(1))).alias(AHEAD))
        .where(~is_ahead)
        .withWatermark("entered", f"{late_s} seconds")
        .groupBy(window, "message", "trace_id", *_PLACE)
        .agg(
            F.min("sent").alias("sent_ns"),
            F.min("came").alias("came_ns"),
            F.max("came").alias("last_ns"),
            F.count("came").alias("copies"),
        )
        .drop("window")
    )


def hops(met: DataFrame, corrections: Corrections) -> DataFrame:
    """Return HOPS from rows of `message_places`."""
    crossed = met.where(
        (F.col("kind") == "bridge") & F.col("sent_ns").isNotNull() & F.col("came_ns").isNotNull()
    )
    clocks = corrections.between(F.col("peer_router"), F.col("router"))
    took = corrections.took(F.col("sent_ns"), F.col("came_ns"))
    named: dict[str, Column] = {
        "from_router": F.col("peer_router"),
        "from_vpn": F.col("peer_vpn"),
        "to_router": F.col("router"),
        "to_vpn": F.col("vpn"),
        "bridge": F.col("who"),
    }
    grouped = (
        with_bucket(crossed.select("*", *clocks), took)
        .groupBy(*(named[name].alias(name) for name in EDGE), "bucket")
        .agg(F.count(F.lit(1)).alias("count"))
    )
    return conform(settled_by(corrections, grouped, "from_router", "to_router"), HOPS)


def doubles(met: DataFrame) -> DataFrame:
    """Return DOUBLES of all kinds from rows of `message_places`."""
    again = (
        met.where(F.col("copies") > 1)
        .groupBy("kind", "router", "vpn", "who")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum(F.col("copies") - 1).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("came_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .withColumn("other", F.lit(None).cast("string"))
    )
    way = F.concat("peer_router", F.lit("/"), "peer_vpn", F.lit(":"), "who")
    two = (
        met.where((F.col("kind") == "bridge") & (F.col("copies") > 0))
        .groupBy("message", "router", "vpn")
        .agg(
            F.min(way).alias("who"),
            F.max(way).alias("other"),
            F.sum("copies").alias("came"),
            F.min("trace_id").alias("trace_id"),
            F.min("came_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .where(F.col("who") != F.col("other"))
        .groupBy("router", "vpn", "who", "other")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            F.sum(F.col("came") - 1).alias("copies"),
            F.min("trace_id").alias("example_trace"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .withColumn("kind", F.lit("two_ways"))
    )
    return conform(again, DOUBLES).unionByName(conform(two, DOUBLES))


FOLDER: Final = "digests"
CHECKPOINTS: Final = "checkpoints"
MANIFEST: Final = "manifest.json"
_FORMAT: Final = 4


class DigestStore:
    """The digests under `output`/digests on `storage`. Methods may be called from any thread.

    Raises:
        OperationError: the folder cannot be made or read, or is of another format.
    """

    def __init__(self, output: str, storage: Storage = LOCAL) -> None:
        self._folder = below(output, FOLDER)
        self._checkpoints = below(output, CHECKPOINTS)
        self._storage = storage
        self._lock = threading.Lock()
        storage.make(self._folder)
        self._manifest = self._read()
        self._clear()

    def taken(self, stream: str) -> int:
        """Return the last batch of a stream that was added, -1 if none."""
        with self._lock:
            return int(self._manifest["batches"].get(stream, -1))

    def add(self, stream: str, batch: int, tables: Mapping[str, pa.Table]) -> bool:
        """Add the tables of a batch, by the name of their digest. Return False when it was there already.

        Raises:
            OperationError: the files cannot be written; then nothing was added.
        """
        with self._lock:
            if batch <= int(self._manifest["batches"].get(stream, -1)):
                return False
            files = {name: [*listed] for name, listed in self._manifest["files"].items()}
            for name, table in tables.items():
                if table.num_rows:
                    file_name = f"{name}-{stream}-{batch}.parquet"
                    self._storage.write(self._at(file_name), parquet_of(table))
                    files.setdefault(name, []).append(file_name)
            batches = {**self._manifest["batches"], stream: batch}
            self._commit({"format": _FORMAT, "batches": batches, "files": files})
            return True

    def files(self, name: str) -> list[str]:
        """Return the files of a digest, oldest first."""
        with self._lock:
            return [self._at(one) for one in self._manifest["files"].get(name, [])]

    def replace(self, name: str, old: list[str], table: pa.Table) -> None:
        """Replace several files by one with their sum.

        Raises:
            OperationError: it cannot be written; then nothing has changed.
        """
        old_names = {path.rpartition("/")[2] for path in old}
        with self._lock:
            file_name = f"{name}-sum-{self._manifest.get('sums', 0) + 1}.parquet"
            self._storage.write(self._at(file_name), parquet_of(table))
            files = dict(self._manifest["files"])
            files[name] = [file_name, *(file for file in files[name] if file not in old_names)]
            changed = {**self._manifest, "files": files, "sums": self._manifest.get("sums", 0) + 1}
            self._commit(changed)
            for path in old:
                self._storage.remove(path)

    def _at(self, name: str) -> str:
        return below(self._folder, name)

    def _read(self) -> dict[str, Any]:
        path = self._at(MANIFEST)
        if not self._storage.exists(path):
            return {"format": _FORMAT, "batches": {}, "files": {}}
        try:
            manifest: dict[str, Any] = json.loads(self._storage.read(path))
            form = int(manifest["format"])
            named = [one for listed in manifest["files"].values() for one in listed]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OperationError(
                f"{path} is damaged: remove {self._folder}, or use another --output"
            ) from error
        if form != _FORMAT:
            other = "a newer" if form > _FORMAT else "an older"
            raise OperationError(
                f"{path} was written by {other} vpnrouter than this one: remove"
                f" {self._folder} and {self._checkpoints}, or use another --output"
            )
        there = {file.path.rpartition("/")[2] for file in self._storage.files(self._folder)}
        missing = [one for one in named if one not in there]
        if missing:
            raise OperationError(
                f"{self._folder} lacks {missing[0]}: remove it, or use another --output"
            )
        return manifest

    def _clear(self) -> None:
        named = {one for listed in self._manifest["files"].values() for one in listed}
        for file in self._storage.files(self._folder):
            if file.path.rpartition("/")[2] not in named:
                self._storage.remove(file.path)

    def _commit(self, manifest: dict[str, Any]) -> None:
        self._storage.write(self._at(MANIFEST), json.dumps(manifest).encode())
        self._manifest = manifest


_INSIDE = StructType([field for field in TRACE_READ.fields if field.name != "router"])

# Spark's columns for files of any format. The contents are read only if selected.
_FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)


def files_of(spark: SparkSession, roots: Sequence[str]) -> DataFrame:
    """Return the files under `roots` and those that will come: columns `path`, as URIs, and `length`, sound or not.

    Raises:
        OperationError: a root is no directory.
    """
    _require_directories(roots)
    frames = [_listed(spark, "binaryFile", _FILES).load(without_links(root)) for root in roots]
    return _together(frames).select("path", "length")


def stream_of(spark: SparkSession, roots: Sequence[str], span: Span) -> DataFrame:
    """Return the rows of all trace files under `roots` and of those that will come, from `span.since_ns` on.

    Columns of TRACE_FILE. Files whose contents cannot be read are passed over: who takes the batches names them.

    Raises:
        OperationError: a root is no directory.
    """
    _require_directories(roots)
    frames = [
        _listed(spark, "parquet", _INSIDE)
        .option("ignoreCorruptFiles", "true")
        .load(without_links(root))
        .withColumn("router", router_of(F.col("_metadata.file_path")))
        for root in roots
    ]
    now_ns = F.unix_micros(F.current_timestamp()) * 1_000
    rows = narrowed(_together(frames)).where(
        (F.col("ts_ns") >= OLDEST_NS) & (F.col("ts_ns") < now_ns + AHEAD_NS)
    )
    if span.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= span.since_ns)
    return rows


def _require_directories(roots: Sequence[str]) -> None:
    for root in roots:
        if not is_uri(root) and not Path(root).is_dir():
            raise OperationError(f"only a directory can be followed, not {root}")


def _listed(spark: SparkSession, form: str, schema: StructType) -> DataStreamReader:
    return (
        spark.readStream.format(form)
        .schema(schema)
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", REPORT_FOLLOW_FILES)
        .option("ignoreMissingFiles", "true")
        .option("pathGlobFilter", "part-*.parquet")
    )


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows


def router_of(path: Column) -> Column:
    """Return the router in the path of a file, which Spark gives as a URI of an escaped name."""
    escaped = F.regexp_extract(path, "/router=([^/]+)/[^/]+$", 1)
    return _decoded(_decoded(escaped))


def _decoded(text: Column) -> Column:
    # What decodes forms takes a plus for a space.
    return F.url_decode(F.regexp_replace(text, r"\+", "%2B"))


ROWS: Final = "rows"
MESSAGES: Final = "messages"
"""The names of the two streams in the store: one digests rows, the other follows messages."""


class DigestWriter:
    """Writes the digests of both streams' batches into `store`; calls `on_batch` with the files of each.

    `known` gives the files of batches before, whose contents do not count again. `failure` is why a batch was not
    taken: Java passes an exception of Python on without its message. `notes` are sentences about rows that were left
    out.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: DigestStore,
        span: Span,
        width_ns: int,
        on_batch: Callable[[Inventory], None],
        known: Callable[[], Inventory] = lambda: Inventory(files=(), set_aside=()),
        traces: Storages | None = None,
    ) -> None:
        self._traces = traces
        self._spark = spark
        self._store = store
        self._span = span
        self._width_ns = width_ns
        self._on_batch = on_batch
        self._known = known
        self.failure: OperationError | None = None
        self.notes: list[str] = []

    @contextmanager
    def _keeping_failure(self) -> Iterator[None]:
        try:
            yield
        except OperationError as error:
            self.failure = error
            raise

    def rows(self, batch: DataFrame, number: int) -> None:
        """Take in a batch of the first stream: the names of new files.

        Raises:
            OperationError: a file is of a newer format, or the store cannot be written.
        """
        with self._keeping_failure():
            self._rows(batch, number)

    def _rows(self, batch: DataFrame, number: int) -> None:
        if number <= self._store.taken(ROWS):
            return
        files = sorted(StoredFile(_path(row["path"]), row["length"]) for row in batch.collect())
        inventory = read_footers(files, known=self._known().files, storages=self._traces)
        tables: dict[str, pa.Table] = {}
        while inventory.files:
            try:
                with spark_errors():
                    tables, rows = self._digests(inventory)
                    self.notes += wrong_times(self._spark, inventory, rows)
                break
            except DamagedTraceFile as damaged:
                if all(file.path != damaged.path for file in inventory.files):
                    raise
                inventory = inventory.without(damaged.path, "damaged: its contents cannot be read")
        self._store.add(ROWS, number, tables)
        self._on_batch(inventory)

    def _digests(self, inventory: Inventory) -> tuple[dict[str, pa.Table], int | None]:
        """Return the digests of files, and of how many rows they are; None where the request has a begin."""
        try:
            return self._digests_of(inventory, with_contexts=True)
        except WrongContexts:
            return self._digests_of(inventory, with_contexts=False)

    def _digests_of(
        self, inventory: Inventory, *, with_contexts: bool
    ) -> tuple[dict[str, pa.Table], int | None]:
        traces = read_traces(self._spark, inventory, self._span, with_contexts=with_contexts)
        with KeptFrames(small=True) as kept:
            rows = condensed(traces, self._width_ns, lambda _, frame: kept.keep(frame), small=True)
            aged = ages(rows, self._width_ns).toArrow()
            corrections = Corrections(self.clocks(aged))
            # Those of before as well: what they say counts when the report begins with it.
            standing = states(rows.in_full)
            since_ns = self._span.since_ns
            now = standing if since_ns is None else standing.where(F.col("ts_ns") >= since_ns)
            frames = {
                "states": standing,
                "places": places(rows, now, self._width_ns),
                "paths": paths(rows),
                "uses": uses(rows),
                "losses": losses(rows, self._width_ns),
                "endpoints": endpoints(rows, self._width_ns),
                "usage": usage(rows),
                "delays": delays(rows, corrections),
            }
            tables = {"ages": aged, **{name: frame.toArrow() for name, frame in frames.items()}}
            return tables, rows.count if since_ns is None else None

    def messages(self, batch: DataFrame, number: int) -> None:
        """Take in a batch of the second stream: messages that are complete.

        Raises:
            OperationError: the store cannot be written.
        """
        with self._keeping_failure():
            self._messages(batch, number)

    def _messages(self, batch: DataFrame, number: int) -> None:
        if number <= self._store.taken(MESSAGES):
            return
        with KeptFrames() as kept:
            complete = kept.keep(batch)
            tables = {
                "hops": hops(complete, Corrections(self.clocks())).toArrow(),
                "doubles": doubles(complete).toArrow(),
            }
        self._store.add(MESSAGES, number, tables)
        # A report that would say the same as the last one only makes the next one wait.
        if any(table.num_rows for table in tables.values()):
            self._on_batch(Inventory(files=(), set_aside=()))

    def clocks(self, more: pa.Table | None = None) -> Rows:
        """Return rows of CLOCKS up to now, with what the AGES of a batch add that is not in the store yet."""
        known = clock_ages(self.frame("ages"), None if more is None else more.to_pylist())
        return clock_offsets(known, self._known().hosts())

    def frame(self, name: str) -> DataFrame:
        """Return a digest up to now."""
        files = self._store.files(name)
        if not files:
            # As an Arrow table, Spark takes it without a Python process of its own.
            empty = to_arrow_schema(DIGESTS[name]).empty_table()
            return self._spark.createDataFrame(empty, DIGESTS[name])
        parts = self._spark.read.schema(DIGESTS[name]).parquet(*files)
        whole = combined(name, parts)
        return standing_at(whole, self._span.since_ns) if name == "states" else whole

    def compact(self, most: int) -> None:
        """Put one file in the place of many, for each digest that has more than `most`."""
        for name in DIGESTS:
            files = self._store.files(name)
            if len(files) > most:
                parts = self._spark.read.schema(DIGESTS[name]).parquet(*files)
                self._store.replace(name, files, combined(name, parts).toArrow())


def _path(uri: str) -> str:
    return unquote(urlparse(uri).path) if uri.startswith("file:") else uri


WIDTH_NS: Final = 10_000_000_000
"""Stretches of a report that goes on: it has no end yet that its stretches could be fitted to."""

_POLL_S: Final = 0.2
_GRACE_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class FollowTimes:
    """`every_s` seconds lie between two looks for files; `late_s` is how much later than others the rows of a message
    may come. A router keeps a file open for a minute by default before it appears.
    """

    every_s: float = 5.0
    late_s: int = 90


class LateRows:
    """Counts the rows that the stream of messages leaves out, from the start of this command on."""

    def __init__(self) -> None:
        self._batch = -1
        self._late = 0
        self._ahead = 0

    def add(self, progress: Sequence[Mapping[str, Any]]) -> bool:
        """Take in what Spark tells of the last batches, known ones too. Return whether new ones left out rows."""
        before = self._late + self._ahead
        for one in progress:
            if one["batchId"] <= self._batch:
                continue
            self._batch = one["batchId"]
            for operator in one["stateOperators"]:
                self._late += operator["numRowsDroppedByWatermark"]
            self._ahead += one["observedMetrics"].get(AHEAD, {AHEAD: 0})[AHEAD]
        return self._late + self._ahead > before

    def notes(self) -> list[str]:
        """Return a sentence for each reason for which rows were left out."""
        told = {
            "came later than --late allows": self._late,
            "are of messages that entered in the future: a router's clock is ahead": self._ahead,
        }
        return [
            f"{counted(many, 'row')} of the traces {why}. They count in no latency over a bridge, and not as copies."
            for why, many in told.items()
            if many
        ]


class Follower:
    """Follows the traces of `request` until `stop` returns true; calls `on_report` after every report."""

    def __init__(
        self,
        request: ReportRequest,
        pace: FollowTimes,
        progress: Progress,
        on_report: Callable[[Summary], None],
    ) -> None:
        self._request = request
        self._pace = pace
        self._progress = progress
        self._on_report = on_report
        self._inventory = Inventory(files=(), set_aside=())
        self._output = Output(request.output)
        self._late = LateRows()
        self._fresh = threading.Event()
        self._lock = threading.Lock()

    def run(self, stop: Callable[[], bool]) -> None:
        """Follow until `stop` returns true.

        Raises:
            OperationError: a root is no directory, a file is of a newer format, the store is damaged or
                cannot be written, or Spark failed.
        """
        try:
            self._run(stop)
        except JavaEnded:
            # Who stops all processes together stops Java too, and that may be known first.
            give_up_s = time.monotonic() + _GRACE_S
            while not stop():
                if time.monotonic() > give_up_s:
                    raise
                self._fresh.wait(_POLL_S)

    def _run(self, stop: Callable[[], bool]) -> None:
        request = self._request
        if request.spark.connect:
            raise OperationError("--follow runs beside its Spark driver: it cannot use --connect")
        if request.formats & LAKEHOUSE:
            raise OperationError(
                "--follow writes every few seconds, and lakehouse tables keep each state: leave them out"
            )
        known = self._inventory_by(Storages()) if request.is_here else None
        with engine_for(request, None, self._progress, lasting=True) as engine:
            spark = engine.spark
            self._output = engine.output
            known = known or self._inventory_by(engine.traces)
            store = DigestStore(request.output, engine.output.storage)
            self._require_both(store)
            if store.taken(ROWS) >= 0:
                self._inventory = known
            writer = DigestWriter(
                spark, store, request.span, WIDTH_NS, self._add_files, self._known, engine.traces
            )
            queries = self._start(spark, writer)
            try:
                self._watch(spark, writer, queries, stop)
            finally:
                for query in queries:
                    query.stop()

    def _inventory_by(self, storages: Storages) -> Inventory:
        request = self._request
        return take_inventory(
            request.traces, leave_out=request.output, span=request.span, storages=storages
        )

    def _known(self) -> Inventory:
        with self._lock:
            return self._inventory

    def _require_both(self, store: DigestStore) -> None:
        """Refuse a stream's checkpoint without its digests, or these without it: one alone would skip files."""
        folder = below(self._request.output, CHECKPOINTS)
        there = self._output.storage.exists
        for name in (ROWS, MESSAGES):
            has_digests = store.taken(name) >= 0
            has_checkpoint = there(f"{folder}/{name}/offsets/0")
            done = there(f"{folder}/{name}/commits/0")
            # A batch is noted when it begins, taken into the store, and noted as done: a crash may lie between.
            if (has_digests and not has_checkpoint) or (done and not has_digests):
                raise OperationError(
                    f"{folder}/{name} and {below(self._request.output, FOLDER)} do not belong together: "
                    "remove both, or use another --output"
                )

    def _start(self, spark: SparkSession, writer: DigestWriter) -> list[StreamingQuery]:
        request = self._request
        every = f"{round(self._pace.every_s * 1000)} milliseconds"
        rows = files_of(spark, request.traces)
        messages = message_places(stream_of(spark, request.traces, request.span), self._pace.late_s)
        folder = without_links(below(request.output, CHECKPOINTS))
        return [
            frame.writeStream.queryName(name)
            .outputMode("append")
            .foreachBatch(take)
            .option("checkpointLocation", f"{folder}/{name}")
            .trigger(processingTime=every)
            .start()
            for name, frame, take in (
                (ROWS, rows, writer.rows),
                (MESSAGES, messages, writer.messages),
            )
        ]

    def _watch(
        self,
        spark: SparkSession,
        writer: DigestWriter,
        queries: list[StreamingQuery],
        stop: Callable[[], bool],
    ) -> None:
        while True:
            stopping = stop()
            for query in queries:
                # In this order: a query that fails in between has its exception by the time it is read.
                active = query.isActive
                failed = query.exception()
                if failed is not None:
                    raise writer.failure or failed
                if not active and not stopping:
                    raise OperationError(f"the stream of {query.name} has ended")
                if query.name == MESSAGES and self._late.add(query.recentProgress):
                    self._fresh.set()
            if self._fresh.is_set():
                self._fresh.clear()
                self._publish(spark, writer)
                writer.compact(REPORT_DIGEST_FILES)
            if stopping:
                return
            self._fresh.wait(_POLL_S)

    def _publish(self, spark: SparkSession, writer: DigestWriter) -> None:
        begin_s = time.monotonic()
        inventory = self._known()
        parts = {name: writer.frame(name) for name in DIGESTS}
        request = self._request
        with merged(parts, inventory.hosts(), WIDTH_NS) as (digests, width_ns):
            analysis = analyse(
                spark,
                digests,
                width_ns,
                self._progress.stage,
                request.mesh,
                questions=request.questions,
            )
        notes = [*writer.notes, *self._late.notes(), *analysis.notes]
        analysis = replace(analysis, notes=notes)
        self._write(inventory, analysis, time.monotonic() - begin_s)

    def _write(self, inventory: Inventory, analysis: Analysis, seconds: float) -> None:
        paged = HTML in self._request.formats
        summary = summary_of(inventory, analysis, self._output.place, seconds, paged=paged)
        write_report(self._output, summary, analysis, self._request.formats)
        self._on_report(summary)

    def _add_files(self, batch: Inventory) -> None:
        with self._lock:
            mine = self._inventory
            # After a restart, the files of a batch that had begun are known already.
            paths = {file.path for file in mine.files}
            files = (*mine.files, *(file for file in batch.files if file.path not in paths))
            self._inventory = replace(mine, files=files).without_any(batch.set_aside)
        self._fresh.set()
