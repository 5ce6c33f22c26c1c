"""Compares whole reports, as the command makes them, with figures that DuckDB computes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vpnrouter.testing.modules import load_module

_COMMAND = "import sys; from vpnrouter.cli.app import main; sys.exit(main())"
_OPTIONS = ("--master", "local[2]", "--format", "parquet", "--json")


@pytest.fixture(scope="session")
def compare() -> ModuleType:
    """The module that stands beside these tests."""
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    return load_module("compare", Path(__file__).with_name("compare.py"))


@pytest.fixture(scope="session")
def figures_of(compare: ModuleType) -> Callable[[Path], Any]:
    """Makes the report of the directory `traces` in a folder, and computes the same figures."""

    def make(folder: Path) -> Any:
        report = folder / "report"
        subprocess.run(
            [
                sys.executable,
                "-c",
                _COMMAND,
                "report",
                str(folder / "traces"),
                "--output",
                str(report),
                *_OPTIONS,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return compare.Figures(folder / "traces" / "**" / "*.parquet", report)

    return make


@pytest.fixture(scope="session")
def compare_all(compare: ModuleType) -> Callable[[Any], dict[str, int]]:
    """Compares every figure of every table; returns the number of figures by table."""

    def run(figures: Any) -> dict[str, int]:
        counts = {name: figures.compare(name) for name in compare.KEYS}
        latencies = {f"latency_p{share}_ns": share / 100 for share in (50, 95, 99)}
        counts["edges"] += figures.compare_percentiles("edges", latencies)
        ends = {f"p{share}_ns": share / 100 for share in (50, 95, 99)}
        counts["end_to_end"] += figures.compare_percentiles("end_to_end", ends)
        counts["clocks"] = figures.compare_clocks()
        for name, count in counts.items():
            print(f"{name}: {count:,} figures in {len(figures.told(name)):,} rows")
        return counts

    return run
