"""vpnrouter.server.net.loop: the interpreter is told what it runs."""

import gc
import sys
import weakref

import pytest

from vpnrouter.server.net import loop as settled
from vpnrouter.server.net.loop import SWITCH_S, YOUNG, GarbageCollector, settle


class Knot:
    """An object that refers to itself: only the garbage collector can free it."""

    def __init__(self) -> None:
        self.myself = self


def test_what_is_there_is_frozen(interpreter: None) -> None:
    """Threads switch sooner, young objects are looked at later, and what exists is not walked again."""
    settle()
    assert sys.getswitchinterval() == SWITCH_S
    assert gc.get_threshold()[0] == YOUNG
    assert gc.get_freeze_count() > 0


def test_frozen_cycles_are_freed_when_memory_has_grown(
    interpreter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle that survived a young collection waits until all objects are walked, and that is rare."""
    monkeypatch.setattr(settled, "PORTIONS", 2)
    monkeypatch.setattr(settled, "GROWTH", 10_000)
    collector = GarbageCollector()
    collector.settle()
    knot = Knot()
    seen = weakref.ref(knot)
    survivors = []

    def grow(blocks: int) -> None:
        for _ in range(4):
            survivors.extend([number] for number in range(blocks // 4))
            gc.collect(0)
            collector.tick()

    grow(2_000)
    del knot
    grow(2_000)
    assert seen() is not None
    grow(max(20_000, 2 * sys.getallocatedblocks()))
    assert seen() is None
