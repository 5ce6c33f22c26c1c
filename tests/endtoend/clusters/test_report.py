"""`vpnrouter report` on a Spark cluster: one master and one worker as processes of their own."""

import importlib.util
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pyspark
import pytest

from vpnrouter.report.engine.java import find_java, home_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 120.0
SECOND = 1_000_000_000
HOME = Path(pyspark.__file__).parent
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
REGISTERED = re.compile(r"(Successfully registered) with master")
REPORT_S = 300


class Daemon:
    """A process of the cluster; what it logs is read until the end."""

    def __init__(self, arguments: list[str], environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
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

    def stop(self) -> None:
        """End it, and with a worker its executors."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(PATIENCE_S)


@pytest.fixture
def tracefiles() -> ModuleType:
    """The generator of trace files of tests/report."""
    path = Path(__file__).parents[1] / "report" / "tracefiles.py"
    spec = importlib.util.spec_from_file_location("tracefiles", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a standalone cluster on the loopback address, with one core and 1 GB."""
    environ = {
        **os.environ,
        "JAVA_HOME": str(home_of(find_java(), tmp_path)),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    running: list[Daemon] = []
    try:
        master = Daemon(["org.apache.spark.deploy.master.Master", *place], environ)
        running.append(master)
        url = master.said(MASTER)
        room = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
        worker = ["org.apache.spark.deploy.worker.Worker", *place, *room, url]
        running.append(Daemon(worker, environ))
        running[-1].said(REGISTERED)
        yield url
    finally:
        for one in reversed(running):
            one.stop()


def write(files: ModuleType, root: Path) -> None:
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


def tables(folder: Path) -> dict[str, list[str]]:
    """The rows of each table as sorted text."""
    found = {
        path.stem: sorted(json.dumps(row, sort_keys=True) for row in json.loads(path.read_text()))
        for path in folder.glob("*.json")
        if path.stem != "summary"
    }
    assert {"nodes", "edges", "latencies", "findings"} <= found.keys()
    return found


def report(tool: Any, folder: Path, master: str, **more: str) -> dict[str, Any]:
    """Report on the traces under `folder` into its directory named after the master; the summary."""
    output = folder / master.partition(":")[0]
    words = (str(folder / "traces"), "--output", str(output), "--master", master, "--json")
    summary: dict[str, Any] = json.loads(tool("report", *words, timeout=REPORT_S, env=more).stdout)
    return summary


def test_a_cluster_gives_the_same_report(
    cluster: str, tracefiles: ModuleType, tool: Any, tmp_path: Path
) -> None:
    """Every table is that of a local run; the executors need no Python."""
    write(tracefiles, tmp_path / "traces")
    far = report(tool, tmp_path, cluster, PYSPARK_PYTHON="/nowhere/python")
    near = report(tool, tmp_path, "local")
    assert near["rows"] == far["rows"] > 200
    assert tables(tmp_path / "spark") == tables(tmp_path / "local")
