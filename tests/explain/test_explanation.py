"""The answer as data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from explain_asking import ask

from vpnrouter.config.router import Loaded
from vpnrouter.explain.render import tree
from vpnrouter.explain.request import BRIDGE, Subscriber

if TYPE_CHECKING:
    from collections.abc import Callable


def test_as_plain_data(pair: Callable[..., list[Loaded]]) -> None:
    """What JSON shows is everything."""
    told = ask(pair(core="        remote_subscriptions: [a/>]\n"))
    data = told.as_dict()
    assert data["topic"] == "a/b"
    assert data["steps"][0]["steps"][0]["kind"] == BRIDGE
    assert data["steps"][0]["steps"][0]["rules"][0]["line"] == 11


def test_as_far_as_a_message_can_come(configured: Callable[..., Loaded]) -> None:
    """A chain as long as the hop limit allows."""
    link = "remote_authentication: {basic: {client_username: any}}, remote_subscriptions: ['>'], max_ttl: 255"
    vpns = "".join(
        f"  v{at}:\n    authentication: {{basic: {{enabled: false}}}}\n"
        "    client_profiles: {default: {allow_bridge_connections_enabled: true}}\n"
        + (
            f"    bridges: {{b: {{{link}, remote_msg_vpns: [{{name: v{at - 1}, router: r,"
            " location: '127.0.0.1:5000'}]}}\n"
            if at
            else ""
        )
        for at in range(256)
    )
    text = f"listeners: [{{protocol: link, bind: '127.0.0.1:5000'}}]\nmsg_vpns:\n{vpns}"
    told = ask(
        [configured(text, "r")],
        at=("r", "v0"),
        subscribers=(Subscriber("r", "v255", (("#", 0),), "far"),),
    )
    assert [(one.msg_vpn, one.name) for one in told.arrivals] == [("v255", "far")]
    deepest = told.as_dict()["steps"][0]
    depth = 0
    while deepest["steps"]:
        deepest = next(
            (one for one in deepest["steps"] if one["kind"] == BRIDGE), deepest["steps"][0]
        )
        depth += 1
    assert depth == 256
    assert len(json.dumps(told.as_dict(), indent=2)) > 10_000
    assert tree(told).children
