"""vpnrouter.report.flows.ends: which end of a bridge wrote a row."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.flows.ends import EDGE, edge_named, edge_of, with_edge

FARES = ("edge", "blue", "core", "yellow", "fares")
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}


def test_messages_run_from_the_remote_end() -> None:
    """Rows of both ends name the same edge; one without an end names none."""
    assert edge_of({**AT_CORE, "bridge": "fares", "remote": False}) == FARES
    assert edge_of({**AT_EDGE, "bridge": "fares", "remote": True}) == FARES
    assert edge_of({**AT_EDGE, "bridge": None, "remote": True}) == (*FARES[:4], "")
    for name in AT_CORE:
        assert edge_of({**AT_CORE, "bridge": "fares", "remote": False, name: None}) is None
    assert edge_named({**dict(zip(EDGE, FARES, strict=True)), "more": 1}) == FARES


@pytest.mark.spark
def test_spark_finds_the_same_ends(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame],
) -> None:
    """A sender is remote whatever the digest says, a receiver never; a link's rows say it."""
    rows = [
        {**AT_EDGE, "event": "bridge_send", "bridge": "fares"},
        {**AT_CORE, "event": "bridge_receive", "bridge": "fares", "remote": False},
        {**AT_EDGE, "event": "link_up", "bridge": "fares", "remote": True},
        {**AT_CORE, "event": "link_up", "bridge": "fares"},
        {**AT_CORE, "event": "link_up", "bridge": "fares", "peer_vpn": None},
    ]
    found = with_edge(digest_of("places", rows)).select(*EDGE).collect()
    assert [tuple(row) for row in found] == [FARES] * 4
