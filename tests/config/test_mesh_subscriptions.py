"""Remote subscriptions and queues that attract nothing."""

import runpy
from pathlib import Path
from typing import Any

import pytest

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, mesh, told = (KIT[name] for name in ("bridge", "vpn", "mesh", "told"))


def found(*filters: Any, queue: str | None = None, **there: Any) -> list[str]:
    """What is found of a bridge with these filters to a message VPN with these keys."""
    way = bridge("a/v", filters=filters, queue=queue)
    lines: list[str] = told(mesh({"a/v": vpn(**there), "b/v": vpn({"in": way})}))
    return lines


@pytest.mark.parametrize("filter_", ["$s*/>", "#P2P*", "a/+/b", "a/#"])
def test_filter_that_no_topic_matches(filter_: str) -> None:
    """Guarded first levels and wildcards of the other dialect match nothing that can be published."""
    (only,) = found(filter_, "w")
    assert ": warning: msg_vpns.v.bridges.in.remote_subscriptions[0]: no topic" in only
    assert filter_ in only


@pytest.mark.parametrize("filter_", ["$SYS/x", "a*/>", {"topic": "a/*"}])
def test_filter_that_some_topic_matches(filter_: Any) -> None:
    """Nothing is said of the others."""
    assert found(filter_) == []


def test_exceptions_that_leave_nothing_together() -> None:
    """Exceptions that together leave nothing of a filter are told; single ones are told elsewhere."""
    (only,) = found({"topic": "a/#"}, "w/>", "!w/*", "!w/*/>")[1:]
    assert "remote_subscriptions[1]: attracts nothing: the exceptions of the bridge" in only
    assert found("w/>", "!w/*", "!w/a/>") == []
    assert found("w/*", "v", "!w/>") == []


def test_filter_beyond_the_bounds_there() -> None:
    """The remote message VPN refuses filters beyond its bounds."""
    (only,) = found("a/b/c", "a/b", max_topic_levels=2)
    assert "refuses it: a/b/c has 3 levels, max_topic_levels is 2 (a.yaml:" in only
    (only,) = found("abcdef", "abc", max_topic_bytes=5)
    assert "refuses it: it has 6 bytes, max_topic_bytes is 5 (a.yaml:" in only


def test_filter_that_the_acl_forbids() -> None:
    """The remote message VPN refuses what the bridge's ACL profile there does not allow."""
    rule = {"subscribe_topic": {"default_action": "disallow", "exceptions": ["w/>"]}}
    (only,) = found("w/x", "v", acl_profiles={"default": rule})
    assert "remote_subscriptions[1]" in only
    assert (
        "ACL profile default of client username bridge forbids to subscribe to v (a.yaml:" in only
    )


def test_queue_without_subscriptions() -> None:
    """A bound queue that no topic leads into is told."""
    (only,) = found(queue="q", queues={"q": {}})
    assert ": warning: msg_vpns.v.bridges.in.remote_msg_vpns[0].queue_binding: queue q" in only
    assert "attracts nothing: it has no subscriptions (a.yaml:" in only
    (only,) = found(queue="q", queues={"q": {"subscriptions": ["w", "!w"]}})
    assert "all its subscriptions are empty" in only
    assert found(queue="q", queues={"q": {"subscriptions": ["w", "!v"]}}) == []
