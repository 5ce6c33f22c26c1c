"""What JMS 2.0 applications do passes here where it passes at Artemis, or is told in docs/amqp.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.peers]

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "amqp.md"
DIFFERENT: dict[str, str] = yaml.safe_load((HERE / "differences.yaml").read_text(encoding="utf-8"))
"""Scenarios that pass at Artemis and fail here: the beginning of a name, and why, as the page has it."""

SCENARIOS = 400
"""There are queues for as many."""

CONFIG = """
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queue_defaults: {respect_msg_priority_enabled: true, respect_ttl_enabled: true}
    queues:
      exclusive: {}
      groups: {access_type: non-exclusive, partition: {count: 8}}
""" + "".join(
    f"      s{number}{letter}: {{access_type: non-exclusive}}\n"
    for number in range(1, SCENARIOS + 1)
    for letter in ("", "b")
)


def outcomes(client: Any) -> dict[str, str]:
    """Run all scenarios; why each failed, "" where it passed."""
    command = client.command("scenarios")
    lines = [line.split("\t") for line in client.run(command)]
    assert len(lines) <= SCENARIOS
    return {name: "" if outcome == "passed" else why for name, outcome, why in lines}


def test_what_passes_at_artemis_passes_here(start: Any, peers: Any, tmp_path: Path) -> None:
    """Each scenario, but those that are named with a reason, and these do fail."""
    router = peers(start(CONFIG).port("amqp"))
    broker = subprocess.Popen(
        [*router.command("artemis"), "0", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with broker:
        assert broker.stdout is not None
        there = outcomes(peers(int(broker.stdout.readline())))
    here = outcomes(router)
    assert here.keys() == there.keys()
    assert len(here) >= 120
    worse = {name: why for name, why in here.items() if why and not there[name]}
    assert {name: why for name, why in worse.items() if not reason(name)} == {}
    # What is not different any more is not told as if it were.
    assert {part for part in DIFFERENT if not any(name.startswith(part) for name in worse)} == set()


def reason(name: str) -> str:
    """Why a scenario is different here."""
    return next((why for part, why in DIFFERENT.items() if name.startswith(part)), "")


def test_the_page_tells_each_difference() -> None:
    """docs/amqp.md has a row with the reason of each."""
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert [why for why in DIFFERENT.values() if why not in page] == []
