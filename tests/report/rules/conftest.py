"""Rows as the rules about trouble take them."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.schema import EDGES, LINKS

SECOND = 1_000_000_000

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def bridge_row() -> MakeRow:
    """Makes a row of EDGES: from a/x to b/y, named `way`, unless told otherwise."""

    def make(
        start: str = "a/x", goal: str = "b/y", bridge: str = "way", **more: Any
    ) -> dict[str, Any]:
        from_router, from_vpn = start.split("/", 1)
        to_router, to_vpn = goal.split("/", 1)
        return {
            **dict.fromkeys(EDGES.names),
            "from_router": from_router,
            "from_vpn": from_vpn,
            "to_router": to_router,
            "to_vpn": to_vpn,
            "bridge": bridge,
            **more,
        }

    return make


@pytest.fixture
def link_row(bridge_row: MakeRow) -> MakeRow:
    """Makes a row of LINKS: up and down in seconds, None for null."""

    def make(up: float | None, down: float | None, **ends: Any) -> dict[str, Any]:
        row = {name: bridge_row(**ends).get(name) for name in LINKS.names}
        row["up_ns"] = None if up is None else int(up * SECOND)
        row["down_ns"] = None if down is None else int(down * SECOND)
        return row

    return make


@pytest.fixture
def loss_row() -> MakeRow:
    """Makes a row as `losses_by_place` gives it: a discard at b/y."""

    def make(reason: str, **more: Any) -> dict[str, Any]:
        return {
            "router": "b",
            "vpn": "y",
            "event": "discard",
            "reason": reason,
            "endpoint": "",
            "bridge": "",
            "client": "",
            "back": None,
            "count": 1,
            "weight": None,
            "bytes": 10,
            "example_path": None,
            "first_ns": 0,
            "last_ns": SECOND,
            "spans": [],
            **more,
        }

    return make


@pytest.fixture
def double_row() -> MakeRow:
    """Makes a row of DOUBLES at b/y."""

    def make(kind: str, who: str, **more: Any) -> dict[str, Any]:
        return {
            "kind": kind,
            "router": "b",
            "vpn": "y",
            "who": who,
            "other": None,
            "messages": 5,
            "copies": 6,
            "example_trace": "4bf9",
            "first_ns": 100 * SECOND,
            "last_ns": 101 * SECOND,
            **more,
        }

    return make
