"""Starts Spark on a Java runtime that it finds, and ends it."""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

import pyspark
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_DRIVER_MEMORY, REPORT_EXECUTOR_MEMORY, REPORT_SHUFFLE_PARTITIONS
from vpnrouter.report.engine.failures import first_line, logged_cause, spark_errors
from vpnrouter.report.engine.java import Java, find_java, home_of
from vpnrouter.report.engine.remote import is_beside

_EXIT_SECONDS: Final = 20
_CONNECT_PORT: Final = 15_002
_KNOCK_SECONDS: Final = 10
_SHORT_RUN: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LONG_RUN: Final = "-XX:+UseParallelGC"
_TASK_BYTES: Final = "16m"
"""Of trace files, for one task: about a million rows. Spark's 128 MB would give the files of a small mesh to three
tasks, and two cores would wait for one.
"""

_PAGE_SIZE: Final = "spark.buffer.pageSize"
_PAGE_BYTES: Final = "2m"
"""Of memory that a task takes at a time, for each grouping and each sort. Spark would take up to 64 MB, by the size of
the heap and the number of cores, for each table of a few rows that it sends to all tasks too.
"""

_RETAINED_PLANS: Final = "10"
"""Spark keeps the drawn plans of so many queries for its web page, which nobody opens here: 1,000, some 150 MB."""

_LOOPBACK: Final = "127.0.0.1"
_EXECUTOR_MEMORY: Final = "spark.executor.memory"
_MASTER: Final = "spark.master"
_NAME: Final = "vpnrouter report"

_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit started."""

_OPTIONS: Final = {"--master": _MASTER, "--driver-memory": "spark.driver.memory"}
_VARIABLES: Final = {"SPARK_DRIVER_MEMORY": "spark.driver.memory", "MASTER": _MASTER}
_SEPARATOR: Final = re.compile(r"\s*[=\s]\s*")
"""Between a setting and its value in Spark's file of defaults."""

_SETTING: Final = re.compile(r"--conf[ =][\"']?([\w.-]+)=")
"""How the arguments for spark-submit make settings."""

_RULES: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.caseSensitive": "false",
}
"""What the figures rest on."""

_QUERY_DEFAULTS: Final = {
    # The small map before the large one costs more than it saves where there are more groups than it holds.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    "spark.sql.files.maxPartitionBytes": _TASK_BYTES,
    # What a file adds to its bytes: with Spark's 4 MB, each task would read four of many small files.
    "spark.sql.files.openCostInBytes": "64k",
    # Spark lists files that are given one by one with a task for each, up to 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}


_PACKAGES: Final = "spark.jars.packages"
_EXCLUDES: Final = "spark.jars.excludes"
_GIVEN: Final = (_PACKAGES, "spark.jars")
"""Settings that bring Java packages."""


@dataclass(frozen=True, kw_only=True)
class JavaPackage:
    """A package that a report needs, `GROUP:NAME:VERSION`, and how it is told that somebody gave it already.

    A jar or a package that has one of `known_by` in its name brings the same classes. `without` are packages
    (`GROUP:NAME`) that it asks for and Spark has.
    """

    package: str
    known_by: tuple[str, ...]
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Where Spark is. `master` is a master URL ("" for what Spark's own settings say, else local[*]), `connect` the
    address of a Spark Connect server (`sc://host`), `conf` are settings of Spark, which win over all others.
    """

    master: str = ""
    connect: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def spark_session(
    master: str = "",
    *,
    conf: Mapping[str, str] | None = None,
    log: Path | None = None,
    shuffle_partitions: int = REPORT_SHUFFLE_PARTITIONS,
    short: bool = False,
    java: Java | None = None,
    packages: Sequence[JavaPackage] = (),
) -> Iterator[SparkSession]:
    """Start a Spark session that ends, with its Java process and temporary files, when the block does.

    `master` and `conf` are as in SparkSettings; `log` receives what Java prints (lost when None); `short`
    makes Java start fast rather than get fast, which halves the time of a report on few rows;
    `java` overrides the search for a runtime; `packages` are loaded where nobody gave them. What spark-defaults.conf or
    PYSPARK_SUBMIT_ARGS say is not set here.

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
        with _surroundings(home):
            launch = _launch_settings(master, conf or {}, short=short)
            _add_packages(launch, packages)
            try:
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf=launch,
                    popen_kwargs={
                        "stdout": output,
                        "stderr": subprocess.STDOUT,
                        # Signals to the group of this process are not for it: it ends when this one does.
                        "start_new_session": True,
                    },
                )
            except PySparkRuntimeError as error:
                raise OperationError(
                    f"Spark did not start: {logged_cause(log) or first_line(str(error))}"
                ) from None
        cleanup.callback(_end_java, gateway)
        cleanup.enter_context(_interrupts(gateway))
        try:
            with spark_errors(), _own_handler():
                chosen = _chosen(gateway, scratch, shuffle_partitions)
                session = SparkSession(SparkContext(conf=chosen, gateway=gateway))
        except OperationError as error:
            # What comes through the gateway is often only that the context has gone already.
            raise OperationError(f"Spark did not start: {logged_cause(log) or error}") from None
        cleanup.callback(_stop, session)
        _obey(session)
        with spark_errors():
            yield session


@contextlib.contextmanager
def connected_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """Start a session on a Spark Connect server, which needs no Java here; it ends when the block does.

    Raises:
        OperationError: packages of Spark Connect are missing, or nobody answers. Failures inside the block come out as
            OperationError too.
    """
    _knock(settings.connect)
    with warnings.catch_warnings():
        # About the version of a pandas that is not used.
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("pyspark.sql.connect.session")
        except (ImportError, PySparkException) as error:
            raise OperationError(
                "--connect needs more packages: pip install '.[connect]' in vpnrouter's source"
                f" ({first_line(str(error))})"
            ) from error
        except SystemExit:
            # PySpark takes it for a run of its own tests, and ends it where these would be left out.
            raise OperationError("--connect: the program that runs has to be in a file") from None
        _load_without_advice()
    builder = SparkSession.builder.remote(settings.connect)
    for key, value in settings.conf.items():
        builder = builder.config(key, value)
    with contextlib.ExitStack() as cleanup:
        try:
            with spark_errors():
                session = builder.create()
        except OperationError as error:
            told = str(error).replace(settings.connect, _named(settings.connect))
            raise OperationError(f"cannot reach {_named(settings.connect)}: {told}") from None
        cleanup.callback(_stop, session)
        with spark_errors():
            _obey(session)
            yield session


def _knock(url: str) -> None:
    """Make a connection to a Spark Connect server and end it: Spark's client would try for many minutes.

    Raises:
        OperationError: the URL is none, or nobody answers.
    """
    host, port = _connect_address(url)
    try:
        socket.create_connection((host, port), _KNOCK_SECONDS).close()
    except OSError as error:
        raise OperationError(f"cannot reach {_named(url)}: {error.strerror or error}") from None


def _named(url: str) -> str:
    """Return the URL of a Spark Connect server without its parameters, one of which may be a token."""
    return url.partition("/;")[0].partition(";")[0]


def _connect_address(url: str) -> tuple[str, int]:
    """Return the host and the port of a Spark Connect server.

    Raises:
        OperationError: the URL is none.
    """
    with contextlib.suppress(ValueError):
        place = urlsplit(url)
        if place.scheme == "sc" and place.hostname and ";" not in place.netloc:
            return place.hostname, place.port or _CONNECT_PORT
    raise OperationError(
        f"{_named(url)} is no address of a Spark Connect server: write sc://HOST:PORT"
    )


def surrounding_session() -> SparkSession | None:
    """Return a session of its own in the Spark that this program was started by (spark-submit, a notebook), None where
    there is none.
    """
    active = SparkSession.getActiveSession()
    if active is None and _GATEWAY in os.environ:
        _load_without_advice()
        active = SparkSession.builder.appName(_NAME).getOrCreate()
    return active


@contextlib.contextmanager
def adopted_session(given: SparkSession) -> Iterator[SparkSession]:
    """Work in a session that somebody else began and will end, with settings of its own.

    Raises:
        OperationError: Spark failed.
    """
    with _silent_py4j(), spark_errors():
        session = given.newSession()
        _obey(session)
        if is_beside(session):
            said = session.sparkContext.getConf()
            for key, value in _QUERY_DEFAULTS.items():
                if not said.contains(key):
                    session.conf.set(key, value)
        yield session


def _obey(session: SparkSession) -> None:
    """Set what the figures of a report rest on, whatever the settings of others say."""
    for key, value in _RULES.items():
        session.conf.set(key, value)


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


def _launch_settings(master: str, conf: Mapping[str, str], *, short: bool) -> SparkConf:
    """Return what Java is started with. SPARK_HOME is that of the Spark to start."""
    said = _said_elsewhere()
    launch = SparkConf(loadDefaults=False)
    defaults = {
        _MASTER: "local[*]",
        "spark.driver.memory": REPORT_DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": _SHORT_RUN if short else _LONG_RUN,
    }
    launch.setAll([(key, value) for key, value in defaults.items() if key not in said])
    if master:
        launch.set(_MASTER, master)
    launch.setAll(list(conf.items()))
    return launch


def _defaults() -> dict[str, str]:
    """Return the settings of Spark's own file of defaults."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{os.environ['SPARK_HOME']}/conf"
    with contextlib.suppress(OSError):
        text = (Path(folder) / "spark-defaults.conf").read_text(errors="replace")
        lines = (_SEPARATOR.split(line.strip(), maxsplit=1) for line in text.splitlines())
        return {key: "".join(value) for key, *value in lines if key}
    return {}


def _add_packages(launch: SparkConf, packages: Sequence[JavaPackage]) -> None:
    """Have Spark load those of the packages that nobody gave: as a setting, as a jar, or in Spark's own directory."""
    defaults = _defaults()
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    jars = (path.name for path in Path(os.environ["SPARK_HOME"], "jars").glob("*.jar"))
    settings = (launch.get(key, defaults.get(key, "")) or "" for key in _GIVEN)
    given = " ".join((*settings, arguments, *jars))
    missing = [one for one in packages if not any(name in given for name in one.known_by)]
    for key, more in (
        (_PACKAGES, [one.package for one in missing]),
        (_EXCLUDES, [name for one in missing for name in one.without]),
    ):
        said = launch.get(key, defaults.get(key, ""))
        if more:
            launch.set(key, ",".join((*filter(None, [said]), *more)))


def _said_elsewhere() -> frozenset[str]:
    """Return the settings that Spark's own file of defaults and the environment make."""
    said = set(_defaults())
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    said |= {key for option, key in _OPTIONS.items() if option in arguments}
    said |= set(_SETTING.findall(arguments))
    said |= {key for name, key in _VARIABLES.items() if os.environ.get(name)}
    return frozenset(said)


def _chosen(gateway: JavaGateway, scratch: Path, shuffle_partitions: int) -> SparkConf:
    """Return our settings, without those that Java was started with, or that a file of defaults makes."""
    properties = gateway.jvm.java.lang.System
    chosen = SparkConf(loadDefaults=False)
    master = properties.getProperty(_MASTER) or ""
    in_environment = {_EXECUTOR_MEMORY} if "SPARK_EXECUTOR_MEMORY" in os.environ else set()
    for key, value in _settings(master, scratch, shuffle_partitions).items():
        if key not in in_environment and properties.getProperty(key) is None:
            chosen.set(key, value)
    # The tables that go to all tasks are made by settings of their own, which come from these properties alone.
    size = properties.getProperty(_PAGE_SIZE) or chosen.get(_PAGE_SIZE)
    properties.setProperty(_PAGE_SIZE, size)
    return chosen


def _settings(master: str, scratch: Path, shuffle_partitions: int) -> dict[str, str]:
    settings = {
        "spark.app.name": _NAME,
        _EXECUTOR_MEMORY: REPORT_EXECUTOR_MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.pyspark.jvmStacktrace.enabled": "false",
        # Nobody opens a notebook on this session; finding the calling line for every column costs
        # time.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        _PAGE_SIZE: _PAGE_BYTES,
        "spark.sql.ui.retainedExecutions": _RETAINED_PLANS,
        **_QUERY_DEFAULTS,
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


@contextlib.contextmanager
def _surroundings(home: Path) -> Iterator[None]:
    """Point the launcher to our Java and to a Spark of our version."""
    variables = {"JAVA_HOME": str(home), "SPARK_HOME": _spark_home()}
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


def _spark_home() -> str:
    """Return the Spark that SPARK_HOME names, with what was added to it, if it is of this version, else PySpark's."""
    given = os.environ.get("SPARK_HOME")
    if given and any(Path(given, "jars").glob(f"spark-core_*-{pyspark.__version__}.jar")):
        return given
    return str(Path(pyspark.__file__).parent)


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
