"""What is told while it runs."""

import pytest

from vpnrouter.demo import progress


def test_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal, stages are lines on stderr and counts follow now and then."""
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    with progress.told({progress.PUBLISHED: 2_000, "x": 1_000}) as teller:
        teller.stage("one thing")
        teller.counts({"a": 500, "b": 500}, {"x": 700})
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first == "demo: one thing"
    assert second.startswith("demo: published 1,000 of 2,000 (")
    assert second.endswith("/s), received 700")


def test_lines_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts that follow at once on others tell nothing."""
    teller = progress.Lines({progress.PUBLISHED: 10})
    for _ in range(100):
        teller.counts({"a": 5}, {"x": 5})
    assert capsys.readouterr().err == ""


def test_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal there is a bar with count and rate for all that is published and each receiver."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.told({progress.PUBLISHED: 2_000, "yellow-all": 1_000}) as teller:
        teller.stage("one thing")
        teller.counts({"a": 500, "b": 500}, {"yellow-all": 700})
    out, err = capsys.readouterr()
    assert out == ""
    assert "one thing" in err
    assert "1000/2000" in err.replace(" ", "")
    assert "yellow-all" in err
    assert "/1000" in err
