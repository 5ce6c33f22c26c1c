"""vpnrouter.report.change.configured: what bridges asked their remotes for."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.change.configured import asked_by_bridges

pytestmark = pytest.mark.spark

FARES = "#bridge/core/yellow/fares"
PLACE = {"router": "edge", "vpn": "blue"}


def test_what_bridges_asked_for(digest_of: Callable[..., DataFrame]) -> None:
    """Every filter that a bridge ever held, once; clients and what links did are no part of it."""
    held = {**PLACE, "client": FARES, "event": "subscribe"}
    states: list[dict[str, Any]] = [
        {**held, "ts_ns": 1, "topic": "fares/>"},
        {**held, "ts_ns": 2, "topic": "!fares/test", "topic_syntax": "smf"},
        {**held, "ts_ns": 3, "topic": "fares/>", "event": "unsubscribe"},
        {**held, "ts_ns": 4, "topic": "fares/>"},
        {**held, "ts_ns": 5, "topic": "seats/>", "event": "unsubscribe"},
        {**held, "ts_ns": 6, "topic": "fares/>", "vpn": "green"},
        {**held, "ts_ns": 7, "topic": "a/>", "client": "board"},
        {**held, "ts_ns": 8, "topic": "b/>", "client": "a#bridge/core/yellow/fares"},
        {**held, "ts_ns": 9, "topic": "c/>", "client": None},
        {**held, "ts_ns": 10, "event": "link_up", "bridge": "fares"},
    ]
    found = asked_by_bridges(digest_of("states", states))
    assert sorted(found, key=lambda row: (row["vpn"], row["filter"])) == [
        {**PLACE, "client": FARES, "filter": "!fares/test"},
        {**PLACE, "client": FARES, "filter": "fares/>"},
        {**PLACE, "vpn": "green", "client": FARES, "filter": "fares/>"},
    ]


def test_no_bridge_asked(digest_of: Callable[..., DataFrame]) -> None:
    """A mesh without subscriptions gives no rows."""
    assert asked_by_bridges(digest_of("states", [])) == []
