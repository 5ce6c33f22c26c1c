"""vpnrouter.server.bridges.flows: ages of what waits; with a bridge, test_bridge_sources.py has it."""

from typing import Any

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.management.status.bridges import NONE, backlog_of, oldest_age_ms

TWO = "msg_vpns: {blue: {queues: {q: {subscriptions: [a]}, p: {subscriptions: [a, b]}}}}"


def test_ages(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the oldest message of all; a store that cannot be read has none to tell."""
    one = stored(TWO)
    q, p = (one.router.vpns["blue"].endpoints[0, name] for name in "qp")
    second = 1_000_000_000
    one.router.tick(second, 10 * second)
    assert oldest_age_ms([q, p]) == -1
    one.publish("b")
    one.router.tick(3 * second, 12 * second)
    one.publish("a")
    one.router.tick(4 * second, 13 * second)
    assert [oldest_age_ms([each]) for each in (q, p)] == [1_000, 3_000]
    assert oldest_age_ms([q, p]) == 3_000

    def broken(*_: Any) -> Any:
        raise SpoolError("no", "io")

    monkeypatch.setattr("vpnrouter.core.guaranteed.endpoint.Endpoint.browse", broken)
    assert oldest_age_ms([q, p]) == -1


def test_no_bridge() -> None:
    """Nobody takes from any queue."""
    assert backlog_of(None) is NONE
    assert NONE.names == ""
