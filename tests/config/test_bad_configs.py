"""The table of refused configurations in data/bad.yaml."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.config.load import load, read
from vpnrouter.errors import ConfigError

CASES = yaml.safe_load((Path(__file__).parent / "data" / "bad.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_refused(case: dict[str, Any], tmp_path: Path) -> None:
    """Each bad configuration is refused with exactly these errors, each at its line and column."""
    path = tmp_path / "router.yaml"
    above = "" if case.get("whole") else "router: {name: here}\n"
    path.write_text(above + case["config"], encoding="utf-8")
    told = [found for found in read(path, {}).problems if found.severity == "error"]
    expected = [line.replace("FILE", str(path)).split(" ", 1) for line in case["errors"]]
    assert [f"{one.position.line}:{one.position.column}" for one in told] == [
        place for place, _ in expected
    ], told
    for one, (_, part) in zip(told, expected, strict=True):
        assert part in one.message
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert refused.value.problems == tuple(str(one) for one in told)


def test_table_is_large() -> None:
    """The table holds at least 60 cases, each under a name of its own."""
    assert len({case["name"] for case in CASES}) == len(CASES) >= 60
