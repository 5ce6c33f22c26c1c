"""How long a link that is left is waited for."""

from typing import Any, cast

import pytest
import trio

from vpnrouter.core.context import RouterContext
from vpnrouter.server.bridges.approach import now_ns
from vpnrouter.server.bridges.runner import DRAIN_MOST_S, DRAIN_S, drain
from vpnrouter.trace.recorder import Recorder


class Left:
    """A half that is left, and its link: bytes come each `each_s` seconds until `until_s`."""

    def __init__(self, each_s: float, until_s: float) -> None:
        self.link = self
        self.plane = RouterContext("here", 1, Recorder(), 0.0)
        self.attracts = True
        self.over = False
        self.heard_ns = 0
        self.left_s = -1.0
        self.drained = False
        self._each_s = each_s
        self._until_s = until_s

    def drain(self) -> None:
        """All is to be dropped."""

    def leave(self, code: int, why: str) -> None:
        self.over = True
        self.left_s = trio.current_time()

    async def pause(self, until_ns: int = -1) -> None:
        """Of the runner: wait for the time, or for something to come."""
        await trio.sleep(min(self._each_s, max(0.0, (until_ns - now_ns()) / 1e9)))
        if trio.current_time() <= self._until_s:
            self.heard_ns = now_ns()
        elif self._until_s:
            self.drained = True


@pytest.mark.parametrize(
    ("each_s", "until_s", "left_s"),
    [(0.5, 0.0, DRAIN_S), (1.5, 7.0, 7.5), (1.5, 1e9, DRAIN_MOST_S)],
    ids=["silent", "slow", "endless"],
)
async def test_how_long(autojump_clock: Any, each_s: float, until_s: float, left_s: float) -> None:
    """Two seconds of silence are enough; who is slow has longer, and nobody has for ever."""
    begun_s = trio.current_time()
    half = Left(each_s, begun_s + until_s if until_s else 0.0)
    await drain(cast(Any, half), cast(Any, half))
    assert half.left_s - begun_s == pytest.approx(left_s, abs=0.6)
