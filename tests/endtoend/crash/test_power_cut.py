"""The power goes: of all files of the router only what was synced is left, and all acknowledged messages are there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import vpnrouter
from vpnrouter.spool.write_ahead_log import MARK, mark_of
from vpnrouter.testing.history import FaultKind, History, check
from vpnrouter.testing.prefork import Prefork
from vpnrouter.testing.stores import SyncedFiles

CUTS: Final = 20 if os.environ.get("VPNROUTER_LONG") else 4
BOTH: Final = ("orders", "twice")
SIZES: Final = (64, 30_000)
"""Small bodies stand in the store's log, large ones in files of their own, once a buffer is written out."""


@pytest.fixture
def synced(alone: Any, tmp_path: Path) -> Iterator[SyncedFiles]:
    """What router edge has synced."""
    made = SyncedFiles(tmp_path)
    env = {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    with Prefork({**os.environ, **env, **made.environment}) as prefork:
        alone.take_from(prefork, made.environment)
        yield made
        alone.end()


def begin(traffic: Any, alone: Any) -> None:
    """Two endpoints; producers at both levels, with small and large messages."""
    traffic.read(alone)
    for qos in (1, 2):
        for size in SIZES:
            topics = {f"orders/{qos}/{size}": BOTH}
            traffic.produce(alone, f"p{qos}-{size}", topics, qos=qos, burst=2, size=size)


@pytest.mark.slow
def test_power_cuts(traffic: Any, alone: Any, synced: SyncedFiles, tmp_path: Path) -> None:
    """Again and again, under load: nothing that was acknowledged is lost, nothing settled comes back."""
    alone.start()
    begin(traffic, alone)
    alone.kill()
    for _ in range(CUTS):
        traffic.live(alone)
        lost = synced.cut(tmp_path / "edge" / "spool")
        traffic.history.noted(f"the power is cut: {lost} bytes are lost")
    alone.start()
    traffic.stop_producers()
    traffic.drain()
    alone.kill()
    synced.cut(tmp_path / "edge" / "spool")
    alone.start()
    traffic.quiet()
    row = alone.router.queue("blue", "orders")
    assert (row["imbalance"], row["msgCount"]) == (0, 0), row
    traffic.judge()


@pytest.mark.slow
def test_unsynced_log_is_found(
    traffic: Any, alone: Any, synced: SyncedFiles, tmp_path: Path, patiently: Any
) -> None:
    """If the log were not synced, this test would tell: acknowledged messages are gone without it."""
    alone.start()
    producer = traffic.produce(alone, "p", {"orders/1": ("orders",)}, limit=20)
    patiently(lambda: producer.done, "20 answers")
    alone.kill()
    history: History = traffic.history
    spool = tmp_path / "edge" / "spool"
    assert synced.cut(spool, unsynced=".log")
    # It says what was synced; with it the router does not start.
    (spool / MARK).write_bytes(mark_of(0))
    alone.start()
    assert alone.router.queue("blue", "orders")["msgCount"] == 0
    assert [each.fault for each in check(history)] == [FaultKind.LOSS] * 20
