"""Whole routers under stateful fuzzers: they live, contain nothing, serve others, and account for all.

Each run draws a seed, which stands in what fails; VPNROUTER_SEED repeats one as far as timing allows.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SEED = int(os.environ.get("VPNROUTER_SEED", "0")) or random.SystemRandom().getrandbits(32)

SECONDS = 600 if os.environ.get("VPNROUTER_LONG") else 30

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("driver", ["sessions", "links", "amqp_links"])
def test_a_router_withstands(driver: str) -> None:
    """What clients and peers may say, in any order and with extreme values, costs nobody else anything."""
    arguments = [
        sys.executable,
        "-m",
        f"fuzz.{driver}",
        "--seconds",
        str(SECONDS),
        "--seed",
        str(SEED),
    ]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {SEED}\n{done.stderr[-20_000:]}"
