"""A report that is kept up to date while routers write traces.

Two streams over the same files, each with a checkpoint of its own: one digests file by file; the other keeps
the messages that are under way and gives them out when the watermark has passed. Both add to one store of
digests, each batch exactly once, and from the store the whole report is derived anew.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_DIGEST_FILES
from vpnrouter.topology.analysis import Analysis, analyse
from vpnrouter.topology.digests.combine import combined
from vpnrouter.topology.digests.digest import Digests
from vpnrouter.topology.digests.schema import DIGESTS
from vpnrouter.topology.digests.sums import stretch_of
from vpnrouter.topology.engine.progress import Progress
from vpnrouter.topology.flows.stretches import width_for
from vpnrouter.topology.follow.digesting import MESSAGES, ROWS, Digesting
from vpnrouter.topology.follow.meetings import met
from vpnrouter.topology.follow.source import files_of, stream_of
from vpnrouter.topology.follow.store import FOLDER, DigestStore
from vpnrouter.topology.input.inventory import Inventory, take_inventory
from vpnrouter.topology.output import HTML, write_report
from vpnrouter.topology.report import Asked, spark_for
from vpnrouter.topology.summary import Summary, summary_of

CHECKPOINTS: Final = "checkpoints"
WIDTH_NS: Final = 10_000_000_000
"""Stretches of a report that goes on: it has no end yet that its stretches could be fitted to."""

_POLL_S: Final = 0.2


@dataclass(frozen=True, kw_only=True)
class Pace:
    """`every_s` seconds lie between two looks for files; `late_s` is how much later than others the rows of a
    message may come: a router keeps a file open for a minute, by default, before anybody sees it.
    """

    every_s: float = 5.0
    late_s: int = 90


class Follower:
    """Follows the traces of `asked` until `stop` says so; `published` hears of every report written."""

    def __init__(
        self,
        asked: Asked,
        pace: Pace,
        progress: Progress,
        published: Callable[[Summary], None],
    ) -> None:
        self._asked = asked
        self._pace = pace
        self._progress = progress
        self._published = published
        self._inventory = Inventory(files=(), set_aside=())
        self._fresh = threading.Event()
        self._lock = threading.Lock()

    def run(self, stop: Callable[[], bool]) -> None:
        """Follow.

        Raises:
            OperationError: a root is no directory, a file is of a newer format, the store is damaged or
                cannot be written, or Spark failed.
        """
        asked = self._asked
        known = take_inventory(asked.traces, leave_out=asked.output, span=asked.span)
        with spark_for(asked, known, self._progress, lasting=True) as spark:
            store = DigestStore(asked.output)
            self._require_both(store)
            if store.taken(ROWS) >= 0:
                self._inventory = known
            digesting = Digesting(spark, store, asked.span, WIDTH_NS, self._heard, self._hosts)
            queries = self._start(spark, digesting)
            try:
                self._watch(spark, digesting, queries, stop)
            finally:
                for query in queries:
                    query.stop()

    def _hosts(self) -> dict[str, frozenset[str]]:
        with self._lock:
            return self._inventory.hosts()

    def _require_both(self, store: DigestStore) -> None:
        """A stream's checkpoint and its digests say together what has been read: one alone would skip files."""
        folder = self._asked.output / CHECKPOINTS
        for name in (ROWS, MESSAGES):
            taken = store.taken(name) >= 0
            begun = (folder / name / "offsets" / "0").exists()
            done = (folder / name / "commits" / "0").exists()
            # A batch is noted when it begins, taken into the store, and noted as done: a crash may lie between.
            if (taken and not begun) or (done and not taken):
                raise OperationError(
                    f"{folder / name} and {self._asked.output / FOLDER} do not belong together: "
                    "remove both, or use another --output"
                )

    def _start(self, spark: SparkSession, digesting: Digesting) -> list[StreamingQuery]:
        asked = self._asked
        every = f"{round(self._pace.every_s * 1000)} milliseconds"
        rows = files_of(spark, asked.traces)
        messages = met(stream_of(spark, asked.traces, asked.span), self._pace.late_s)
        folder = (asked.output / CHECKPOINTS).resolve()
        return [
            frame.writeStream.queryName(name)
            .outputMode("append")
            .foreachBatch(take)
            .option("checkpointLocation", str(folder / name))
            .trigger(processingTime=every)
            .start()
            for name, frame, take in (
                (ROWS, rows, digesting.rows),
                (MESSAGES, messages, digesting.messages),
            )
        ]

    def _watch(
        self,
        spark: SparkSession,
        digesting: Digesting,
        queries: list[StreamingQuery],
        stop: Callable[[], bool],
    ) -> None:
        while True:
            stopping = stop()
            for query in queries:
                failed = query.exception()
                if failed is not None:
                    raise digesting.failure or failed
                if not query.isActive and not stopping:
                    raise OperationError(f"the stream of {query.name} has ended")
            if self._fresh.is_set():
                self._fresh.clear()
                self._publish(spark, digesting)
                digesting.compact(REPORT_DIGEST_FILES)
            if stopping:
                return
            self._fresh.wait(_POLL_S)

    def _publish(self, spark: SparkSession, digesting: Digesting) -> None:
        begun = time.monotonic()
        with self._lock:
            inventory = self._inventory
        frames = {name: digesting.frame(name).coalesce(1).persist() for name in DIGESTS}
        try:
            width_ns = _width_for(frames["places"])
            for name in ("places", "losses"):
                frames[name] = combined(name, _wider(frames[name], width_ns)).persist()
            digests = Digests(frames=frames, clocks=digesting.clocks())
            analysis = analyse(spark, digests, width_ns, self._progress.stage, self._asked.mesh)
        finally:
            for frame in frames.values():
                frame.unpersist()
        self._write(inventory, analysis, time.monotonic() - begun)

    def _write(self, inventory: Inventory, analysis: Analysis, seconds: float) -> None:
        output: Path = self._asked.output
        paged = HTML in self._asked.formats
        summary = summary_of(inventory, analysis, output, seconds, paged=paged)
        write_report(output, summary, analysis, self._asked.formats)
        self._published(summary)

    def _heard(self, came: Inventory) -> None:
        with self._lock:
            mine = self._inventory
            paths = {file.path for file in mine.files}
            self._inventory = replace(
                mine,
                files=(*mine.files, *(file for file in came.files if file.path not in paths)),
                set_aside=(*mine.set_aside, *came.set_aside),
            )
        self._fresh.set()


def _width_for(places: DataFrame) -> int:
    """The length of the stretches of a report that is as long as this by now: whole stretches of the digests."""
    ends = places.agg(F.min("first_ns"), F.max("last_ns")).first()
    if ends is None or ends[0] is None:
        return WIDTH_NS
    wanted = width_for(ends[1] - ends[0])
    return WIDTH_NS * max(1, -(-wanted // WIDTH_NS))


def _wider(digest: DataFrame, width_ns: int) -> DataFrame:
    return digest.withColumn("start_ns", stretch_of(F.col("start_ns"), width_ns))
