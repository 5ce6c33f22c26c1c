"""Files of all file systems that Spark knows: through Java where Spark's driver is here, else by Spark's own jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from vpnrouter.errors import OperationError
from vpnrouter.report.engine.failures import first_line, text_of
from vpnrouter.report.engine.tails import TailReader
from vpnrouter.report.traces.storage import OBJECT_STORES, StoredFile, is_complete

_LISTED: Final = re.compile(r"path=(.+?); isDirectory=(true|false); length=(\d+);")
"""What Java says of each file of a list."""

T = TypeVar("T")

_NO_SYSTEM: Final = re.compile(r"No FileSystem for scheme|FileSystem not found")
_PACKAGES: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "abfs": "org.apache.hadoop:hadoop-azure",
    "gs": "org.apache.hadoop:hadoop-gcp",
}
"""What brings a file system to a Spark that was downloaded by itself."""

_MISSING: Final = "java.io.FileNotFoundException"


def is_beside(spark: object) -> bool:
    """Return whether the driver of a session runs on this machine; not so with Spark Connect."""
    return isinstance(spark, SparkSession)


def remote_storage(spark: SparkSession) -> HadoopStorage | ConnectStorage:
    """Return the storage that a session reaches."""
    return HadoopStorage(spark) if is_beside(spark) else ConnectStorage(spark)


@final
class HadoopStorage:
    """Hadoop's file systems, as the session's Java has them, with their settings and credentials."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark gives no other way to Hadoop's file systems
        self._version = jvm.org.apache.hadoop.util.VersionInfo
        self._path = jvm.org.apache.hadoop.fs.Path
        self._context = jvm.org.apache.hadoop.fs.FileContext
        self._to_list = jvm.org.apache.hadoop.util.functional.RemoteIterators.toList
        self._to_bytes = jvm.org.apache.commons.io.IOUtils.toByteArray
        self._md5 = jvm.org.apache.hadoop.io.MD5Hash.digest
        self._renaming = jvm.org.apache.hadoop.fs.Options.Rename
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - as above
        java: Any = spark._jsparkSession  # noqa: SLF001 - as above
        self._settings = java.sessionState().newHadoopConf()
        self._tails = TailReader(jvm, self._settings)

    def _at(self, place: str) -> tuple[Any, Any]:
        path = self._path(place)
        return path.getFileSystem(self._settings), path

    def files(self, root: str) -> list[StoredFile]:
        """Return the file `root`, or all complete Parquet files below it."""
        try:
            system, path = self._at(root)
            listed = self._to_list(system.listFiles(path, True))
            # In one call: each file by itself takes five.
            found = _LISTED.findall(listed.toString())
            if len(found) != listed.size():
                found = [(one.getPath().toString(), "false", one.getLen()) for one in listed]
        except (Py4JError, PySparkException) as error:
            if _is_missing(error):
                raise OperationError(f"no such trace directory or file: {root}") from None
            raise OperationError(f"cannot list {root}: {self._reason(root, error)}") from None
        return _complete(root, ((name, int(size)) for name, _, size in found))

    def tails(
        self, files: Sequence[StoredFile], size_bytes: int
    ) -> Iterator[bytes | OperationError]:
        """Yield the last bytes of each file; many are read at a time, because each waits for the store."""
        return self._tails.read(files, size_bytes)

    def digest(self, path: str) -> str:
        """Return a digest of the contents."""

        def summed() -> str:
            system, place = self._at(path)
            stream = system.open(place)
            try:
                return str(self._md5(stream).toString())
            finally:
                stream.close()

        try:
            return self._told(f"read {path}", summed)
        except OperationError:
            return ""

    def make(self, folder: str) -> None:
        """Make a directory; object stores have none."""

        def made() -> None:
            system, path = self._at(folder)
            system.mkdirs(path)

        self._told(f"write to {folder}", made)

    def read(self, path: str) -> bytes:
        """Return the contents of a file."""

        def all_of() -> bytes:
            system, place = self._at(path)
            stream = system.open(place)
            try:
                return bytes(self._to_bytes(stream))
            finally:
                stream.close()

        return self._told(f"read {path}", all_of)

    def exists(self, path: str) -> bool:
        """Return whether there is something of that name."""

        def there() -> bool:
            system, place = self._at(path)
            return bool(system.exists(place))

        return self._told(f"look for {path}", there)

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, in one step for readers."""
        self._told(f"write {path}", lambda: self._write(path, data))

    def _write(self, path: str, data: bytes) -> None:
        system, place = self._at(path)
        at_once = urlsplit(path).scheme.lower() in OBJECT_STORES
        folder, _, name = path.rpartition("/")
        partial = place if at_once else self._path(f"{folder}/.{name}")
        stream = system.create(partial, True)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()
        if not at_once:
            rules = self._gateway.new_array(self._renaming, 1)
            rules[0] = self._renaming.OVERWRITE
            context = self._context.getFileContext(system.getUri(), self._settings)
            context.rename(partial, place, rules)

    def remove(self, path: str) -> None:
        """Remove a file."""

        def gone() -> None:
            system, place = self._at(path)
            system.delete(place, False)

        self._told(f"remove {path}", gone)

    def _told(self, what: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except (Py4JError, PySparkException) as error:
            raise OperationError(f"cannot {what}: {self._reason(what, error)}") from None

    def _reason(self, what: str, error: Exception) -> str:
        """Return why something failed; of a file system that is not there, the package that brings it."""
        text = text_of(error)
        if _NO_SYSTEM.search(text) is None:
            return first_line(text)
        found = next((name for name in _PACKAGES if f"{name}:" in what), None)
        if found is None:
            return first_line(text)
        version = self._version.getVersion()
        return f"this Spark has no file system for {found}: --packages {_PACKAGES[found]}:{version}"


@final
class ConnectStorage:
    """What a Spark Connect server reaches; it is read by jobs of the server, and nothing is written."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def files(self, root: str) -> list[StoredFile]:
        """Return the file `root`, or all complete Parquet files below it."""
        try:
            listed = self._select([root], F.col("length")).to_pylist()
        except PySparkException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                raise OperationError(f"no such trace directory or file: {root}") from None
            raise OperationError(f"cannot list {root}: {first_line(text_of(error))}") from None
        return _complete(root, ((row["path"], row["found"]) for row in listed))

    def tails(
        self, files: Sequence[StoredFile], size_bytes: int
    ) -> Iterator[bytes | OperationError]:
        """Yield the last bytes of each file, which one job reads."""
        content = F.call_function("substring", F.col("content"), F.lit(-size_bytes))
        try:
            rows = self._select([file.path for file in files], content).to_pylist()
        except PySparkException as error:
            raise OperationError(f"cannot read traces: {first_line(text_of(error))}") from None
        found: dict[str, bytes] = {row["path"]: row["found"] for row in rows}
        gone = OperationError("cannot be read: it has gone")
        yield from (found.get(file.path, gone) for file in files)

    def digest(self, path: str) -> str:
        """Return a digest of the contents."""
        try:
            rows = self._select([path], F.md5("content")).to_pylist()
        except PySparkException:
            return ""
        return str(rows[0]["found"]) if rows else ""

    def _select(self, places: Sequence[str], what: Column) -> pa.Table:
        frame = (
            self._spark.read.format("binaryFile")
            .option("recursiveFileLookup", "true")
            .option("ignoreMissingFiles", "true")
            .load([escaped(place) for place in places])
        )
        return frame.select("path", what.alias("found")).toArrow()

    def make(self, folder: str) -> None:
        """Refuse."""
        raise self._refusal(folder)

    def read(self, path: str) -> bytes:
        """Refuse."""
        raise self._refusal(path)

    def exists(self, path: str) -> bool:
        """Refuse."""
        raise self._refusal(path)

    def write(self, path: str, data: bytes) -> None:
        """Refuse."""
        raise self._refusal(path)

    def remove(self, path: str) -> None:
        """Refuse."""
        raise self._refusal(path)

    @staticmethod
    def _refusal(place: str) -> OperationError:
        return OperationError(
            f"{place}: a report by Spark Connect is written to a directory of this machine"
        )


_GLOB: Final = re.compile(r"[\\\[\]{}*?]")
"""What would be taken for a pattern in a path."""


def escaped(path: str) -> str:
    """Return a path for a reader of Spark, which would take some names for patterns."""
    return _GLOB.sub(r"\\\g<0>", path)


def _complete(root: str, found: Iterable[tuple[str, int]]) -> list[StoredFile]:
    """Return those of the files found below `root` that are complete traces, and `root` itself, in order."""
    top = urlsplit(root).path
    names = ((name, name[name.find(top) + len(top) :].lstrip("/"), size) for name, size in found)
    return sorted(StoredFile(name, size) for name, inside, size in names if _is_trace(inside))


def _is_trace(inside: str) -> bool:
    return not inside or is_complete(inside)


def _is_missing(error: Exception) -> bool:
    return isinstance(error, Py4JJavaError) and (
        error.java_exception.getClass().getName() == _MISSING
    )
