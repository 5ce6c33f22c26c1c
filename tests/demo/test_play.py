"""The demonstration as a function."""

from pathlib import Path

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.play import play


def test_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a report, a short run passes and leaves configurations and traces of both routers."""
    assert play(700, tmp_path / "out", with_report=False)
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "all 16 checks passed"
    assert "demo: 700 flights leave New York" in err
    for name in ("edge", "core"):
        assert (tmp_path / "out" / "routers" / f"{name}.yaml").is_file()
        assert list((tmp_path / "out" / "traces").glob(f"date=*/router={name}/part-*.parquet"))


def test_one_flight(tmp_path: Path) -> None:
    """A single flight is enough for a run that passes."""
    assert play(1, tmp_path / "out", with_report=False)


@pytest.mark.slow
def test_subscription_too_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bridge that attracts more than it must fails the run as well."""
    wide = [*scene.REMOTE_SUBSCRIPTIONS, "flights/DL/>"]
    assert not play(1_000, tmp_path / "out", remote_subscriptions=wide, with_report=False)
    assert "0 missing" in capsys.readouterr().out
