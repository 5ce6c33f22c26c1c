"""`vpnrouter simulate score`."""

import json
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli.app import run

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
