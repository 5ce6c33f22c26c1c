"""The formats of lakehouse tables, their makers' Java packages, and how a report's driver finds them."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Protocol

from py4j.java_gateway import JavaClass, JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from vpnrouter.errors import OperationError
from vpnrouter.report.engine.failures import first_line, text_of
from vpnrouter.report.engine.session import JavaPackage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from vpnrouter.report.schema import Rows

ICEBERG: Final = "iceberg"
DELTA: Final = "delta"
LAKEHOUSE: Final = frozenset({ICEBERG, DELTA})
"""Formats that tables are written in by the library of their makers."""

FOLDER: Final = "lakehouse"
"""Directory of the tables under a report's output directory."""


_IN_SPARK: Final = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.slf4j:*",
)
"""What Delta's packages ask for and every Spark has."""

LIBRARIES: Final = {
    # Of the runtime for Spark, all but the connector for Spark itself is used: that fits one version of Spark only.
    ICEBERG: (
        JavaPackage(
            package="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
            known_by=("iceberg-spark-runtime",),
        ),
    ),
    # Delta's kernel needs no Spark. Its two packages do not ask for each other; delta-spark asks for both.
    DELTA: (
        JavaPackage(
            package="io.delta:delta-kernel-api:4.4.0", known_by=("delta-kernel-api", "delta-spark")
        ),
        JavaPackage(
            package="io.delta:delta-kernel-defaults:4.4.0",
            known_by=("delta-kernel-defaults", "delta-spark"),
            without=_IN_SPARK,
        ),
    ),
}
"""What brings the library of each format."""


class Lakehouse(Protocol):
    """Tables of a format that are partitioned by day."""

    def replace(self, name: str, day: date, rows: Rows, columns: StructType) -> None:
        """Put rows in the place of a table's rows of that day, in one transaction; make the table where there is none.

        Raises:
            OperationError: the table has a column of another type, or cannot be written.
        """

    def close(self) -> None:
        """Give up what was opened."""


def packages_for(formats: Iterable[str]) -> list[JavaPackage]:
    """Return the packages that formats need."""
    return [one for form in sorted(LAKEHOUSE & frozenset(formats)) for one in LIBRARIES[form]]


def java_of(spark: SparkSession, form: str, class_name: str) -> JavaObject:
    """Return the Java of a session that has the library of a format; `class_name` is one of its classes.

    Raises:
        OperationError: there is no such class.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark gives no other way to Java's classes
    found = jvm
    with suppress(Py4JError):
        for part in class_name.split("."):
            found = getattr(found, part)
    if not isinstance(found, JavaClass):
        packages = ",".join(one.package for one in LIBRARIES[form])
        raise OperationError(
            f"this Spark has no library for --format {form}: start it with --packages {packages}"
        )
    return jvm


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what Java raises in the block into an OperationError that says what could not be done.

    Raises:
        OperationError: Java raised an exception.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise OperationError(f"cannot {what}: {first_line(text_of(error))}") from None
