"""`vpnrouter simulate`."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from vpnrouter.cli.app import run


def test_simulate_writes_traces_mesh_and_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command makes all three; the table says how much there is."""
    assert run(["simulate", "--output", str(tmp_path), "--rows", "2000"]) == 0
    out = capsys.readouterr().out
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert f"{truth['counts']['rows']:,}" in out
    assert len(list((tmp_path / "mesh").glob("*.yaml"))) == truth["counts"]["routers"]
    paths = list((tmp_path / "traces").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in paths) == truth["counts"]["rows"]


def test_json_is_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints what stands in truth.json; faults are those asked for, the start is as said."""
    command = ["simulate", "--output", str(tmp_path), "--rows", "4000", "--json", "--no-configs"]
    command += ["--fault", "black_hole", "--fault", "loop", "--start", "2020-02-28T23:30:00"]
    assert run(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "truth.json").read_text())
    assert [fault["kind"] for fault in told["faults"]] == ["loop", "black_hole"]
    assert not (tmp_path / "mesh").exists()
    dates = {path.name for path in (tmp_path / "traces").iterdir()}
    assert dates == {"date=2020-02-28", "date=2020-02-29"}


def test_networks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A name a line, and nothing is written."""
    assert run(["simulate", "--networks"]) == 0
    assert "sndlib/germany50" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "--output"),
        (["--output", "X", "--fault", "gremlins"], 2, "no fault gremlins"),
        (["--output", "X", "--faults", "some"], 2, "all or none"),
        (["--output", "X", "--start", "soon"], 2, "--start"),
        (["--output", "X", "--network", "no/where"], 1, "no network no/where"),
        (["--output", "X", "--rows", "10"], 1, "too few"),
        (["--output", "X", "--sample", "0"], 1, "sample"),
    ],
)
def test_wrong_use_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    """2 for a command line that cannot be, 1 for a simulation that cannot be made; nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert run(["simulate", *words]) == code
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


LOOP = {"kind": "loop", "router": "a", "vpn": "v"}
WRONG = {"kind": "black_hole", "severity": "warning", "router": "b", "vpn": "v", "topic": "t"}


def score(folder: Path, findings: list[dict[str, Any]], *more: str) -> int:
    """Run the command on a truth with one loop and a report with these findings."""
    (folder / "truth.json").write_text(json.dumps({"faults": [LOOP], "consequences": []}))
    (folder / "findings.json").write_text(json.dumps(findings))
    truth = str(folder / "truth.json")
    return run(["simulate", "score", "--truth", truth, "--report", str(folder), *more])


def test_a_good_report_exits_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All found, nothing else raised."""
    assert score(tmp_path, [{**LOOP, "severity": "error"}]) == 0
    out = capsys.readouterr().out
    assert "loop" in out
    assert "1.000" in out
    assert "missed" not in out


def test_what_is_missed_and_wrong_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and a line for each."""
    assert score(tmp_path, [WRONG]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "missed: loop router=a vpn=v" in lines
    assert "wrong: black_hole severity=warning router=b vpn=v topic=t" in lines


def test_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same figures for machines."""
    assert score(tmp_path, [WRONG], "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["good"], told["recall"], told["precision"]) == (False, 0.0, 0.0)
    assert told["missed"] == [LOOP]


def test_a_missing_report_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one line, no traceback."""
    (tmp_path / "truth.json").write_text('{"faults": []}')
    truth = str(tmp_path / "truth.json")
    assert run(["simulate", "score", "--truth", truth, "--report", str(tmp_path / "no")]) == 1
    assert "findings.json" in capsys.readouterr().err
