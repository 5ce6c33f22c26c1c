"""Queues that only grow, full ones that refuse clients, and bridges whose login is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.links import refused_bridges, refused_logins
from vpnrouter.report.rules.queues import full_queues, growing_queues, refusals, untaken
from vpnrouter.report.schema import Finding, Rows

Digest = Callable[[str, list[dict[str, Any]]], DataFrame]
SECOND = 1_000_000_000
FULL = "503 Spool Over Quota"


def listed(frame: DataFrame) -> Rows:
    """The rows of a small frame."""
    rows: Rows = frame.toArrow().to_pylist()
    return rows


def loss(endpoint: str, event: str, count: int, **more: Any) -> dict[str, Any]:
    """A row of LOSSES."""
    place = {"router": "r", "vpn": "v", "endpoint": endpoint, "bridge": "", "client": "pub"}
    times = {"first_ns": 0, "last_ns": 9 * SECOND, "start_ns": 0}
    what = {"event": event, "reason": FULL, "crossed": False, "count": count, "bytes": 10 * count}
    return {**place, **times, **what, **more}


REFUSED: dict[str, tuple[list[dict[str, Any]], int | None]] = {
    "orders": ([loss("orders", "reject", 2), loss("orders", "reject", 2, client="other")], 4),
    "": ([loss("", "reject", 5, reason="503 Max message usage exceeded")], 5),
    "two": ([loss("two", "reject", 2)], None),
    "bridged": ([loss("bridged", "reject", 50, crossed=True)], None),
    "shut": ([loss("shut", "reject", 50, reason="503 Queue Shutdown")], None),
    "expires": ([loss("expires", "expire", 50)], None),
}


@pytest.fixture(scope="module")
def full(digest_of: Digest) -> dict[str | None, Finding]:
    """The findings about all these endpoints, by endpoint."""
    rows = [row for rows, _ in REFUSED.values() for row in rows]
    found = full_queues(listed(refusals(digest_of("losses", rows))))
    return {one.endpoint: one for one in found}


@pytest.mark.parametrize("endpoint", REFUSED)
def test_a_full_queue_is_named(full: dict[str | None, Finding], endpoint: str) -> None:
    """By how many messages of clients it refused; what bridges bring is another finding."""
    _, refused = REFUSED[endpoint]
    one = full.get(endpoint or None)
    assert (None if one is None else one.messages) == refused
    if one is not None:
        assert (one.kind, one.severity, one.router, one.vpn) == ("full_queue", "error", "r", "v")
        assert f"{refused} messages that clients published in 9.0 s" in one.detail
        assert str(one.reason) in one.detail
        assert ("“orders” in r/v" in one.detail) is bool(endpoint)


KEPT: dict[str, tuple[tuple[int, int], list[dict[str, Any]], float | None]] = {
    "nobody": ((500, 0), [], 500.0),
    "hardly": ((500, 4), [], 496.0),
    "slow": ((500, 5), [], None),
    "few": ((99, 0), [], None),
    "expiring": ((500, 0), [loss("expiring", "expire", 100)], None),
    "dying": ((500, 0), [loss("dying", "dead_letter", 100)], None),
    "refusing": ((500, 0), [loss("refusing", "reject", 100)], 500.0),
}


@pytest.fixture(scope="module")
def growing(digest_of: Digest) -> dict[str | None, Finding]:
    """The findings about all these endpoints, by endpoint; those of partitions are one."""
    endpoints = [
        {"router": "r", "vpn": "v", "endpoint": name, "partition": part, "bytes": 1}
        | {"enqueued": came - came // 2 if part else came // 2, "acknowledged": 0 if part else gone}
        for name, ((came, gone), _, _) in KEPT.items()
        for part in (0, 1)
    ]
    losses = [row for _, rows, _ in KEPT.values() for row in rows]
    frames = digest_of("endpoints", endpoints), digest_of("losses", losses)
    return {one.endpoint: one for one in growing_queues(listed(untaken(*frames)))}


@pytest.mark.parametrize("endpoint", KEPT)
def test_a_queue_that_only_grows_is_named(
    growing: dict[str | None, Finding], endpoint: str
) -> None:
    """Not one out of which messages go, to whomever."""
    _, _, value = KEPT[endpoint]
    one = growing.get(endpoint)
    assert (None if one is None else one.value) == value
    if one is not None:
        assert (one.kind, one.severity, one.messages) == ("growing_queue", "warning", 500)
        assert f"500 messages came into “{endpoint}” in r/v" in one.detail


def told(
    bridge: str, at_s: int, event: str = "link_rejected", *, remote: bool, why: str = ""
) -> dict[str, Any]:
    """A row of STATES about the link of a bridge from far/x to near/y, of one of its ends."""
    here, there = (("far", "x"), ("near", "y"))[:: 1 if remote else -1]
    return {
        "router": here[0],
        "vpn": here[1],
        "peer_router": there[0],
        "peer_vpn": there[1],
        "client": f"#bridge/near/y/{bridge}" if remote else None,
        "bridge": bridge,
        "event": event,
        "ts_ns": at_s * SECOND,
        "reason": why or None,
    }


LOGINS: dict[str, tuple[list[dict[str, Any]], tuple[float, str] | None]] = {
    "password": (
        [
            told("password", at, remote=remote, why="403 Forbidden")
            for at in range(10)
            for remote in (True, False)
        ]
        + [told("password", 20, remote=False, why="401 Unauthorized")],
        (11.0, "401 Unauthorized"),
    ),
    "one end": ([told("one end", at, remote=True) for at in range(3)], (3.0, "no reason given")),
    "was up": (
        [
            told("was up", 0, "link_up", remote=False),
            *(told("was up", at, remote=False) for at in (5, 6, 7)),
        ],
        (3.0, "no reason given"),
    ),
    "came up": (
        [
            *(told("came up", at, remote=False) for at in range(9)),
            told("came up", 9, "link_up", remote=True),
        ],
        None,
    ),
    "twice": (
        [told("twice", at, remote=remote) for at in range(2) for remote in (True, False)],
        None,
    ),
    "up": ([told("up", at, "link_up", remote=False) for at in range(9)], None),
}


@pytest.fixture(scope="module")
def refused(digest_of: Digest) -> dict[str | None, Finding]:
    """The findings about all these bridges, by name."""
    nameless = {**told("", 1, remote=False), "peer_vpn": None}
    rows = [row for rows, _ in LOGINS.values() for row in rows] + [nameless] * 5
    return {
        one.bridge: one
        for one in refused_bridges(listed(refused_logins(digest_of("states", rows))))
    }


@pytest.mark.parametrize("bridge", LOGINS)
def test_a_bridge_that_is_refused_is_named(refused: dict[str | None, Finding], bridge: str) -> None:
    """How often, by the end that saw more, and why; unless its link came up in the end."""
    _, wanted = LOGINS[bridge]
    one = refused.get(bridge)
    assert (one is None) is (wanted is None)
    assert None not in refused
    if one is not None and wanted is not None:
        assert (one.kind, one.severity, one.value) == ("refused_bridge", "error", wanted[0])
        assert (one.router, one.vpn, one.peer_router, one.peer_vpn) == ("near", "y", "far", "x")
        assert wanted[1] in one.detail
