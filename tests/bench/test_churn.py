"""The bench of changing subscriptions in small, on a real router."""

from __future__ import annotations

import argparse
import shlex
import sys

import pytest

from bench import churn


@pytest.mark.slow
def test_messages_go_on_while_subscriptions_change() -> None:
    """Nothing is lost, and each change is answered, also those that stand for a moment only."""
    program = "import sys; from vpnrouter.cli.app import main; sys.exit(main())"
    options = argparse.Namespace(
        router_command=shlex.join([sys.executable, "-c", program]),
        standing=20_000,
        rounds=1,
        seconds=1.0,
    )
    [row] = churn.measure(options)
    assert row["faults"] == []
    assert row["with"]["changes"] > 1_000
    assert row["with"]["rate"] > 0
