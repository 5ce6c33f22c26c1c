"""`vpnrouter report`."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vpnrouter
from vpnrouter.cli import report
from vpnrouter.cli.app import run
from vpnrouter.report.output import Summary
from vpnrouter.trace.parquet import ARROW_TYPES
from vpnrouter.trace.schema import FILE_COLUMNS, ROUTER_KEY, VERSION, VERSION_KEY

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
    findings={"black_hole": 2, "loop": 1},
    errors=1,
    warnings=2,
    advice=4,
    first_ns=1_371_000_000_000_000_000,
    last_ns=1_371_000_600_000_000_000,
    seconds=12.5,
    notes=[],
    page="out/report.html",
)


def write(path: Path, messages: int, version: int = VERSION) -> Path:
    """A trace file of router "edge" with as many published messages, from 2001-09-09T01:46:40 on; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "ts_ns": 10**18 + 40 * at,
            "vpn": "blue",
            "event": "ingress",
            "topic": "a",
            "size_bytes": 5,
        }
        | {"mode": "direct"}
        for at in range(messages)
    ]
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in FILE_COLUMNS])
    metadata = {VERSION_KEY: str(version), ROUTER_KEY: "edge"}
    pq.write_table(pa.Table.from_pylist(rows, schema.with_metadata(metadata)), path)
    return path


def one_line(text: str) -> str:
    """The last line, which is all but what a wrong use is preceded by, and progress."""
    assert "Traceback" not in text
    assert "org.apache" not in text
    assert "\tat " not in text
    *before, line = text.splitlines()
    known = ("Usage: ", "Try ", "report: ", "set aside: ")
    assert all(not one or one.startswith(known) for one in before), text
    return line


@pytest.mark.spark
@pytest.mark.slow
def test_a_report_is_made(tmp_path: Path) -> None:
    """One run: JSON alone on stdout, stages and what was set aside on stderr, the files written.

    Of two damaged files only Spark finds out the second one; the rows are those of the time asked for.
    """
    write(tmp_path / "traces/date=2001-09-09/router=edge/part-1.parquet", 50)
    (tmp_path / "traces/part-2.parquet").write_bytes(b"")
    bad = write(tmp_path / "traces/part-3.parquet", 9_000)
    contents = bytearray(bad.read_bytes())
    contents[8 : len(contents) // 2] = bytes(len(contents) // 2 - 8)
    bad.write_bytes(contents)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from vpnrouter.cli.app import main; main()",
            *("report", str(tmp_path / "traces"), "--output", str(tmp_path / "out"), "--json"),
            *("--since", "2001-09-09", "--until", "2001-09-09T01:46:40.000001"),
            *("--without", "edge", "--without", "core", "--double", "edge/v"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["ingress"], summary["vpns"]) == (50, 25, 1)
    assert Path(summary["page"]).read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "out/summary.json").read_text()) == summary
    answers = json.loads((tmp_path / "out/what_if.json").read_text())
    assert {row["question"].split()[0] for row in answers} == {"without", "double"}
    assert (answers[0]["kind"], answers[0]["detail"]) == ("asked", "not in the traces: core")
    lines = done.stderr.splitlines()
    assert lines[0] == "report: trace files"
    assert lines[-3:] == [
        "report: page",
        f"set aside: {tmp_path}/traces/part-2.parquet: empty: no bytes",
        f"set aside: {bad}: damaged: its contents cannot be read",
    ]
    assert all(line.startswith("report: ") for line in lines[:-2])
    assert {path.name for path in tmp_path.iterdir()} == {"traces", "out"}
    assert not (tmp_path / "out/spark.log").exists()


HEARS_INTERRUPTS = """
import signal
from vpnrouter.cli.app import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
"""The program, which hears ^C as well where a shell has begun the tests in the background."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "number"),
    [
        pytest.param("Spark starts", signal.SIGINT, marks=pytest.mark.long),
        pytest.param("links and subscriptions", signal.SIGINT, marks=pytest.mark.long),
        ("messages followed", signal.SIGINT),
        pytest.param("Spark starts", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("messages followed", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_an_interrupt_ends_a_report(tmp_path: Path, stage: str, number: int) -> None:
    """^C and the end of a service, at the start and while jobs run: 128 and the signal, one line for it, and nothing is
    left.
    """
    write(tmp_path / "traces/part-1.parquet", 50)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            HEARS_INTERRUPTS,
            *("report", str(tmp_path / "traces"), "--output", str(tmp_path / "out")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == f"report: {stage}":
                os.killpg(process.pid, number)
    assert process.returncode == 128 + number, lines
    assert list(scratch.iterdir()) == []
    assert lines.pop() == "vpnrouter: interrupted before the report was written"
    assert all(line.startswith("report: ") for line in lines), lines
    assert not list((tmp_path / "out").glob("*"))


def test_files_set_aside_are_named_once(capfd: pytest.CaptureFixture[str]) -> None:
    """Each by its name with the report that is the first to lack it; 20 of many, and how many more there are."""
    aside = report.NewlyAside()
    listed = [{"path": f"/t/{at}", "reason": "damaged"} for at in range(50)]
    aside.tell(listed[:2])
    assert capfd.readouterr().err.splitlines() == [
        "set aside: /t/0: damaged",
        "set aside: /t/1: damaged",
    ]
    aside.tell(listed[:2])
    assert capfd.readouterr().err == ""
    aside.tell(listed)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "set aside: /t/2: damaged"
    assert lines[20:] == ["set aside: 28 more files, all named in summary.json"]


def test_the_summary_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json a table says what was found, with estimates where they say more than counts."""
    report.print_summary(SUMMARY)
    out = " ".join(capsys.readouterr().out.split())
    assert "trace rows 1,234,567 in 3 files (19.1 MiB)" in out
    assert "published 1,000 traced, about 100,000 in all" in out
    assert "bridge crossings 500 delivered 700 discarded 3" in out
    assert "files set aside 1" in out
    assert "findings 1 error, 2 warnings advice 4" in out
    assert "page out/report.html" in out
    report.print_summary(replace(SUMMARY, page=""))
    assert "page" not in capsys.readouterr().out


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


@pytest.mark.parametrize("contents", [b"", b"PAR1", bytes(range(256))])
def test_damaged_traces_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], contents: bytes
) -> None:
    """Exit code 1, the file named with its reason, and nothing of Java or Python."""
    bad = tmp_path / "part-1.parquet"
    bad.write_bytes(contents)
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    *_, line, named = err.splitlines()
    assert line == "vpnrouter: nothing to report on: no readable trace file"
    assert named.strip().startswith(f"{bad}: {'damaged' if contents else 'empty'}: ")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--since", "2001-09-10"], "1 files lie before the time asked for"),
        (["--until", "2001-09-09"], "no readable trace file"),
        (["--against", "..2001-09-09"], "nothing to compare with"),
    ],
)
def test_a_time_without_traces(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    """Exit code 1 before any Java starts, and what there is instead."""
    write(tmp_path / "part-1.parquet", 5)
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out"), *options]) == 1
    assert told in capfd.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_wrong_use(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No traces, traces that do not exist or are elsewhere, no output or none that can be written: exit code 2."""
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "out")
    for arguments in (
        ["--output", out],
        [str(tmp_path / "gone"), "--output", out],
        [str(tmp_path)],
        [str(tmp_path), "--output", str(tmp_path / "file")],
        [f"file://{tmp_path}/gone", "--output", out],
        [str(tmp_path), "--output", "file://another.host/report"],
        [str(tmp_path), "--output", out, "--connect", "sc://127.0.0.1", "--master", "local"],
        [str(tmp_path), "--output", out, "--connect", "sc://127.0.0.1", "--follow"],
        [str(tmp_path), "--output", out, "--conf", "spark.driver.memory"],
        ["", "--output", out],
        [str(tmp_path), "--output", ""],
    ):
        assert run(["report", *arguments]) == 2
        captured = capfd.readouterr()
        assert captured.out == ""
        assert one_line(captured.err)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--since", "yesterday"], "not a time: 'yesterday'"),
        (["--until", "12"], "not a time: '12'"),
        (["--since", "1h", "--until", "2h"], "nothing lies between 1h and 2h"),
        (["--against", "2001-09-09"], "not a range of time: '2001-09-09'; write SINCE..UNTIL"),
        (["--against", ".."], "not a range of time: '..'"),
        (["--against", "1h..2h"], "nothing lies between 1h and 2h"),
        (["--format", "html,pdf,csv"], "delta, html, iceberg, json, parquet, not csv, pdf"),
        (["--format", " , "], "delta, html, iceberg, json, parquet, not nothing"),
        (["--format", "delta", "--follow"], "leave out --format delta"),
        (["--format", "html,iceberg", "--connect", "sc://h"], "leave out --connect"),
        (["--format", "delta", "--catalog", "lake"], "add --format iceberg"),
        (["--format", "iceberg", "--catalog", "lake."], "write NAME or NAME.NAMESPACE"),
        (["--since", "300000w", "--until", "0001-01-01T00:00:00+14:00"], "nothing lies between"),
        (["--since", "9999-12-31T23:59:59.999999-14:00", "--until", "2300-01-01"], "nothing lies"),
        (["--against", "99999999999999999d..99999999999999999w"], "nothing lies between"),
        (["--asyncapi", ""], "it is empty, and names no place"),
        (["--connect", ""], "--connect is empty"),
        (["--master", " "], "--master is empty"),
        (["--packages", ""], "--packages is empty"),
        (["--late", "3"], "--every and --late are of --follow"),
        (["--every", "3"], "--every and --late are of --follow"),
        (["--follow", "--until", "1h"], "leave out --until and --against"),
        (["--follow", "--against", "2h..1h"], "leave out --until and --against"),
        (["--follow", "--asyncapi", "docs"], "leave out --follow"),
        (["--follow", "--every", "0.1"], "--every"),
        (["--follow", "--late", "0"], "--late"),
        (["--incremental", "--follow"], "leave out --follow and --asyncapi"),
        (["--incremental", "--asyncapi", "docs"], "leave out --follow and --asyncapi"),
        (["--incremental", "--since", "2h"], "is of whole days"),
        (["--incremental", "--since", "7d", "--until", "1h"], "is of whole days"),
        (["--incremental", "--against", "2026-03-01T12:00.."], "is of whole days"),
        (["--config", "gone.yaml"], "gone.yaml"),
        (["--config", "empty"], "no .yaml file in this directory"),
        (["--without", "core/yellow"], "'core/yellow' is neither ROUTER nor ROUTER/VPN:BRIDGE"),
        (["--double", "core"], "'core' is not ROUTER/VPN"),
        (["--master"], "--master"),
    ],
)
def test_wrong_options(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    told: str,
) -> None:
    """Exit code 2 and one line that says what is wrong, before anything is read or written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "traces/part-1.parquet", 5)
    assert run(["report", "traces", "--output", "out", *options]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert told in one_line(err)
    assert not (tmp_path / "out").exists()


def test_refused_configurations(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and a line a problem, with file, line and column; files of a directory as well."""
    write(tmp_path / "traces/part-1.parquet", 5)
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh/a.yaml").write_text("router: {name: edge, data_dir: ./d}\nmsg_vpns: 7\n")
    (tmp_path / "b.yaml").write_text("router: [\n")
    files = [f"--config={tmp_path / 'mesh'}", f"--config={tmp_path / 'b.yaml'}"]
    out = str(tmp_path / "out")
    assert run(["report", str(tmp_path / "traces"), "--output", out, *files]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith(f"{tmp_path}/mesh/a.yaml:2:")
    assert lines[-1].startswith(f"{tmp_path}/b.yaml:")
    assert not (tmp_path / "out").exists()


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where pyspark is not installed, one line names the extra."""
    # What is loaded anew becomes an attribute of its package, which outlives the test unless it is put back.
    monkeypatch.setattr(vpnrouter, "report", vpnrouter.report)
    for name in list(sys.modules):
        if name.startswith("vpnrouter.report"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert "pip install '.[spark]'" in capfd.readouterr().err
