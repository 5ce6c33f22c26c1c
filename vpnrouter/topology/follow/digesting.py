"""What each batch of a stream does: digests into the store, once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from vpnrouter.errors import OperationError
from vpnrouter.topology.digests.combine import combined
from vpnrouter.topology.digests.corrections import Corrections
from vpnrouter.topology.digests.delays import delays
from vpnrouter.topology.digests.endpoints import endpoints
from vpnrouter.topology.digests.losses import losses
from vpnrouter.topology.digests.paths import paths
from vpnrouter.topology.digests.places import places
from vpnrouter.topology.digests.schema import DIGESTS
from vpnrouter.topology.digests.states import standing_at, states
from vpnrouter.topology.digests.uses import uses
from vpnrouter.topology.engine.session import DamagedTraceFile, spark_errors
from vpnrouter.topology.flows.clocks import clock_offsets, least_ages
from vpnrouter.topology.follow.meetings import doubles, hops
from vpnrouter.topology.follow.store import DigestStore
from vpnrouter.topology.input.inventory import Inventory, look_at_all
from vpnrouter.topology.input.read import read_traces, read_until
from vpnrouter.topology.input.span import Span
from vpnrouter.topology.tables import Rows

ROWS: Final = "rows"
MESSAGES: Final = "messages"
"""The names of the two streams in the store: one digests rows, the other follows messages."""


class Digesting:
    """Takes the batches of both streams into `store`; `heard` is told of each, with the files it brought.

    `hosts` gives the machines of routers, as far as files were heard of.
    `failure` is why a batch was not taken: Java hands on an exception of Python as a text that says nothing.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: DigestStore,
        span: Span,
        width_ns: int,
        heard: Callable[[Inventory], None],
        hosts: Callable[[], Mapping[str, frozenset[str]]] = dict,
    ) -> None:
        self._spark = spark
        self._store = store
        self._span = span
        self._width_ns = width_ns
        self._heard = heard
        self._hosts = hosts
        self.failure: OperationError | None = None

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OperationError as error:
            self.failure = error
            raise

    def rows(self, batch: DataFrame, number: int) -> None:
        """A batch of the first stream, which says what files there are. They are read as a report reads them.

        Raises:
            OperationError: a file is of a newer format, or the store cannot be written.
        """
        with self._noted():
            self._rows(batch, number)

    def _rows(self, batch: DataFrame, number: int) -> None:
        if number <= self._store.taken(ROWS):
            return
        inventory = look_at_all(sorted(_path(row["path"]) for row in batch.collect()))
        tables: dict[str, pa.Table] = {}
        while inventory.files:
            try:
                with spark_errors():
                    tables = self._digests(inventory)
                break
            except DamagedTraceFile as damaged:
                if all(file.path != damaged.path for file in inventory.files):
                    raise
                inventory = inventory.without(damaged.path, "damaged: its contents cannot be read")
        self._store.add(ROWS, number, tables)
        self._heard(inventory)

    def _digests(self, inventory: Inventory) -> dict[str, pa.Table]:
        traces = read_traces(self._spark, inventory, self._span)
        frames = {
            # Those of before as well: what they say counts when the report begins with it.
            "states": states(read_until(self._spark, inventory, self._span)),
            "places": places(traces, states(traces), self._width_ns),
            "paths": paths(traces),
            "uses": uses(traces),
            "losses": losses(traces, self._width_ns),
            "endpoints": endpoints(traces),
            "delays": delays(traces, Corrections(self.clocks())),
        }
        return {name: frame.toArrow() for name, frame in frames.items()}

    def messages(self, batch: DataFrame, number: int) -> None:
        """A batch of the second stream: messages that are complete.

        Raises:
            OperationError: the store cannot be written.
        """
        with self._noted():
            self._messages(batch, number)

    def _messages(self, batch: DataFrame, number: int) -> None:
        if number <= self._store.taken(MESSAGES):
            return
        batch.persist()
        try:
            tables = {
                "hops": hops(batch, Corrections(self.clocks())).toArrow(),
                "doubles": doubles(batch).toArrow(),
            }
        finally:
            batch.unpersist()
        self._store.add(MESSAGES, number, tables)
        # A report that would say the same as the last one only makes the next one wait.
        if any(table.num_rows for table in tables.values()):
            self._heard(Inventory(files=(), set_aside=()))

    def clocks(self) -> Rows:
        """What the clocks show up to now: rows of CLOCKS."""
        found: Rows = least_ages(self.frame("paths")).toArrow().to_pylist()
        return clock_offsets(found, self._hosts())

    def frame(self, name: str) -> DataFrame:
        """A digest up to now."""
        files = self._store.files(name)
        if not files:
            # As an Arrow table, Spark takes it without a Python process of its own.
            empty = to_arrow_schema(DIGESTS[name]).empty_table()
            return self._spark.createDataFrame(empty, DIGESTS[name])
        parts = self._spark.read.schema(DIGESTS[name]).parquet(*map(str, files))
        whole = combined(name, parts)
        return standing_at(whole, self._span.since_ns) if name == "states" else whole

    def compact(self, most: int) -> None:
        """Put one file in the place of many, for each digest that has more than `most`."""
        for name in DIGESTS:
            files = self._store.files(name)
            if len(files) > most:
                parts = self._spark.read.schema(DIGESTS[name]).parquet(*map(str, files))
                self._store.replace(name, files, combined(name, parts).toArrow())


def _path(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))
