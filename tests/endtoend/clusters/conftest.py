"""Clusters of Spark, a Spark Connect server and an object store, as processes of their own on the loopback address."""

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pyarrow.fs as pafs
import pyspark
import pytest

from vpnrouter.report.build import ReportRequest, build_report
from vpnrouter.report.engine.java import find_java, home_of
from vpnrouter.report.engine.session import SparkSettings
from vpnrouter.testing.modules import load_module
from vpnrouter.testing.s3_server import MISSING, S3Server, StoreGate, find_server

PATIENCE_S = 120.0
# A report to an object store makes some thousand requests, which a busy machine answers beside two other reports.
LONGEST_REPORT_S = 1_200.0
SECOND = 1_000_000_000
HOME = Path(pyspark.__file__).parent
PEERS = Path(__file__).resolve().parents[3] / ".peers"
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = re.compile(r"(Successfully registered) with master")
CONNECTED = re.compile(r"Spark Connect server started at: \S*?:(\d+)")
REGION = "us-east-1"


class Daemon:
    """A process of another maker; what it logs is read until the end."""

    def __init__(self, arguments: list[str], environ: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            arguments,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self._process.stdout is not None
        self.lines: list[str] = []
        self._came = threading.Condition()
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        with output:
            for line in output:
                with self._came:
                    self.lines.append(line)
                    self._came.notify_all()

    def said(self, what: re.Pattern[str]) -> str:
        """What the first group of a line that says `what` is, as soon as there is one."""

        def found() -> str | None:
            matches = (what.search(line) for line in self.lines)
            return next((match.group(1) for match in matches if match), None)

        with self._came:
            said = self._came.wait_for(found, PATIENCE_S)
        assert said is not None, "".join(self.lines[-20:])
        return said

    def kill(self) -> None:
        """End it at once, and with a worker its executors."""
        self._process.kill()

    def stop(self) -> None:
        """End it, and with a worker its executors."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(PATIENCE_S)


@pytest.fixture(scope="session")
def tracefiles() -> ModuleType:
    """The generator of trace files of tests/report."""
    path = Path(__file__).parents[2] / "report" / "tracefiles.py"
    return load_module("tracefiles", path)


@pytest.fixture
def spark_environ(tmp_path: Path) -> dict[str, str]:
    """The environment of Spark's own programs. Executors need no Python, so there is none."""
    return {
        **os.environ,
        "JAVA_HOME": str(home_of(find_java(), tmp_path)),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": "/nowhere/python",
    }


class Cluster:
    """A standalone cluster: its URL, and its workers."""

    def __init__(self, url: str, workers: list[Daemon]) -> None:
        self.url = url
        self.workers = workers


@pytest.fixture
def cluster(spark_environ: dict[str, str], tmp_path: Path) -> Iterator[Cluster]:
    """A standalone cluster with two workers of one core and 1 GB each."""
    start = [str(HOME / "bin" / "spark-class")]
    place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    running: list[Daemon] = []
    try:
        running.append(
            Daemon([*start, "org.apache.spark.deploy.master.Master", *place], spark_environ)
        )
        url = running[0].said(MASTER)
        for number in (1, 2):
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"work{number}")]
            worker = ["org.apache.spark.deploy.worker.Worker", *place, *room, url]
            running.append(Daemon([*start, *worker], spark_environ))
            running[-1].said(REGISTERED)
        yield Cluster(url, running[1:])
    finally:
        for one in reversed(running):
            one.stop()


class Store:
    """A bucket on a server of S3's API, which is at `port`."""

    bucket = "traces"

    def __init__(self, port: int) -> None:
        self.port = port
        self.files = pafs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            endpoint_override=f"127.0.0.1:{port}",
            scheme="http",
            region=REGION,
            allow_bucket_creation=True,
        )
        self.files.create_dir(self.bucket)

    def take(self, folder: Path, name: str) -> str:
        """Copy a directory into the bucket; its URI."""
        pafs.copy_files(str(folder), f"{self.bucket}/{name}", destination_filesystem=self.files)
        return f"s3a://{self.bucket}/{name}"

    def settings(self, port: int | None = None, **more: object) -> dict[str, str]:
        """The settings with which Spark finds it, or a proxy before it, and more of `fs.s3a`."""
        return {
            "spark.jars": ",".join(map(str, sorted((PEERS / "s3a").glob("*.jar")))),
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{port or self.port}",
            "spark.hadoop.fs.s3a.endpoint.region": REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
            **{f"spark.hadoop.fs.s3a.{key}": str(value) for key, value in more.items()},
        }

    def options(self, form: str) -> dict[str, str]:
        """The settings with which the readers of Iceberg and Delta find it."""
        names = {"iceberg": "s3.endpoint s3.access-key-id s3.secret-access-key s3.region"}
        names["delta"] = "AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION"
        values = (f"http://127.0.0.1:{self.port}", "key", "secret", REGION)
        return dict(zip(names[form].split(), values, strict=True)) | {"AWS_ALLOW_HTTP": "true"}

    def tables(self, uri: str) -> dict[str, str]:
        """The tables of a report in the bucket, as `tables_in`."""
        listed = self.files.get_file_info(pafs.FileSelector(uri.removeprefix("s3a://")))
        return {
            found.base_name: self.files.open_input_stream(found.path).read().decode()
            for found in listed
            if found.extension == "json" and found.base_name != "summary.json"
        }


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    """An object store that lasts for all tests."""
    program = find_server(PEERS.parent)
    if program is None:
        pytest.skip(MISSING)
    if not (PEERS / "s3a" / "done").exists():
        pytest.skip(f"{PEERS / 's3a'} is missing: .ci/peers installs it")
    with S3Server(program) as server:
        yield Store(server.port)


@pytest.fixture(scope="session")
def lakehouse() -> Path:
    """The libraries of Iceberg and Delta, and readers of their tables."""
    if not (PEERS / "lakehouse" / "done").exists():
        pytest.skip(f"{PEERS / 'lakehouse'} is missing: .ci/peers installs it")
    return PEERS / "lakehouse"


@pytest.fixture
def proxied(store: Store) -> Iterator[Callable[[Callable[[str], int]], StoreGate]]:
    """Makes gates before the store that play a fault."""
    made: list[StoreGate] = []

    def make(fault: Callable[[str], int]) -> StoreGate:
        made.append(StoreGate(store.port))
        made[-1].fault = fault
        return made[-1]

    yield make
    for gate in made:
        gate.end()


@pytest.fixture
def connect(store: Store, spark_environ: dict[str, str]) -> Iterator[str]:
    """The URL of a Spark Connect server that reaches the store."""
    settings = {
        **store.settings(),
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    server = Daemon(
        [
            str(HOME / "bin" / "spark-submit"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--master", "local[2]"),
            *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
            "spark-internal",
        ],
        spark_environ | {"SPARK_DAEMON_MEMORY": "1g"},
    )
    try:
        yield f"sc://127.0.0.1:{server.said(CONNECTED)}"
    finally:
        server.stop()


def write_mesh(files: ModuleType, root: Path) -> None:
    """Two routers that trace at rates of their own; messages cross, wait, are lost, come twice."""
    edge: list[dict[str, Any]] = []
    core: list[dict[str, Any]] = []
    for number in range(1, 61):
        times = {"sent_ns": 1_000, "received_ns": 2_000_000} if number % 3 else {}
        at_edge, at_core = files.crossing(number, f"flights/{number % 7}", **times)
        edge += at_edge
        core += at_core
    core.append(core[-1])
    fares = {"bridge": "fares", "peer_router": "core", "peer_vpn": "yellow"}
    client = "#bridge/core/yellow/fares"
    lost = {"reason": "no-subscription-match", "client": "publisher", "topic": "nobody/wants"}
    edge += [
        files.row("link_up", 0, "blue", client=client, **fares),
        files.row("subscribe", 0, "blue", client=client, topic="flights/>", topic_syntax="smf"),
        files.row("subscribe", 0, "blue", client="idle", topic="none/>", topic_syntax="smf"),
        *(files.row("discard", at * SECOND, "blue", **lost) for at in range(30)),
    ]
    files.write(root, "edge", edge, sample=0.5)
    files.write(root, "core", core, sample=1.0)


@pytest.fixture(scope="session")
def mesh(tracefiles: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with traces of a small mesh."""
    folder = tmp_path_factory.mktemp("mesh")
    write_mesh(tracefiles, folder)
    return folder


def tables_in(folder: Path) -> dict[str, str]:
    """The tables of a report, as they were written; figures that depend on the run are in its summary."""
    found = {path.name: path.read_text() for path in folder.glob("*.json")}
    summary = json.loads(found.pop("summary.json"))
    assert summary["rows"] > 200
    assert {"nodes.json", "edges.json", "latencies.json", "findings.json"} <= found.keys()
    return found


@pytest.fixture
def tables() -> Callable[[Path], dict[str, str]]:
    """Gives the tables of a report in a directory."""
    return tables_in


Report = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def report(tool: Any) -> Report:
    """`report(TRACES, OUTPUT, "--master", …, conf={…}, code=0)` runs the command to its end."""

    def run(
        *words: object, conf: dict[str, str] | None = None, **more: Any
    ) -> "subprocess.CompletedProcess[str]":
        traces, output, *options = map(str, words)
        for key, value in (conf or {}).items():
            options += ["--conf", f"{key}={value}"]
        done: subprocess.CompletedProcess[str] = tool(
            "report", traces, "--output", output, *options, timeout=LONGEST_REPORT_S, **more
        )
        return done

    return run


@pytest.fixture(scope="session")
def expected(mesh: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables of this mesh, by a run on this machine alone."""
    output = tmp_path_factory.mktemp("expected")
    settings = SparkSettings(master="local[2]")
    build_report(ReportRequest(traces=[str(mesh)], output=str(output), spark=settings))
    return tables_in(output)
