"""Digests on disk that grow batch by batch, each batch exactly once, and the rows of one message met in a stream.

The rows of one message met in a stream, wherever and whenever they come in.

A message's rows all say when it first entered a router; the stream is cut into windows by that time, so all rows of a
message fall into one window, and a window is done with when the watermark has passed it. What comes
later than that is dropped, and counted by Spark. Each window's messages come out once.

`DIR/digests/` holds Parquet files and `manifest.json`, which says which of them count and which batch of each
stream was the last one. A batch writes its files and then replaces the manifest, in one rename: a batch that is
run again after a crash finds that it has been taken, or finds nothing of itself. Files that no
manifest names are rests of a crash and go at the next start.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.topology.digests.buckets import bucket
from vpnrouter.topology.digests.journeys import message
from vpnrouter.topology.digests.schema import DOUBLES, HOPS
from vpnrouter.topology.digests.sums import EDGE, Corrections, ends
from vpnrouter.topology.schema import conform

WINDOW_S: Final = 5
"""Seconds of a window: what waits longest waits so much longer than it must."""

_EVENTS: Final = ("bridge_send", "bridge_receive", "deliver", "enqueue")
_PLACE: Final = ("kind", "router", "vpn", "who", "peer_router", "peer_vpn")


def met(traces: DataFrame, late_s: int) -> DataFrame:
    """A stream of TRACES rows in; one row a message and place out, when its window is `late_s` seconds past.

    Columns: `message`, `kind` (bridge, deliver, enqueue), `router`, `vpn`, `who`, the peer of a bridge,
    `trace_id`, `sent_ns`, `came_ns`, `last_ns`, `copies`.
    """
    event = F.col("event")
    sending = event == "bridge_send"
    bridged = event.isin("bridge_send", "bridge_receive")
    of = ends(sending)
    receiver = F.when(event == "deliver", F.col("client")).otherwise(F.col("endpoint"))
    rows = traces.where(
        event.isin(*_EVENTS) & F.col("trace_id").isNotNull() & F.col("origin_ts_ns").isNotNull()
    ).select(
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
    )
    window = F.window("entered", f"{WINDOW_S} seconds")
    return (
        rows.withWatermark("entered", f"{late_s} seconds")
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
    """What `met` gave in, HOPS out."""
    crossed = met.where(
        (F.col("kind") == "bridge") & F.col("sent_ns").isNotNull() & F.col("came_ns").isNotNull()
    )
    correction = corrections.between(F.col("peer_router"), F.col("router"))
    took = F.col("came_ns") - F.col("sent_ns") - correction
    named: dict[str, Column] = {
        "from_router": F.col("peer_router"),
        "from_vpn": F.col("peer_vpn"),
        "to_router": F.col("router"),
        "to_vpn": F.col("vpn"),
        "bridge": F.col("who"),
    }
    grouped = crossed.groupBy(
        *(named[name].alias(name) for name in EDGE), bucket(took).alias("bucket")
    ).agg(F.count(F.lit(1)).alias("count"))
    return conform(grouped, HOPS)


def doubles(met: DataFrame) -> DataFrame:
    """What `met` gave in, DOUBLES out, of all kinds."""
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
MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1


class DigestStore:
    """The digests under `output`/digests. Methods may be called from any thread.

    Raises:
        OperationError: the folder cannot be made or read, or is of a newer format.
    """

    def __init__(self, output: Path) -> None:
        self._folder = output / FOLDER
        self._lock = threading.Lock()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._manifest = self._read()
            self._clear()
        except OSError as error:
            raise OperationError(
                f"cannot keep digests in {self._folder}: {error.strerror}"
            ) from error

    def taken(self, stream: str) -> int:
        """The last batch of a stream that was added, -1 before the first."""
        with self._lock:
            return int(self._manifest["batches"].get(stream, -1))

    def add(self, stream: str, batch: int, tables: Mapping[str, pa.Table]) -> bool:
        """Add what a batch gave, tables by the name of their digest; False when it was there already.

        Raises:
            OperationError: the files cannot be written; then nothing was added.
        """
        with self._lock:
            if batch <= int(self._manifest["batches"].get(stream, -1)):
                return False
            files = {name: [*listed] for name, listed in self._manifest["files"].items()}
            for name, table in tables.items():
                if table.num_rows:
                    written = f"{name}-{stream}-{batch}.parquet"
                    self._write(written, table)
                    files.setdefault(name, []).append(written)
            batches = {**self._manifest["batches"], stream: batch}
            self._commit({"format": _FORMAT, "batches": batches, "files": files})
            return True

    def files(self, name: str) -> list[Path]:
        """The files of a digest, oldest first."""
        with self._lock:
            return [self._folder / one for one in self._manifest["files"].get(name, [])]

    def replace(self, name: str, old: list[Path], table: pa.Table) -> None:
        """Put one file in the place of several that hold the same in sum.

        Raises:
            OperationError: it cannot be written; then nothing has changed.
        """
        gone = {path.name for path in old}
        with self._lock:
            written = f"{name}-sum-{self._manifest.get('sums', 0) + 1}.parquet"
            self._write(written, table)
            files = dict(self._manifest["files"])
            files[name] = [written, *(one for one in files[name] if one not in gone)]
            changed = {**self._manifest, "files": files, "sums": self._manifest.get("sums", 0) + 1}
            self._commit(changed)
            for path in old:
                path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        path = self._folder / MANIFEST
        if not path.exists():
            return {"format": _FORMAT, "batches": {}, "files": {}}
        try:
            manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            newer = int(manifest["format"]) > _FORMAT
            named = [one for listed in manifest["files"].values() for one in listed]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OperationError(
                f"{path} is damaged: remove {self._folder}, or use another --output"
            ) from error
        if newer:
            raise OperationError(f"{path} was written by a newer vpnrouter than this one")
        missing = [one for one in named if not (self._folder / one).exists()]
        if missing:
            raise OperationError(
                f"{self._folder} lacks {missing[0]}: remove it, or use another --output"
            )
        return manifest

    def _clear(self) -> None:
        named = {one for listed in self._manifest["files"].values() for one in listed}
        for path in self._folder.glob("*.parquet"):
            if path.name not in named:
                path.unlink()

    def _write(self, name: str, table: pa.Table) -> None:
        try:
            pq.write_table(table, self._folder / name, compression="zstd")
        except OSError as error:
            (self._folder / name).unlink(missing_ok=True)
            raise OperationError(f"cannot write {self._folder / name}: {error.strerror}") from error

    def _commit(self, manifest: dict[str, Any]) -> None:
        partial = self._folder / f".{MANIFEST}"
        try:
            partial.write_text(json.dumps(manifest), encoding="utf-8")
            partial.replace(self._folder / MANIFEST)
        except OSError as error:
            raise OperationError(
                f"cannot write {self._folder / MANIFEST}: {error.strerror}"
            ) from error
        self._manifest = manifest
