"""Iceberg tables, written by Iceberg's own library on Spark's driver.

Iceberg's connector for Spark fits one version of Spark, and its library none: tables are small, so that the driver
writes the file of a day, and the library makes it the day's partition.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.report.lakehouse.formats import ICEBERG, java_of, told
from vpnrouter.report.meanings import meaning_of
from vpnrouter.report.output import parquet_of
from vpnrouter.report.schema import DATE, Rows
from vpnrouter.report.traces.storage import without_links

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMESPACE: Final = "vpnrouter"
"""Of the tables, where none is named."""

_OWN: Final = "vpnrouter"
"""Name of the catalog that is a directory of the report."""

_SETTINGS: Final = "spark.sql.catalog."
_HADOOP: Final = "hadoop."
_FIELD_ID: Final = "PARQUET:field_id"
_TYPES: Final = {
    "string": "StringType",
    "bigint": "LongType",
    "int": "IntegerType",
    "double": "DoubleType",
    "boolean": "BooleanType",
    "date": "DateType",
}
"""Iceberg's classes of types by Spark's names of them."""


@final
class IcebergTables:
    """The tables of a catalog. `catalog` is `NAME` or `NAME.NAMESPACE`, the name that of a catalog in Spark's settings
    (`spark.sql.catalog.NAME.…`); "" is a catalog in the directory `place`.

    Raises:
        OperationError: no library of Iceberg, no such catalog, or it cannot be reached.
    """

    def __init__(self, spark: SparkSession, place: str, catalog: str = "") -> None:
        self._java = java_of(spark, ICEBERG, "org.apache.iceberg.CatalogUtil")
        self._iceberg = self._java.org.apache.iceberg
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as in `java_of`
        name, _, namespace = catalog.partition(".")
        levels = namespace.split(".") if namespace else [NAMESPACE]
        session: Any = spark._jsparkSession  # noqa: SLF001 - as in `java_of`
        hadoop = session.sessionState().newHadoopConf()
        own = {"type": "hadoop", "warehouse": without_links(place)}
        options = _options(spark, name) if name else own
        given = self._java.java.util.HashMap()
        for key, value in options.items():
            if key.startswith(_HADOOP):
                hadoop.set(key.removeprefix(_HADOOP), value)
            else:
                given.put(key, value)
        self._place = catalog or place
        with told(f"open the Iceberg catalog {self._place}"):
            util = self._iceberg.CatalogUtil
            self._catalog = util.buildIcebergCatalog(name or _OWN, given, hadoop)
            self._namespace = self._iceberg.catalog.Namespace.of(self._texts(levels))
            if self._has("catalog.SupportsNamespaces") and not self._catalog.namespaceExists(
                self._namespace
            ):
                self._catalog.createNamespace(self._namespace)

    def _has(self, interface: str) -> bool:
        full = f"org.apache.iceberg.{interface}"
        return bool(is_instance_of(self._gateway, self._catalog, full))

    def _texts(self, values: list[str]) -> JavaObject:
        """Return Java's array of texts."""
        array = self._gateway.new_array(self._java.java.lang.String, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    def close(self) -> None:
        """End the connections of the catalog."""
        # Java may be gone, and whoever closes tells why.
        with suppress(Py4JError, OSError, EOFError):
            if is_instance_of(self._gateway, self._catalog, "java.io.Closeable"):
                self._catalog.close()

    def replace(self, name: str, day: date, rows: Rows, columns: StructType) -> None:
        """Put rows in the place of a table's rows of that day, in one transaction; make the table where there is none.

        Raises:
            OperationError: the table has a column of another type, or cannot be written.
        """
        with told(f"write the Iceberg table {name} of {self._place}"):
            dated = StructType([*columns.fields, StructField(DATE, DateType())])
            transaction = self._table(name, dated).newTransaction()
            self._add_columns(name, transaction, dated)
            table = transaction.table()
            expressions = self._iceberg.expressions.Expressions
            change = transaction.newOverwrite().overwriteByRowFilter(
                expressions.equal(DATE, day.isoformat())
            )
            if rows:
                change.addFile(self._file(table, day, rows, dated))
            change.commit()
            transaction.commitTransaction()

    def _table(self, name: str, columns: StructType) -> JavaObject:
        identifier = self._iceberg.catalog.TableIdentifier.of(self._namespace, name)
        if self._catalog.tableExists(identifier):
            return self._catalog.loadTable(identifier)
        types = self._iceberg.types.Types
        fields = self._java.java.util.ArrayList()
        for number, column in enumerate(columns.fields, start=1):
            fields.add(
                types.NestedField.optional(
                    number, column.name, self._type(column), meaning_of(name, column.name)
                )
            )
        schema = self._iceberg.Schema(fields)
        partitions = self._iceberg.PartitionSpec.builderFor(schema).identity(DATE).build()
        return self._catalog.createTable(identifier, schema, partitions)

    def _type(self, column: StructField) -> JavaObject:
        return getattr(self._iceberg.types.Types, _TYPES[column.dataType.simpleString()]).get()

    def _add_columns(self, name: str, transaction: JavaObject, columns: StructType) -> None:
        """Add to a table the columns that it lacks, as an older version made it."""
        schema = transaction.table().schema()
        change = transaction.updateSchema()
        for column in columns.fields:
            known = schema.findField(column.name)
            if known is None:
                change.addColumn(column.name, self._type(column), meaning_of(name, column.name))
            elif not known.type().equals(self._type(column)):
                raise OperationError(
                    f"the Iceberg table {name} of {self._place} has the column {column.name} as"
                    f" {known.type().toString()}: use another --output or --catalog"
                )
        change.commit()

    def _file(self, table: JavaObject, day: date, rows: Rows, columns: StructType) -> JavaObject:
        """Write the rows of a day as a file of a table; return Iceberg's description of it."""
        schema = table.schema()
        # Iceberg knows a column by its number.
        numbered = pa.schema(
            [
                field.with_metadata({_FIELD_ID: str(schema.findField(field.name).fieldId())})
                for field in to_arrow_schema(columns)
            ]
        )
        data = parquet_of(pa.Table.from_pylist([{**row, DATE: day} for row in rows], numbered))
        folder = f"{DATE}={day}"
        place = table.locationProvider().newDataLocation(f"{folder}/{uuid.uuid4()}.parquet")
        stream = table.io().newOutputFile(place).create()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        written = table.io().newInputFile(place)
        wanted = self._iceberg.MetricsConfig.forTable(table)
        return (
            self._iceberg.DataFiles.builder(table.spec())
            .withInputFile(written)
            .withFormat(self._iceberg.FileFormat.PARQUET)
            .withMetrics(self._iceberg.parquet.ParquetUtil.fileMetrics(written, wanted))
            .withPartitionPath(folder)
            .build()
        )


def _options(spark: SparkSession, name: str) -> dict[str, str]:
    """Return what Spark's settings say of a catalog, by the names that Iceberg has.

    Raises:
        OperationError: they know no such catalog.
    """
    prefix = f"{_SETTINGS}{name}."
    said = {
        key.removeprefix(prefix): value
        for key, value in spark.conf.getAll.items()
        if key.startswith(prefix)
    }
    if not said:
        raise OperationError(
            f"--catalog {name}: Spark's settings name no catalog by {prefix}type, …"
        )
    return said
