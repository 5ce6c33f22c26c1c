"""Delta tables, written by Delta's kernel on Spark's driver.

Delta's connector for Spark fits one version of Spark, and its kernel none. The kernel's interface only appends, so that
the rows of before are removed by what is behind it: the version of the library is pinned.
"""

from __future__ import annotations

import fcntl
import time
import uuid
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql.pandas.types import to_arrow_schema

from vpnrouter.errors import OperationError
from vpnrouter.report.lakehouse.formats import DELTA, java_of, told
from vpnrouter.report.meanings import meaning_of
from vpnrouter.report.output import parquet_of
from vpnrouter.report.schema import DATE
from vpnrouter.report.traces.storage import Storage, below, is_uri, without_links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructField, StructType

    from vpnrouter.report.schema import Rows

_ENGINE: Final = "vpnrouter"
_EPOCH: Final = date(1970, 1, 1)
_TYPES: Final = {
    "string": ("StringType", "STRING"),
    "bigint": ("LongType", "LONG"),
    "int": ("IntegerType", "INTEGER"),
    "double": ("DoubleType", "DOUBLE"),
    "boolean": ("BooleanType", "BOOLEAN"),
}
"""The kernel's constants of types by Spark's names of them."""


@final
class DeltaTables:
    """The tables in the directory `place` on `storage`, each a directory by its name.

    Raises:
        OperationError: no library of Delta.
    """

    def __init__(self, spark: SparkSession, place: str, storage: Storage) -> None:
        self._java = java_of(spark, DELTA, "io.delta.kernel.TableManager")
        java_of(spark, DELTA, "io.delta.kernel.defaults.engine.DefaultEngine")
        self._kernel = self._java.io.delta.kernel
        self._place = without_links(place)
        self._storage = storage
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as in `java_of`
        session: Any = spark._jsparkSession  # noqa: SLF001 - as in `java_of`
        hadoop = session.sessionState().newHadoopConf()
        with told(f"open the Delta tables of {place}"):
            self._engine = self._kernel.defaults.engine.DefaultEngine.create(hadoop)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def replace(self, name: str, day: date, rows: Rows, columns: StructType) -> None:
        """Put rows in the place of a table's rows of that day, in one transaction; make the table where there is none.

        Raises:
            OperationError: the table has a column of another type, another program changed it at the same time, or it
                cannot be written.
        """
        with (
            told(f"write the Delta table {name} of {self._place}"),
            self._alone(below(self._place, name)),
        ):
            self._replace(name, day, rows, columns)

    @contextmanager
    def _alone(self, place: str) -> Iterator[None]:
        """Wait until no other report writes to a table of this machine, and keep others waiting.

        Delta's log on a local file system is safe within one engine alone: two programs would leave a commit whose
        checksum is that of the other's, and nothing on Hadoop could read the table any more.
        """
        if is_uri(place):
            yield
            return
        path = Path(place) / "_vpnrouter.lock"
        with ExitStack() as held:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = held.enter_context(path.open("ab"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError as error:
                why = error.strerror or str(error)
                raise OperationError(
                    f"cannot write the Delta table of {path.parent}: {why}"
                ) from None
            yield

    def _replace(self, name: str, day: date, rows: Rows, columns: StructType) -> None:
        place = below(self._place, name)
        actions = self._java.java.util.ArrayList()
        wider = None
        if self._storage.exists(below(place, "_delta_log")):
            snapshot = self._kernel.TableManager.loadSnapshot(place).build(self._engine)
            builder = snapshot.buildUpdateTableTransaction(_ENGINE, self._kernel.Operation.WRITE)
            wider = self._wider(name, snapshot.getSchema(), columns)
            if wider is not None:
                actions.add(self._new_schema(snapshot, wider))
            for removed in self._files_of(snapshot, day):
                actions.add(removed)
        else:
            layout = self._java.java.util.ArrayList()
            layout.add(self._column(DATE))
            layouts = self._kernel.transaction.DataLayoutSpec
            builder = self._kernel.TableManager.buildCreateTableTransaction(
                place, self._schema(name, columns), _ENGINE
            ).withDataLayoutSpec(layouts.partitioned(layout))
        # What another program has written meanwhile may be of the same day: the kernel would keep both.
        transaction = builder.withMaxRetries(0).build(self._engine)
        if rows:
            self._add(transaction, place, day, rows, columns, actions)
        made = self._kernel.internal.util.Utils.toCloseableIterator(actions.iterator())
        done = transaction.commit(
            self._engine, self._kernel.utils.CloseableIterable.inMemoryIterable(made)
        )
        if wider is None:
            # A checkpoint of the log after some commits, and a checksum, which would have the schema of before.
            for hook in done.getPostCommitHooks():
                hook.threadSafeInvoke(self._engine)

    def _column(self, name: str) -> JavaObject:
        names = self._gateway.new_array(self._java.java.lang.String, 1)
        names[0] = name
        return self._kernel.expressions.Column(names)

    def _schema(self, name: str, columns: StructType) -> JavaObject:
        made = self._kernel.types.StructType()
        for column in columns.fields:
            made = made.add(self._field(name, column))
        dated = self._kernel.types.DateType.DATE
        return made.add(DATE, dated, self._comment(name, DATE))

    def _field(self, name: str, column: StructField) -> JavaObject:
        return self._kernel.types.StructField(
            column.name, self._type(column), True, self._comment(name, column.name)
        )

    def _type(self, column: StructField) -> JavaObject:
        class_name, constant = _TYPES[column.dataType.simpleString()]
        return getattr(getattr(self._kernel.types, class_name), constant)

    def _comment(self, name: str, column: str) -> JavaObject:
        builder = self._kernel.types.FieldMetadata.builder()
        return builder.putString("comment", meaning_of(name, column)).build()

    def _new_schema(self, snapshot: JavaObject, wider: JavaObject) -> JavaObject:
        """Return an action that gives a table more columns: the kernel itself does that to tables with column mapping
        alone, which not all programs can read.
        """
        inside = self._kernel.internal.actions
        metadata = snapshot.getMetadata().withNewSchema(wider)
        return inside.SingleAction.createMetadataSingleAction(metadata.toRow())

    def _wider(self, name: str, known: JavaObject, columns: StructType) -> JavaObject | None:
        """Return a table's schema with the columns that it lacks, as an older version made it; None if it has all."""
        wider = known
        for column in columns.fields:
            if known.indexOf(column.name) < 0:
                wider = wider.add(self._field(name, column))
            elif not known.get(column.name).getDataType().equals(self._type(column)):
                found = known.get(column.name).getDataType().toString()
                raise OperationError(
                    f"the Delta table {name} of {self._place} has the column {column.name} as {found}:"
                    " use another --output"
                )
        return wider if wider.length() > known.length() else None

    def _files_of(self, snapshot: JavaObject, day: date) -> Iterator[JavaObject]:
        """Yield an action for each file of a day that removes it."""
        wanted = self._java.java.util.ArrayList()
        wanted.add(self._column(DATE))
        wanted.add(self._day(day))
        same = self._kernel.expressions.Predicate("=", wanted)
        found = snapshot.getScanBuilder().withFilter(same).build().getScanFiles(self._engine)
        inside = self._kernel.internal
        rows = inside.util.Utils.intoRows(found)
        now_ms = self._java.java.util.Optional.of(time.time_ns() // 1_000_000)
        try:
            while rows.hasNext():
                row = rows.next()
                partition = inside.InternalScanFileUtils.getPartitionValues(row)
                if partition.get(DATE) == day.isoformat():
                    at = inside.InternalScanFileUtils.ADD_FILE_ORDINAL
                    file = inside.actions.AddFile(row.getStruct(at))
                    removed = file.toRemoveFileRow(True, now_ms)
                    yield inside.actions.SingleAction.createRemoveFileSingleAction(removed)
        finally:
            rows.close()

    def _day(self, day: date) -> JavaObject:
        return self._kernel.expressions.Literal.ofDate((day - _EPOCH).days)

    def _add(
        self,
        transaction: JavaObject,
        place: str,
        day: date,
        rows: Rows,
        columns: StructType,
        actions: JavaObject,
    ) -> None:
        """Write the rows of a day as a file of a table, and append the actions that add it."""
        state = transaction.getTransactionState(self._engine)
        partition = self._java.java.util.HashMap()
        partition.put(DATE, self._day(day))
        kind = self._kernel.Transaction
        context = kind.getWriteContext(self._engine, state, partition)
        # The column of the partition is in the log and not in the file.
        data = parquet_of(pa.Table.from_pylist(rows, to_arrow_schema(columns)))
        path = below(place, f"{DATE}={day}/part-{uuid.uuid4()}.parquet")
        self._storage.write(path, data)
        files = self._java.java.util.ArrayList()
        files.add(
            self._kernel.utils.DataFileStatus(
                f"{'' if is_uri(place) else 'file:'}{path}",
                len(data),
                time.time_ns() // 1_000_000,
                self._java.java.util.Optional.empty(),
            )
        )
        one = self._kernel.internal.util.Utils.toCloseableIterator(files.iterator())
        added = kind.generateAppendActions(self._engine, state, one, context)
        try:
            while added.hasNext():
                actions.add(added.next())
        finally:
            added.close()
