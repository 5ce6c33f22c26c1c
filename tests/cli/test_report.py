"""`vpnrouter report`."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.cli import report
from vpnrouter.cli.app import run
from vpnrouter.topology.report import Summary
from vpnrouter.trace.schema import FILE_COLUMNS, VERSION, VERSION_KEY

SUMMARY = Summary(
    files=3,
    rows=1_234_567,
    size_bytes=20_000_000,
    set_aside=[{"path": "/traces/x.parquet", "reason": "damaged"}],
    sampling={"edge": 0.01},
    routers=2,
    vpns=5,
    bridges=4,
    topics=99,
    ingress=1_000,
    ingress_estimated=100_000,
    bridged=500,
    bridged_estimated=None,
    delivered=700,
    delivered_estimated=700,
    discarded=3,
    rejected=0,
    first_ns=1_371_000_000_000_000_000,
    last_ns=1_371_000_600_000_000_000,
    seconds=12.5,
    page="out/report.html",
)


def write(path: Path, messages: int, version: int = VERSION) -> None:
    """A trace file with as many published messages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"ts_ns": 10**18 + at, "vpn": "blue", "event": "ingress", "topic": "a", "size_bytes": 5}
        for at in range(messages)
    ]
    schema = pa.schema([(column.name, getattr(pa, column.type)()) for column in FILE_COLUMNS])
    table = pa.Table.from_pylist(rows, schema.with_metadata({VERSION_KEY: str(version)}))
    pq.write_table(table, path)


@pytest.mark.spark
@pytest.mark.slow
def test_a_report_is_made(tmp_path: Path) -> None:
    """One run: JSON alone on stdout, stages and what was set aside on stderr, the files written."""
    write(tmp_path / "traces/date=2001-09-09/router=edge/part-1.parquet", 50)
    (tmp_path / "traces/part-2.parquet").write_bytes(b"")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from vpnrouter.cli.app import main; main()",
            *("report", str(tmp_path / "traces"), "--output", str(tmp_path / "out"), "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["ingress"], summary["vpns"]) == (50, 50, 1)
    assert Path(summary["page"]).read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "out/summary.json").read_text()) == summary
    lines = done.stderr.splitlines()
    assert lines[0] == "report: trace files"
    assert lines[-2] == "report: page"
    assert lines[-1] == f"set aside: {tmp_path}/traces/part-2.parquet: empty: no bytes"
    assert {path.name for path in tmp_path.iterdir()} == {"traces", "out"}
    assert not (tmp_path / "out/spark.log").exists()


def test_the_summary_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json a table says what was found, with estimates where they say more than counts."""
    report.print_summary(SUMMARY)
    out = " ".join(capsys.readouterr().out.split())
    assert "trace rows 1,234,567 in 3 files (19.1 MiB)" in out
    assert "published 1,000 traced, about 100,000 in all" in out
    assert "bridge crossings 500 delivered 700 discarded 3" in out
    assert "files set aside 1" in out
    assert "page out/report.html" in out


def test_nothing_to_report_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An empty directory: exit code 1 and one line, before any Java starts."""
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "vpnrouter: nothing to report on: no readable trace file"


def test_a_newer_format_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Traces of a newer version: exit code 1 and the file's name."""
    write(tmp_path / "router=edge/part-1.parquet", 1, version=VERSION + 1)
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert "part-1.parquet (format 2)" in capfd.readouterr().err


def test_wrong_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No traces, traces that do not exist, no output, an output that is a file: exit code 2."""
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "out")
    for arguments in (
        ["--output", out],
        [str(tmp_path / "gone"), "--output", out],
        [str(tmp_path)],
        [str(tmp_path), "--output", str(tmp_path / "file")],
    ):
        assert run(["report", *arguments]) == 2
    assert capfd.readouterr().out == ""


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where pyspark is not installed, one line names the extra."""
    for name in list(sys.modules):
        if name.startswith("vpnrouter.topology"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert "install vpnrouter[spark]" in capfd.readouterr().err
