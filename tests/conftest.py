"""Settings of every test run: which build is tested, and how Hypothesis draws.

Environment:
    VPNROUTER_EXPECT_BUILD  "pure" or "compiled": the run ends at once if the other one is imported.
    HYPOTHESIS_PROFILE      "ci" (default), "check" (few examples), "long", or "faults", which tests/mutants/run.py
                            sets.
    HYPOTHESIS_SEED         repeats the draws of an earlier run, whose header printed the seed.
"""

import os
import random
from pathlib import Path

import hypothesis
import pytest

import vpnrouter
from vpnrouter.build_info import build_kind, version_line

# The machines that run this are shared: how long an example takes is no finding.
hypothesis.settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "long", hypothesis.settings.get_profile("ci"), max_examples=2_000
)
hypothesis.settings.register_profile(
    "check", hypothesis.settings.get_profile("ci"), max_examples=20
)
# A failed example is enough, however long it is.
hypothesis.settings.register_profile(
    "faults",
    hypothesis.settings.get_profile("ci"),
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse the wrong build; give Hypothesis a seed that the header can print."""
    expected = os.environ.get("VPNROUTER_EXPECT_BUILD")
    if expected not in {None, build_kind()}:
        pytest.exit(
            f"VPNROUTER_EXPECT_BUILD is {expected!r}, but the tests would import the "
            f"{build_kind()} build from {_where()}",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    if config.option.hypothesis_seed is None:
        drawn = random.SystemRandom().getrandbits(32)
        config.option.hypothesis_seed = os.environ.get("HYPOTHESIS_SEED", str(drawn))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Prepare a run in several processes (`pytest -n 2 --dist loadgroup --no-loadscope-reorder`).

    The tests of one file run in one process, and so do all that share the Spark session. What takes longest begins
    first, so that no process is left with it when the others are done.
    """

    def shares_spark(item: pytest.Item) -> bool:
        return "spark" in getattr(item, "fixturenames", ())

    def lateness(item: pytest.Item) -> int:
        if shares_spark(item):
            return 0
        if item.get_closest_marker("spark"):
            return 1
        return 2 if "endtoend" in item.path.parts else 3

    items.sort(key=lateness)
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.xdist_group("spark" if shares_spark(item) else item.path.name))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is tested and how to repeat it."""
    return [
        f"build: {version_line()} from {_where()}",
        f"draws: HYPOTHESIS_SEED={config.option.hypothesis_seed}",
    ]


def _where() -> Path:
    return Path(vpnrouter.__file__).parent
