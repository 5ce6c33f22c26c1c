"""The report's tables, read back."""

import json
from pathlib import Path

import pytest

from vpnrouter.demo.summary import make_report, read_report
from vpnrouter.errors import OperationError


def test_tables(tmp_path: Path) -> None:
    """Nodes and edges are what the report's files say."""
    (tmp_path / "nodes.json").write_text(json.dumps([{"router": "edge"}]))
    (tmp_path / "edges.json").write_text("[]")
    report = read_report(tmp_path)
    assert report.nodes == [{"router": "edge"}]
    assert report.edges == []
    assert report.page == tmp_path / "report.html"


@pytest.mark.parametrize("text", [None, "[{]"])
def test_damaged(tmp_path: Path, text: str | None) -> None:
    """A table that is missing or damaged is an error that names it."""
    (tmp_path / "edges.json").write_text("[]")
    if text is not None:
        (tmp_path / "nodes.json").write_text(text)
    with pytest.raises(OperationError, match=r"nodes\.json"):
        read_report(tmp_path)


def test_command_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where `vpnrouter report` fails, its words are on stderr and the error names the exit code."""
    (tmp_path / "traces").mkdir()
    with pytest.raises(OperationError, match="ended with exit code 1"):
        make_report(tmp_path)
    assert "nothing to report on" in capfd.readouterr().err
