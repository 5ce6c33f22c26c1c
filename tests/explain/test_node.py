"""One router in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.explain.router import MemoryRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

SECOND_NS = 1_000_000_000


def test_tracing_is_as_asked_for_and_not_as_configured(configured: Callable[..., Loaded]) -> None:
    """And the spool is there unless it is switched off."""
    loaded = configured("trace: {directory: ./t, sample: 0.0}\nmsg_vpns: {v: {queues: {q: {}}}}\n")
    for traced in (True, False):
        node = MemoryRouter(loaded, 0, SECOND_NS, SECOND_NS, traced=traced)
        assert node.router.context.tracing is traced
        assert [name for _, name in node.router.vpns["v"].endpoints] == ["q"]
        assert not node.finish_round()
    without = configured("guaranteed_msging: {enabled: false}\nmsg_vpns: {v: {}}\n")
    assert MemoryRouter(without, 0, SECOND_NS, SECOND_NS, traced=True).spool is None
